"""A deterministic engine for tests: good answers to every form of request, and faults on demand.

    FakeEngine()                                                     answers all that it is asked
    FakeEngine(faults=lambda request, nth: "truncated" if nth == 3 else None)

An answer depends on the prompt's ids and the constraint alone, so it is the same in every process and order. `nth` counts
the calls of this engine from 0.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from recgpt_ops.errors import ConfigError, EngineError, RowError
from recgpt_ops.llm.requests import Answer, EngineIdentity, Request, check_request

Fault = Literal[
    "bad_json", "truncated", "white_space", "extra_item", "missing_item", "duplicate_item", "long_item",
    "thinking_closed", "thinking_unclosed", "thinking_only", "empty", "row_error", "engine_death", "slow",
]  # fmt: skip
WORDS = (
    "amber",
    "birch",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "hazel",
    "iris",
    "jade",
    "kelp",
    "lilac",
    "maple",
    "olive",
    "quartz",
    "stone",
)
SLOW_SECONDS = 0.2


class FakeEngine:
    """Answers at once. `calls` holds every request that reached it, the refused ones too."""

    def __init__(
        self,
        *,
        faults: Callable[[Request, int], Fault | None] | None = None,
        texts: Callable[[Request], str | None] | None = None,
        identity: EngineIdentity | None = None,
    ) -> None:
        """`faults` names what goes wrong with a call; `texts` gives the answer's text where a test wants its own (None: made here)."""
        self.faults, self.texts = faults, texts
        self.calls: list[Request] = []
        self.is_dead = False
        self.known = identity or EngineIdentity(
            model="fake", model_hash=seed_of("model"), tokenizer_hash=seed_of("tokenizer"), build="fake 1", max_model_len=8192
        )

    @property
    def identity(self) -> EngineIdentity:
        """Its own hashes; no real model's."""
        return self.known

    async def answer(self, request: Request) -> Answer:
        """A valid answer, or the fault that was asked for."""
        check_request(request, self.identity)
        nth = len(self.calls)
        self.calls.append(request)
        if self.is_dead:
            raise EngineError("fake engine: dead since an earlier call")
        fault = self.faults(request, nth) if self.faults else None
        if fault == "engine_death":
            self.is_dead = True
            raise EngineError(f"fake engine: died at call {nth}, as told")
        if fault == "row_error":
            raise RowError("engine_refused", f"fake engine: refused call {nth}, as told")
        await asyncio.sleep(SLOW_SECONDS if fault == "slow" else 0)
        return spoil(self.good_answer(request), fault)

    def good_answer(self, request: Request) -> Answer:
        """What the request asks for, made from its hash."""
        seed = seed_of(*request.token_ids, *(message.text for message in request.messages), request.choice, request.json_schema)
        logprobs = None
        text = self.texts(request) if self.texts else None
        if request.forced_ids is not None:
            text = ""
            logprobs = tuple(-(1 + number(seed, index, id_) % 8000) / 1000 for index, id_ in enumerate(request.forced_ids))
        elif request.label_ids is not None:
            text = ""
            logprobs = tuple(-(1 + number(seed, id_) % 8000) / 1000 for id_ in request.label_ids)
        elif text is None and request.choice is not None:
            text = request.choice[number(seed) % len(request.choice)]
        elif text is None and request.json_schema is not None:
            text = json.dumps(instance(json.loads(request.json_schema), seed), ensure_ascii=False, separators=(",", ":"))
        elif text is None:
            text = words(seed)
        completion = len(logprobs) if request.forced_ids is not None and logprobs else min(request.new_tokens, max(1, len(text) // 4))
        prompt = max(1, len(request.token_ids))
        return Answer(text, "stop", prompt, prompt // 128 * 128, completion, 0.001, logprobs)


def spoil(answer: Answer, fault: Fault | None) -> Answer:
    """The answer with one fault in it. Faults of lists need a list of texts, or they spoil nothing."""
    text = answer.text
    try:
        items = json.loads(text)
    except ValueError:
        items = None
    if isinstance(items, list) and items:
        changed = {
            "extra_item": [*items, *items],
            "missing_item": items[:-1],
            "duplicate_item": [*items[:-1], items[0]],
            "long_item": ["x" * 300],
        }
        if fault in changed:
            text = json.dumps(changed[fault], ensure_ascii=False, separators=(",", ":"))
    if fault == "truncated":
        return replace(answer, text=text[: len(text) // 2], finish_reason="length")
    if fault == "white_space":
        return replace(answer, text=text[:-1] + " " * 3000, finish_reason="length", completion_tokens=1000)
    changed_text = {
        "bad_json": text[:-1] + "}]",
        "empty": "",
        "thinking_closed": f"<think>\nLet me see.\n</think>\n\n{text}",
        "thinking_unclosed": f"<think>\nLet me see. {text}",
        "thinking_only": f"<think>\n{text}\n</think>\n",
    }
    return replace(answer, text=changed_text.get(fault or "", text))


def instance(schema: dict[str, Any], seed: str) -> Any:
    """A value that the schema allows, made from a seed; the keywords that our own schemas use are understood."""
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][number(seed) % len(schema["enum"])]
    if "anyOf" in schema:
        return instance(schema["anyOf"][0], seed)
    kind = schema.get("type")
    if kind == "object":
        return {key: instance(inner, seed_of(seed, key)) for key, inner in schema.get("properties", {}).items()}
    if kind == "array":
        return array(schema, seed)
    if kind == "integer":
        low, high = schema.get("minimum", 1), schema.get("maximum", 100)
        return low + number(seed) % (high - low + 1)
    if kind == "number":
        return float(schema.get("minimum", 0))
    if kind == "boolean":
        return number(seed) % 2 == 0
    if kind == "string":
        text = words(seed)[: schema.get("maxLength", 80)].strip().ljust(schema.get("minLength", 0), "x")
        if "pattern" in schema and not re.search(schema["pattern"], text):
            raise ConfigError("fake engine", [f"cannot make a text of the pattern {schema['pattern']!r}; give it by texts="])
        return text
    raise ConfigError("fake engine", [f"cannot make a value of the schema {schema!r}; give it by texts="])


def array(schema: dict[str, Any], seed: str) -> list[Any]:
    """Between minItems and maxItems different values, the fewest that the schema allows but at least one."""
    count = max(schema.get("minItems", 1), min(1, schema.get("maxItems", 1)))
    items: list[Any] = []
    for index in range(count * 50):
        if len(items) == count:
            break
        item = instance(schema["items"], seed_of(seed, index))
        if item not in items:
            items.append(item)
    return items


def words(seed: str) -> str:
    """Three words of the list, such as "cedar iris stone"."""
    return " ".join(WORDS[number(seed, index) % len(WORDS)] for index in range(3))


def seed_of(*parts: object) -> str:
    """sha256 hex of the parts."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def number(*parts: object) -> int:
    """A number of 48 bits made from the parts."""
    return int(seed_of(*parts)[:12], 16)
