"""What is asked of a model and what comes back: the same for every engine.

One request is one answer. An engine either answers it, or raises RowError (this request cannot be answered; the others go
on) or EngineError (the engine itself is gone; the request may be asked again of a new one).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from recgpt_ops.errors import RowError
from recgpt_ops.prompts import Message

CONSTRAINTS = ("choice", "json_schema", "forced_ids", "label_ids")  # what an answer is held to; a request has one of them or none


@dataclass(frozen=True)
class Sampling:
    """Every sampling setting that is sent: what stands here is what is used, a model folder's own defaults are not (031).

    `top_k` 0 and `top_p` 1.0 mean no cut; temperature 0.0 means the likeliest token.
    """

    max_tokens: int
    temperature: float = 0.0
    repetition_penalty: float = 1.0
    top_p: float = 1.0
    top_k: int = 0


@dataclass(frozen=True)
class Request:
    """One call. `token_ids` is the encoded prompt; empty only where the engine has no tokenizer of ours (an address by chat).

    At most one of `choice` (answer is one of these texts), `json_schema` (answer is compact JSON of this schema), `forced_ids`
    (no text is wanted, but the raw log-probability of each of these ids in turn) and `label_ids` (the same of each of these ids
    as the answer's first, side by side) is set; none means free text.
    `user_id` None: nothing of a user is in the prompt, so its answer is shared. `basis`: digest of what else decides how the
    answer is read, such as a judge's cut-offs; None where nothing else does.
    """

    role: str
    prompt_id: str
    messages: tuple[Message, ...]
    token_ids: tuple[int, ...]
    sampling: Sampling
    choice: tuple[str, ...] | None = None
    json_schema: str | None = None
    forced_ids: tuple[int, ...] | None = None
    user_id: str | None = None
    cache_scope: str | None = None  # prompts share the engine's prefix cache only within a scope; changes cost, never the answer
    label_ids: tuple[int, ...] | None = None
    basis: str | None = None

    @property
    def new_tokens(self) -> int:
        """The most positions the answer may take."""
        if self.label_ids is not None:
            return 1
        return len(self.forced_ids) if self.forced_ids is not None else self.sampling.max_tokens


@dataclass(frozen=True)
class Answer:
    """What the engine said. `finish_reason` is stop or length; `seconds` from submission to answer, waiting included.

    `cached_tokens` None: the engine does not say. `logprobs`: one raw log-probability per forced or label id, else None.
    """

    text: str
    finish_reason: str
    prompt_tokens: int
    cached_tokens: int | None
    completion_tokens: int
    seconds: float
    logprobs: tuple[float, ...] | None = None


@dataclass(frozen=True)
class EngineIdentity:
    """What an answer depends on besides the request. Hashes are sha256 hex; goes into fingerprints and the run's manifest.

    `build` names engine kind, version and number formats; `max_model_len` and `vocabulary_size` 0 mean unknown (an address).
    `sampling_defaults` are the effective settings of an empty request, to be compared with `Sampling`'s.
    """

    model: str
    model_hash: str
    tokenizer_hash: str
    build: str
    max_model_len: int = 0
    vocabulary_size: int = 0
    sampling_defaults: dict[str, Any] = field(default_factory=dict)


class Engine(Protocol):
    """Answers requests; any number may wait at the same time."""

    @property
    def identity(self) -> EngineIdentity:
        """What its answers depend on."""

    async def answer(self, request: Request) -> Answer:
        """The answer, RowError for this request only, or EngineError when the engine is gone."""


def check_request(request: Request, identity: EngineIdentity) -> None:
    """Refuses, before the engine sees it, what would cost an engine or a batch (001, 002): RowError names both numbers."""
    limit, vocabulary = identity.max_model_len, identity.vocabulary_size
    constraints = [name for name in CONSTRAINTS if getattr(request, name) is not None]
    if len(constraints) > 1:
        raise RowError("bad_request", f"{request.role}: {' and '.join(constraints)} are set; one request takes one")
    if request.choice is not None and (not request.choice or not all(request.choice) or len(set(request.choice)) < len(request.choice)):
        raise RowError("bad_request", f"{request.role}: {len(request.choice)} choices, some empty or equal, or none at all")
    if request.json_schema is not None and not request.json_schema.strip().startswith("{"):
        raise RowError("bad_request", f"{request.role}: {request.json_schema[:80]!r} is no JSON schema")
    if request.label_ids is not None and (not request.label_ids or len(set(request.label_ids)) < len(request.label_ids)):
        raise RowError("bad_request", f"{request.role}: label ids {request.label_ids}; expected some, each once")
    if limit and not request.token_ids:
        raise RowError("prompt_empty", f"{request.role}: the prompt has no tokens")
    if request.new_tokens < 1:
        raise RowError("bad_request", f"{request.role}: asks for {request.new_tokens} new tokens; expected at least 1")
    if limit and len(request.token_ids) + request.new_tokens > limit:
        raise RowError(
            "prompt_too_long",
            f"{request.role}: {len(request.token_ids)} prompt tokens + {request.new_tokens} new tokens are more than the model's {limit}",
        )
    for what, ids in (("prompt", request.token_ids), ("forced", request.forced_ids or ()), ("label", request.label_ids or ())):
        if vocabulary and ids and (min(ids) < 0 or max(ids) >= vocabulary):
            raise RowError(
                "bad_token_id", f"{request.role}: {what} ids span {min(ids)} to {max(ids)}; the vocabulary ends at {vocabulary - 1}"
            )


def sampling_dict(sampling: Sampling) -> dict[str, Any]:
    """The settings as plain values, for fingerprints and manifests."""
    return asdict(sampling)
