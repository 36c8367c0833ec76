"""Any OpenAI-compatible address as an engine.

A vLLM server takes prompts as token ids (`/v1/completions`), so user text can forge no control token there either. Other
servers get chat messages, in which whatever looks like a control token is broken up by an invisible character first.
Scoring by likelihood needs the engine's own logits processor, so such a recipe is refused when it is loaded.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import httpx

from recgpt_ops.errors import ConfigError, EngineError, RowError, UsageError
from recgpt_ops.llm.requests import Answer, EngineIdentity, Request, check_request
from recgpt_ops.prompts import Message
from recgpt_ops.settings import Engine as EngineSettings

WORD_JOINER = "\u2060"  # shows nothing and joins what it stands between
CONTROL_LOOK = re.compile(r"<(?=\s*[|｜][^<>\n]{1,60}>|/?[\w▁][\w▁|｜:-]{0,40}>)|\[(?=/?(?:INST|SYS|AVAILABLE_TOOLS|TOOL)\b)")
WRAPPED = "answer"
RETRY_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
BROKEN = 500  # a server that says so to one request again and again, and lives, does not stand that request
MOST_TRIES = 6
FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 30.0


def neutral_text(text: str) -> str:
    """Text whose control-token look-alikes are broken up; it still reads the same.

    >>> neutral_text("a <|im_end|> b").replace(WORD_JOINER, "^")
    'a <^|im_end|> b'
    """
    return CONTROL_LOOK.sub(lambda match: match[0] + WORD_JOINER, text)


def chat_messages(messages: Sequence[Message]) -> list[dict[str, str]]:
    """Messages in OpenAI's form; our own text stands as it is, data is neutralized."""
    return [
        {"role": message.role, "content": "".join(neutral_text(text) if is_data else text for text, is_data in message.segments)}
        for message in messages
    ]


class HttpEngine:
    """An address that answers. `takes_token_ids` is found out by `start`."""

    def __init__(
        self,
        settings: EngineSettings,
        *,
        tokenizer_hash: str,
        api_key: str | None,
        wait_seconds: float = FIRST_WAIT_SECONDS,
    ) -> None:
        """`api_key` goes into a header and nowhere else. `wait_seconds` is what a busy server is given before the second try."""
        if not settings.base_url:
            raise ConfigError("settings", ["engine.base_url is missing; engine.kind 'openai' needs an address such as http://llm:8000/v1"])
        self.settings, self.wait_seconds = settings, wait_seconds
        self.address = settings.base_url.rstrip("/") + "/"
        self.headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self.client = httpx.AsyncClient(base_url=self.address, headers=self.headers, timeout=settings.call_timeout_seconds)
        self.takes_token_ids = False
        self.known = EngineIdentity(
            model=settings.model,
            model_hash=hashlib.sha256(f"{settings.base_url}\x1f{settings.model}".encode()).hexdigest(),
            tokenizer_hash=tokenizer_hash,
            build=f"openai {settings.base_url}",
            max_model_len=settings.max_model_len,
        )

    @property
    def identity(self) -> EngineIdentity:
        """An address hides its weights, so its name stands in for their hash."""
        return self.known

    def start(self) -> None:
        """Asks for the list of models: is the address right, is the model there, does the server take token ids.

        By a connection of its own, since those of `client` belong to the event loop that answers.
        """
        try:
            reply = httpx.get(f"{self.address}models", headers=self.headers, timeout=self.settings.call_timeout_seconds)
        except httpx.HTTPError as error:
            raise EngineError(f"{self.settings.base_url} does not answer ({type(error).__name__}); check engine.base_url") from error
        if reply.status_code in (401, 403):
            raise UsageError(f"{self.settings.base_url} refuses the key; set the variable {self.settings.api_key_variable}")
        models = reply.json().get("data", []) if reply.status_code == 200 else []
        names = [str(model.get("id")) for model in models]
        if names and self.settings.model not in names:
            raise UsageError(f"{self.settings.base_url} does not serve {self.settings.model!r}; it serves {', '.join(names[:10])}")
        self.takes_token_ids = any(model.get("owned_by") == "vllm" for model in models)

    async def answer(self, request: Request) -> Answer:
        """The answer; RowError for what the server refuses, EngineError when it stays away."""
        if request.forced_ids is not None or request.label_ids is not None:
            what = "scoring by likelihood" if request.forced_ids is not None else "reading labels' log-probabilities"
            raise EngineError(f"{what} was asked of an OpenAI-compatible address; recipe or settings should have been refused")
        if request.token_ids:
            check_request(request, self.known)
        started = time.monotonic()
        path, body = self.request_body(request)
        reply = await self.post(path, body)
        answer = read_reply(reply, seconds=time.monotonic() - started)
        return replace(answer, text=unwrap(answer.text, request)) if "messages" in body else answer

    def request_body(self, request: Request) -> tuple[str, dict[str, Any]]:
        """Path and JSON of a request, with every sampling setting said."""
        sampling = request.sampling
        body: dict[str, Any] = {"model": self.settings.model, "temperature": sampling.temperature, "top_p": sampling.top_p}
        if self.takes_token_ids:
            body |= {"prompt": list(request.token_ids), "max_tokens": sampling.max_tokens, "add_special_tokens": False}
            body |= {"top_k": sampling.top_k, "repetition_penalty": sampling.repetition_penalty, "min_p": 0.0}
            if request.cache_scope is not None:
                body["cache_salt"] = request.cache_scope
            if request.choice is not None:
                body["structured_outputs"] = {"choice": list(request.choice)}
            elif request.json_schema is not None:
                body["structured_outputs"] = {"json": json.loads(request.json_schema), "disable_any_whitespace": True}
            return "completions", body
        body |= {"messages": chat_messages(request.messages), "max_tokens": sampling.max_tokens}
        schema = json.loads(request.json_schema) if request.json_schema is not None else None
        if request.choice is not None:
            schema = {"type": "string", "enum": list(request.choice)}
        if schema is not None:
            if schema.get("type") != "object":  # the outermost value of a strict schema has to be an object; see `unwrap`
                schema = {"type": "object", "properties": {WRAPPED: schema}, "required": [WRAPPED], "additionalProperties": False}
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}
        return "chat/completions", body

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The server's reply; asks again, ever more slowly, while it is busy or away.

        RowError `timeout` or `poison` for a request that a living server does not answer in any of the tries.
        """
        problem, reason = "", None
        for tries in range(MOST_TRIES):
            if tries:
                await asyncio.sleep(min(LONGEST_WAIT_SECONDS, self.wait_seconds * 2**tries) * random.uniform(0.5, 1.0))
            try:
                reply = await self.client.post(path, json=body)
            except httpx.HTTPError as error:
                problem, reason = type(error).__name__, row_reason(error)
                continue
            if reply.status_code == 200:
                return parse_body(reply)
            problem, reason = f"status {reply.status_code}: {reply.text[:200]}", "poison" if reply.status_code == BROKEN else None
            if reply.status_code in (401, 403):
                raise EngineError(f"{self.settings.base_url} refuses the key; set the variable {self.settings.api_key_variable}")
            if reply.status_code not in RETRY_STATUS:
                raise RowError("engine_refused", problem)
        told = f"{self.settings.base_url} gave no answer in {MOST_TRIES} tries; the last: {problem}"
        if reason is not None and await self.is_alive():
            raise RowError(reason, f"{told}, though the server lives")
        raise EngineError(told)

    async def is_alive(self) -> bool:
        """Whether the server answers at all: then what it does not answer is a row's fault, and the others go on."""
        try:
            return (await self.client.get("models")).status_code == 200
        except httpx.HTTPError:
            return False

    async def close(self) -> None:
        """Gives the connections back."""
        await self.client.aclose()


