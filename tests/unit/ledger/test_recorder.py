"""Calls are answered from the ledger, made once, retried once, and never shifted."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from recgpt_ops.errors import EngineError, RowError, UsageError
from recgpt_ops.ledger import SHARED, CallRecorder
from recgpt_ops.ledger.account import Prices
from recgpt_ops.ledger.fingerprints import fingerprint
from recgpt_ops.ledger.summaries import CallLimits, resume_text
from recgpt_ops.llm.fake import FakeEngine, Fault
from recgpt_ops.llm.requests import Answer, EngineIdentity, Request, Sampling
from recgpt_ops.llm.structured import compact_schema, parse_json_list
from recgpt_ops.tables import load_contract

SCHEMA = compact_schema({"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2})


def request(n: int, *, user_id: str | None = "u_42", max_tokens: int = 64) -> Request:
    return Request("expert", "prompt", (), (1, 2, n), Sampling(max_tokens), json_schema=SCHEMA, user_id=user_id)


def parse(answer: Answer) -> tuple[str, ...]:
    return parse_json_list(answer, what="tags", min_count=2, max_count=2, max_chars=60)


@contextmanager
def recorder(root: Path, engine: FakeEngine, *, attempt: int = 1, shard: str = "0000-1023", **settings: Any) -> Iterator[CallRecorder]:
    known = {"max_in_flight": 4, "flush_count": 64, "flush_seconds": 60.0, "scenario": "default", "method": "v2", "stage": "intents"}
    made = CallRecorder(engine, ledger_root=root, ds="2017-10-30", shard=shard, attempt=attempt, **{**known, **settings})
    try:
        yield made
    finally:
        made.close()


def ask(calls: CallRecorder, *requests: Request, retry: Callable[[str], Request] | None = None) -> list[Any]:
    async def run() -> list[Any]:
        return await asyncio.gather(*(calls.call(each, parse=parse, retry=retry) for each in requests), return_exceptions=True)

    return asyncio.run(run())


def faulty(*faults: Fault | None) -> FakeEngine:
    """The n-th call has the n-th fault; later ones have none."""
    return FakeEngine(faults=lambda request, nth: faults[nth] if nth < len(faults) else None)


def test_case_011_a_rerun_makes_no_call_and_gives_the_same(tmp_path: Path) -> None:
    engine = FakeEngine()
    with recorder(tmp_path, engine) as calls:
        first = ask(calls, *map(request, range(5)))
        rows = list(calls.call_rows)
    with recorder(tmp_path, engine, attempt=2) as calls:
        assert ask(calls, *map(request, range(5))) == first
        assert (calls.account.calls_made, calls.account.calls_reused) == (0, 5)
        assert list(calls.call_rows) == rows  # under the attempt that made them, so that nothing is appended twice
    assert len(engine.calls) == 5


def test_rows_fit_the_contract_of_llm_calls(tmp_path: Path) -> None:
    with recorder(tmp_path, FakeEngine()) as calls:
        ask(calls, request(1))
        [row] = calls.call_rows
    assert tuple(row) == load_contract("llm_calls").column_names
    assert row["status"] == "ok"
    assert row["computed_tokens"] == row["prompt_tokens"] - row["cached_tokens"] == 3
    assert row["called_at"].utcoffset().total_seconds() == 0


def test_two_equal_calls_under_way_are_made_once(tmp_path: Path) -> None:
    engine = faulty("slow")
    with recorder(tmp_path, engine) as calls:
        answers = ask(calls, request(1), request(1), request(1))
        assert (calls.account.calls_made, calls.account.calls_reused) == (1, 2)
    assert len(engine.calls) == 1
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize("fault", ["bad_json", "truncated", "white_space", "extra_item", "missing_item", "duplicate_item", "thinking_only"])
def test_case_023_024_028_030_a_bad_answer_is_asked_again_once_with_the_reason(tmp_path: Path, fault: Fault) -> None:
    engine, reasons = faulty(fault), []

    def retry(reason: str) -> Request:
        reasons.append(reason)
        return request(1, max_tokens=128)

    with recorder(tmp_path, engine) as calls:
        [(tags, call_id)] = ask(calls, request(1), retry=retry)
        assert len(tags) == 2
        assert [row["try_index"] for row in calls.call_rows] == [0, 1]
        assert [row["status"] == "ok" for row in calls.call_rows] == [False, True]
        assert list(calls.call_rows)[1]["call_id"] == call_id
        assert calls.account.calls_refused == 1
        assert (calls.account.whitespace_waste_tokens > 900) == (fault == "white_space")
    assert len(reasons) == 1
    assert reasons[0].startswith(next(iter(calls.call_rows))["status"] + ": ")


def test_two_bad_answers_are_the_row_s_error_and_a_rerun_makes_no_call(tmp_path: Path) -> None:
    engine = faulty("truncated", "bad_json")
    for attempt in (1, 2):
        with recorder(tmp_path, engine, attempt=attempt) as calls:
            [error, good] = (
                ask(calls, request(1), request(2), retry=lambda reason: request(1, max_tokens=128))
                if attempt == 2
                else [
                    *ask(calls, request(1), retry=lambda reason: request(1, max_tokens=128)),
                    *ask(calls, request(2)),
                ]
            )
            assert isinstance(error, RowError)
            assert error.reason == "bad_json"
            assert len(good[0]) == 2
    assert len(engine.calls) == 3


def test_without_a_retry_the_first_bad_answer_is_final(tmp_path: Path) -> None:
    engine = faulty("bad_json")
    with recorder(tmp_path, engine) as calls:
        [error] = ask(calls, request(1))
    assert isinstance(error, RowError)
    assert len(engine.calls) == 1


def test_case_001_a_prompt_that_is_too_long_costs_that_row_and_leaves_no_record(tmp_path: Path) -> None:
    long = replace(request(1), token_ids=(1,) * 9000)
    with recorder(tmp_path, FakeEngine()) as calls:
        error, *good = ask(calls, long, *map(request, range(2, 101)))
        assert error.reason == "prompt_too_long"
        assert "9000 prompt tokens + 64 new tokens are more than the model's 8192" in error.detail
        assert sum(isinstance(each, tuple) for each in good) == 99
        assert calls.account.calls_made == len(calls.call_rows) == 99


def test_a_dead_engine_leaves_no_record_so_the_call_is_made_again(tmp_path: Path) -> None:
    with recorder(tmp_path, faulty(None, "engine_death"), max_in_flight=1) as calls:
        outcome = ask(calls, request(1), request(2), request(3))
    assert [type(each) for each in outcome] == [tuple, EngineError, EngineError]
    engine = FakeEngine()
    with recorder(tmp_path, engine, attempt=2) as calls:
        ask(calls, request(1), request(2), request(3))
        assert (calls.account.calls_made, calls.account.calls_reused) == (2, 1)


def test_case_004_010_a_kill_costs_the_calls_in_flight_and_one_unflushed_batch_at_most(tmp_path: Path) -> None:
    with recorder(tmp_path, FakeEngine(), flush_count=4) as killed:
        ask(killed, *map(request, range(10)))
        with recorder(tmp_path, FakeEngine(), attempt=2) as calls:  # the first was never closed: 8 of its 10 answers are on disk
            ask(calls, *map(request, range(10)))
            assert (calls.account.calls_reused, calls.account.calls_made) == (8, 2)


class DyingEngine(FakeEngine):
    """Two engines die of request 2; all others are answered."""

    async def answer(self, request: Request) -> Answer:
        answer = await super().answer(request)
        if request.token_ids[-1] == 2:
            raise RowError("poison", "expert: two engines died on this request; the last: its process ended")
        return answer


def test_a_request_on_which_two_engines_died_is_on_record_and_a_resume_does_not_kill_a_third(tmp_path: Path) -> None:
    first = DyingEngine()
    with recorder(tmp_path, first, prices=Prices(1000.0, 5000.0, "EUR")) as calls:
        good, poisoned = ask(calls, request(1), request(2), retry=lambda reason: request(3))
        assert (len(good), poisoned.reason) == (2, "poison")
        assert [(row["status"], row["completion_tokens"] > 0, row["price"] is None) for row in calls.call_rows] == [
            ("ok", True, False),
            ("poison", False, True),
        ]
    engine = DyingEngine()
    for attempt in (1, 2):  # the same attempt going on, and a newer one
        with recorder(tmp_path, engine, attempt=attempt) as calls:
            again = ask(calls, request(2))[0]
            assert (again.reason, again.detail) == ("poison", poisoned.detail)
            assert (calls.account.calls_made, calls.account.calls_reused, len(calls.call_rows)) == (0, 1, 1)
    assert engine.calls == []


def test_a_replay_asks_a_poisoned_request_again(tmp_path: Path) -> None:
    with recorder(tmp_path, DyingEngine()) as calls:
        ask(calls, request(2))
    with recorder(tmp_path, FakeEngine(), attempt=2, ask_again=True) as calls:
        [(tags, _)] = ask(calls, request(2))
        assert (len(tags), calls.account.calls_made) == (2, 1)
    with recorder(tmp_path, FakeEngine(), attempt=3) as calls:
        assert ask(calls, request(2))[0][0] == tags
        assert calls.account.calls_made == 0


def test_a_resume_says_how_many_calls_a_kill_repeats_at_most(tmp_path: Path) -> None:
    limits = CallLimits(2, 3, 60.0)
    assert resume_text(tmp_path, ds="2017-10-30", stage="intents", limits=limits) is None
    with recorder(tmp_path, FakeEngine()) as calls:
        ask(calls, request(1))
    told = resume_text(tmp_path, ds="2017-10-30", stage="intents", limits=limits)
    assert told is not None
    assert "at most 5 calls a shard are repeated: 2 in flight (engine.max_in_flight) + 3 unflushed (ledger.flush_count)" in told
    assert resume_text(tmp_path, ds="2017-10-30", stage="explanations", limits=limits) is None


def test_answers_reach_the_disk_after_flush_seconds(tmp_path: Path) -> None:
    async def one_call_then_wait(calls: CallRecorder) -> None:
        await calls.call(request(1), parse=parse)
        deadline = time.monotonic() + 5
        while not list(tmp_path.rglob("*.seg")) and time.monotonic() < deadline:
            await asyncio.sleep(0.01)

    with recorder(tmp_path, FakeEngine(), flush_seconds=0.05) as calls:
        asyncio.run(one_call_then_wait(calls))
        assert len(list(tmp_path.rglob("1.seg"))) == 1


def test_no_more_than_max_in_flight_wait_at_the_engine(tmp_path: Path) -> None:
    class Counting(FakeEngine):
        now = most = 0

        async def answer(self, request: Request) -> Answer:
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0.005)
            self.now -= 1
            return await super().answer(request)

    engine = Counting()
    with recorder(tmp_path, engine, max_in_flight=3) as calls:
        ask(calls, *map(request, range(12)))
    assert engine.most == 3


def test_shards_change_and_shared_calls_have_their_own(tmp_path: Path) -> None:
    engine = FakeEngine()
    with recorder(tmp_path, engine) as calls:
        ask(calls, request(1, user_id="u_42"))
    with recorder(tmp_path, engine, shard=SHARED) as calls:
        ask(calls, request(2, user_id=None))
    # u_42 is of bucket 703, so the upper half holds it
    with recorder(tmp_path, engine, shard="0512-1023", attempt=2) as calls:
        ask(calls, request(1, user_id="u_42"))
    with recorder(tmp_path, engine, shard=SHARED, attempt=2) as calls:
        ask(calls, request(2, user_id=None))
    assert len(engine.calls) == 2
    with recorder(tmp_path, engine, shard="0000-0511", attempt=2) as calls:
        [error] = ask(calls, request(1, user_id="u_42"))
        assert isinstance(error, UsageError)


IDENTITY = EngineIdentity("m", "hash", "tokens", "vllm 0.32.0")
BASE = Request("expert", "prompt", (), (1, 2, 3), Sampling(64), choice=("a", "b"), user_id="u_42")


@pytest.mark.parametrize(
    ("changed", "identity", "is_same"),
    [
        (replace(BASE, role="planner", user_id="u_7", cache_scope="v1"), IDENTITY, True),
        (replace(BASE, prompt_id="prompt 2"), IDENTITY, False),
        (replace(BASE, token_ids=(1, 2, 4)), IDENTITY, False),
        (replace(BASE, choice=("b", "a")), IDENTITY, False),
        (replace(BASE, choice=None, json_schema=SCHEMA), IDENTITY, False),
        (replace(BASE, choice=None, forced_ids=(1,)), IDENTITY, False),
        (replace(BASE, choice=None, label_ids=(1,)), IDENTITY, False),
        (replace(BASE, basis="set 1"), IDENTITY, False),
        (replace(BASE, sampling=Sampling(64, temperature=0.7)), IDENTITY, False),
        (BASE, replace(IDENTITY, model_hash="other"), False),
        (BASE, replace(IDENTITY, tokenizer_hash="other"), False),
        (BASE, replace(IDENTITY, build="vllm 0.33.0"), False),
    ],
)
def test_case_014_a_call_is_another_when_anything_that_decides_its_answer_changed(
    changed: Request, identity: EngineIdentity, is_same: bool
) -> None:
    assert (fingerprint(changed, identity) == fingerprint(BASE, IDENTITY)) == is_same


def test_a_request_without_labels_and_basis_keeps_the_print_it_had_before_there_were_any() -> None:
    parts = (
        '{"adaptor":null,"build":"vllm 0.32.0","choice":["a","b"],"forced_ids":null,"inputs":[1,2,3],"json_schema":null,'
        '"model_hash":"hash","prompt_id":"prompt","sampling":{"max_tokens":64,"repetition_penalty":1.0,"temperature":0.0,'
        '"top_k":0,"top_p":1.0},"tokenizer_hash":"tokens"}'
    )
    assert fingerprint(BASE, IDENTITY) == hashlib.sha256(parts.encode()).hexdigest()


def test_a_call_costs_what_its_tokens_cost_where_prices_are_set(tmp_path: Path) -> None:
    with recorder(tmp_path, FakeEngine(), prices=Prices(1000.0, 5000.0, "EUR")) as calls:
        ask(calls, request(1))
        [row] = calls.call_rows
    assert row["price"] == pytest.approx((3 * 1000.0 + row["completion_tokens"] * 5000.0) / 1e6)
    assert row["currency"] == "EUR"


def test_a_replay_asks_again_what_was_refused_and_nothing_else(tmp_path: Path) -> None:
    with recorder(tmp_path, faulty(None, "bad_json")) as calls:
        good, refused = ask(calls, request(1), request(2))
        assert isinstance(refused, RowError)
    engine = FakeEngine()
    with recorder(tmp_path, engine, attempt=2, ask_again=True) as calls:
        assert ask(calls, request(1), request(2))[0] == good
        assert (calls.account.calls_made, calls.account.calls_reused) == (1, 1)
    with recorder(tmp_path, engine, attempt=2, ask_again=True) as calls:  # the replay itself, killed and run again
        ask(calls, request(1), request(2))
        assert (calls.account.calls_made, calls.account.calls_reused) == (0, 2)
    with recorder(tmp_path, engine, attempt=3) as calls:  # a rebuild reads the good answer, not the refused one
        assert [type(each) for each in ask(calls, request(1), request(2))] == [tuple, tuple]
        assert calls.account.calls_made == 0


def test_an_answer_that_a_replay_has_refused_again_is_not_asked_for_a_third_time(tmp_path: Path) -> None:
    engine = FakeEngine(faults=lambda request, nth: "bad_json")
    for attempt, made in ((1, 1), (2, 1), (2, 0)):
        with recorder(tmp_path, engine, attempt=attempt, ask_again=attempt == 2) as calls:
            assert isinstance(ask(calls, request(1))[0], RowError)
            assert calls.account.calls_made == made
