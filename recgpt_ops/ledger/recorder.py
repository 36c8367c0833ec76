"""The one way to call a model: from the ledger when the answer is there, else from the engine, and then recorded.

    recorder = CallRecorder(engine, ledger_root=..., ds="2017-10-30", method="v2", stage="intents", shard="0000-1023", attempt=1, ...)
    tags, call_id = await recorder.call(request, parse=parse_tags, retry=lambda reason: with_reason(request, reason))
    recorder.close()

Refused answers are recorded too: a rerun reads them, refuses them again and makes no call. So is a request on which engines died
(`poison`), whose answer is why: a rerun must not kill a third one. What else was never answered (a dead engine, a prompt that is too
long, a call that never came back) leaves no record.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from recgpt_ops.errors import RowError, UsageError
from recgpt_ops.ids import user_bucket
from recgpt_ops.ledger.account import Prices, TokenAccount
from recgpt_ops.ledger.fingerprints import call_id, fingerprint
from recgpt_ops.ledger.segments import SHARED_BUCKET, SegmentWriter, ShardIndex, pack, shard_range
from recgpt_ops.llm.requests import Answer, Engine, Request
from recgpt_ops.llm.structured import wasted_tokens

T = TypeVar("T")
POISON = "poison"  # the reason of a RowError for a request on which engines died


class CallRows:
    """Rows of llm_calls: of the calls made, then of those reused, under the attempt that made them; times as datetimes.

    Rows of reused answers are read from the ledger when they are asked for, because a resume may reuse millions.
    """

    def __init__(self, index: ShardIndex) -> None:
        """None yet."""
        self.index = index
        self.made: list[dict[str, Any]] = []
        self.is_reused = np.zeros(index.record_count, dtype=bool)

    def __len__(self) -> int:
        return len(self.made) + int(self.is_reused.sum())

    def __iter__(self) -> Iterator[dict[str, Any]]:
        try:
            for row in chain(self.made, (with_digest(self.index.read(record)) for record in np.flatnonzero(self.is_reused).tolist())):
                yield {**row, "called_at": datetime.fromisoformat(row["called_at"])}
        finally:
            self.index.close()


class CallRecorder:
    """Calls of one shard. Used from one event loop; `close` when the shard is done, also after an error."""

    def __init__(
        self,
        engine: Engine,
        *,
        ledger_root: Path,
        ds: str,
        scenario: str,
        method: str,
        stage: str,
        shard: str,
        attempt: int,
        max_in_flight: int,
        flush_count: int,
        flush_seconds: float,
        ask_again: bool = False,
        prices: Prices | None = None,
    ) -> None:
        """`flush_count` answers or `flush_seconds` are the most that a kill can cost, besides the calls in flight.

        `ask_again`: an answer that an earlier attempt refused is no answer; it is asked for again.
        """
        self.ask_again, self.prices = ask_again, prices
        self.engine, self.shard = engine, shard
        self.ds, self.scenario, self.method, self.stage, self.attempt = ds, scenario, method, stage, attempt
        self.flush_count, self.flush_seconds = flush_count, flush_seconds
        self.buckets = shard_range(shard)
        stage_dir = Path(ledger_root) / ds / method / stage
        self.index = ShardIndex(stage_dir, shard)
        self.writer = SegmentWriter(stage_dir / shard, attempt)
        self.account = TokenAccount()
        self.call_rows = CallRows(self.index)
        self.made: dict[str, asyncio.Future[Answer]] = {}
        self.slots = asyncio.Semaphore(max_in_flight)
        self.timer: asyncio.TimerHandle | None = None
        self.flush_error: UsageError | None = None

    async def call(self, request: Request, *, parse: Callable[[Answer], T], retry: Callable[[str], Request] | None = None) -> tuple[T, str]:
        """The parsed answer and its call id.

        `parse` raises RowError for an answer that is not good; then `retry`, given "reason: detail", makes the second and
        last request. None: no second try (at temperature 0 the same prompt gives the same answer). RowError comes out when
        no try was good, or when the request could not be put to the engine at all.
        """
        try:
            return await self.try_call(request, 0, parse)
        except RefusedAnswer as refused:
            if retry is None:
                raise refused.error from refused
            reason = str(refused.error)
        try:
            return await self.try_call(retry(reason), 1, parse)
        except RefusedAnswer as refused:
            raise refused.error from refused

    async def try_call(self, request: Request, try_index: int, parse: Callable[[Answer], T]) -> tuple[T, str]:
        """One try: recorded answer, or an equal call already under way, or a new one."""
        if request.user_id is not None and user_bucket(request.user_id) not in self.buckets:
            where = f"bucket {user_bucket(request.user_id)} of user {request.user_id!r}"
            raise UsageError(f"ledger shard {self.shard} does not hold {where}; use the recorder of the shard that does")
        print_ = fingerprint(request, self.engine.identity)
        id_ = call_id(print_, try_index)
        found = self.index.find(id_)
        if found is not None and not (self.ask_again and is_refused_before(found[1]["row"], self.attempt)):
            record, recorded = found
            self.account.calls_reused += 1
            self.call_rows.is_reused[record] = True
            if recorded["row"]["status"] == POISON:
                raise RowError(POISON, recorded["text"])
            return parsed(parse, read_answer(recorded)), id_
        if id_ in self.made:
            answer = await asyncio.shield(self.made[id_])
            self.account.calls_reused += 1
            return parsed(parse, answer), id_
        self.made[id_] = asyncio.get_running_loop().create_future()
        try:
            async with self.slots:
                answer = await self.engine.answer(request)
        except BaseException as error:
            future = self.made.pop(id_)
            future.set_exception(
                error if isinstance(error, Exception) else RowError("canceled", "the call that was waited for was canceled")
            )
            future.exception()  # nobody has to be waiting
            if isinstance(error, RowError) and error.reason == POISON:
                self.record(request, no_answer(request, error), fingerprint_=print_, id_=id_, try_index=try_index, status=POISON)
            raise
        self.made[id_].set_result(answer)
        try:
            value = parsed(parse, answer)
        except RefusedAnswer as refused:
            self.record(request, answer, fingerprint_=print_, id_=id_, try_index=try_index, status=refused.error.reason)
            raise
        self.record(request, answer, fingerprint_=print_, id_=id_, try_index=try_index, status="ok")
        return value, id_

    def record(self, request: Request, answer: Answer, *, fingerprint_: str, id_: str, try_index: int, status: str) -> None:
        """Counts the answer, keeps its row and appends it to the segment."""
        identity, prices = self.engine.identity, None if status == POISON else self.prices
        computed = None if answer.cached_tokens is None else answer.prompt_tokens - answer.cached_tokens
        row: dict[str, Any] = {
            "call_id": id_,
            "attempt": self.attempt,
            "ds": self.ds,
            "scenario": self.scenario,
            "method": self.method,
            "stage": self.stage,
            "role": request.role,
            "user_id": request.user_id,
            "try_index": try_index,
            "fingerprint": fingerprint_,
            "prompt_id": request.prompt_id,
            "model": identity.model,
            "model_hash": identity.model_hash,
            "form": "text",
            "adaptor": None,
            "prompt_tokens": answer.prompt_tokens,
            "cached_tokens": answer.cached_tokens,
            "computed_tokens": computed,
            "completion_tokens": answer.completion_tokens,
            "seconds": round(answer.seconds, 6),
            "finish_reason": answer.finish_reason,
            "status": status,
            "price": None if prices is None else prices.of(answer.prompt_tokens, answer.completion_tokens),
            "currency": None if prices is None else prices.currency,
            "called_at": datetime.now(UTC).isoformat(),
            "answer_digest": answer_digest(answer.text, answer.logprobs),
        }
        account = self.account
        account.calls_made += 1
        account.calls_refused += status != "ok"
        account.prompt_tokens += answer.prompt_tokens
        account.cached_tokens += answer.cached_tokens or 0
        account.computed_tokens += answer.prompt_tokens - (answer.cached_tokens or 0)
        account.completion_tokens += answer.completion_tokens
        account.whitespace_waste_tokens += wasted_tokens(answer)
        account.seconds += answer.seconds
        bucket = SHARED_BUCKET if request.user_id is None else user_bucket(request.user_id)
        self.writer.append(pack(id_, bucket, {"row": row, "text": answer.text, "logprobs": answer.logprobs}))
        self.call_rows.made.append(row)
        self.flush_when_due()

    @property
    def faults(self) -> list[str]:
        """What of the recorded answers could not be read, a sentence each."""
        return self.index.faults

    def flush_when_due(self) -> None:
        """Flushes after `flush_count` answers, or `flush_seconds` after the first unflushed one."""
        if self.flush_error:
            raise self.flush_error
        if len(self.writer.pending) >= self.flush_count:
            self.flush()
        elif self.timer is None:
            self.timer = asyncio.get_running_loop().call_later(self.flush_seconds, self.flush_by_timer)

    def flush(self) -> None:
        """Writes what is held, now."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        self.writer.flush()

    def flush_by_timer(self) -> None:
        """The same from the event loop, where an error can only be kept for the next call."""
        try:
            self.flush()
        except UsageError as error:
            self.flush_error = error

    def close(self) -> None:
        """Flushes and gives the files back. Raises what a flush in the background could not."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        self.index.close()
        self.writer.close()


class RefusedAnswer(Exception):
    """An answer came, and `parse` refused it."""

    def __init__(self, error: RowError) -> None:
        super().__init__(str(error))
        self.error = error


def is_refused_before(row: dict[str, Any], attempt: int) -> bool:
    """Whether the recorded answer was refused by an earlier attempt; one that this attempt asked for stands, so that a resume is cheap."""
    return bool(row["status"] != "ok" and row["attempt"] < attempt)


def no_answer(request: Request, error: RowError) -> Answer:
    """What is recorded of a request that no engine survived: the reason in place of a text, the prompt's tokens as far as we counted."""
    return Answer(error.detail, POISON, max(1, len(request.token_ids)), None, 0, 0.0)