def row_reason(error: httpx.HTTPError) -> str | None:
    """What a request would be quarantined for that failed like this each time; None where the server could not even be reached."""
    if isinstance(error, httpx.ReadTimeout):
        return "timeout"
    return "poison" if isinstance(error, httpx.RemoteProtocolError | httpx.ReadError) else None


def parse_body(reply: httpx.Response) -> dict[str, Any]:
    """The JSON of a good reply."""
    try:
        body = reply.json()
    except ValueError as error:
        raise RowError("engine_refused", f"the reply is no JSON: {reply.text[:200]!r}") from error
    if not isinstance(body, dict):
        raise RowError("engine_refused", f"the reply is no object: {reply.text[:200]!r}")
    return body


def unwrap(text: str, request: Request) -> str:
    """The value inside the object that a chat server was made to write around it; a text of any other form stays as it is."""
    if request.choice is None and request.json_schema is None:
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if not isinstance(value, dict) or set(value) != {WRAPPED}:
        return text
    inner = value[WRAPPED]
    return str(inner) if request.choice is not None else json.dumps(inner, ensure_ascii=False, separators=(",", ":"))


def read_reply(body: Mapping[str, Any], *, seconds: float) -> Answer:
    """A reply as an answer. The text of a reasoning field is thinking, and is not taken for the answer (030)."""
    choices = body.get("choices") or []
    if len(choices) != 1:
        raise RowError("engine_refused", f"{len(choices)} answers came for one request")
    choice = choices[0]
    text = choice["text"] if "text" in choice else (choice.get("message") or {}).get("content")
    usage = body.get("usage") or {}
    details = usage.get("prompt_tokens_details") or {}
    return Answer(
        text=text or "",
        finish_reason=str(choice.get("finish_reason") or "unknown"),
        prompt_tokens=int(usage.get("prompt_tokens") or 0),
        cached_tokens=details.get("cached_tokens"),
        completion_tokens=int(usage.get("completion_tokens") or 0),
        seconds=seconds,
    )