def parsed(parse: Callable[[Answer], T], answer: Answer) -> T:
    """What `parse` makes of an answer; its RowError told apart from one that the engine raised."""
    try:
        return parse(answer)
    except RowError as error:
        raise RefusedAnswer(error) from error


def answer_digest(text: str, logprobs: Sequence[float] | None) -> str:
    """sha256 hex of what was answered, so that `llm_calls` knows it without holding it."""
    stored = text.encode("utf-8", "replace").decode()  # as `pack` writes it
    told = None if logprobs is None else list(logprobs)
    return hashlib.sha256(json.dumps([stored, told], separators=(",", ":")).encode()).hexdigest()


def with_digest(payload: dict[str, Any]) -> dict[str, Any]:
    """The row of a recorded payload. Records from before rows had a digest of the answer get it here."""
    return {**payload["row"], "answer_digest": answer_digest(payload["text"], payload["logprobs"])}


def read_answer(payload: dict[str, Any]) -> Answer:
    """The answer of a recorded payload."""
    row, logprobs = payload["row"], payload["logprobs"]
    return Answer(
        text=payload["text"],
        finish_reason=row["finish_reason"],
        prompt_tokens=row["prompt_tokens"],
        cached_tokens=row["cached_tokens"],
        completion_tokens=row["completion_tokens"],
        seconds=row["seconds"],
        logprobs=None if logprobs is None else tuple(logprobs),
    )
