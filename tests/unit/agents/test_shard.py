"""A shard from contexts to staged files and records, in a small warehouse with a fake engine and no Ray."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from recgpt_ops.agents.landing import TABLES, context_rows, count_contexts, land_shard
from recgpt_ops.agents.shard import ShardPlan, ShardResult, compute_shard
from recgpt_ops.delta.records import read_rows
from recgpt_ops.delta.schemas import arrow_schema
from recgpt_ops.delta.warehouse import Warehouse, create_table, fix_identity, open_warehouse
from recgpt_ops.errors import NightError
from recgpt_ops.ids import user_bucket
from recgpt_ops.ledger.segments import shard_names, shard_range
from recgpt_ops.ledger.summaries import CallLimits, ShardSummary, check_failures, make_stage
from recgpt_ops.llm.fake import FakeEngine
from recgpt_ops.llm.tokenizer import PromptTokenizer
from recgpt_ops.recipes import load_recipe
from recgpt_ops.tables import load_contract

from .conftest import WORDS, LetterEmbedder, make_context

DS, P1 = "2017-10-30", "p0000000000000001"
USERS = [f"u{number}" for number in range(10)]
NEWEST = datetime(2017, 10, 28, tzinfo=UTC)
PLAN = ShardPlan(DS, "default", P1, 1, "0000-1023", load_recipe("v2"))


def context_row(user_id: str, publish_id: str = P1) -> dict[str, Any]:
    context = make_context(user_id)
    return {
        "ds": DS, "publish_id": publish_id, "scenario": "default", "method": "v2", "user_id": user_id, "user_bucket": user_bucket(user_id),
        "locale": "en-US", "region": "US", "serve_ds": "2017-10-31", "situation_id": "s", "text": context.text, "signals": context.signals,
        "attributes": [{"name": name, "value": value} for name, value in context.attributes],
        "lines": [
            {"line_id": n, "text": "x", "facts": [], "item_ids": [], "queries": [], "newest_at": NEWEST} for n in context.line_ids
        ],
        "context_tokens": 50, "plain_tokens": 90, "budget_tokens": 2048, "cut_line_count": 0, "cut_item_count": 0, "unknown_item_count": 0,
        "groups": [
            group._asdict() | {"item_types": [{"name": name, "event_count": 1} for name in group.item_types]} for group in context.groups
        ],
        "recent_item_types": context.recent_item_types,
    }  # fmt: skip


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """Ten users with contexts in generation P1, and one in another generation."""
    made = open_warehouse(str(tmp_path / "warehouse"), create=True)
    fix_identity(made, zone="America/New_York", locale="en-US")
    create_table(made, "user_contexts")
    rows = [context_row(user) for user in USERS] + [context_row("stranger", "p0000000000000002")]
    table = pa.Table.from_pylist(rows, schema=arrow_schema(load_contract("user_contexts")))
    write_deltalake(made.open("user_contexts"), table, mode="append")
    return made


@pytest.fixture
def run_shard(warehouse: Warehouse, tokenizer: PromptTokenizer, embedder: LetterEmbedder) -> Callable[..., ShardResult]:
    def run(engine: FakeEngine, plan: ShardPlan = PLAN, **changes: Any) -> ShardResult:
        return compute_shard(
            plan, context_rows(warehouse, plan), words=WORDS, engine=engine, embedder=embedder, tokenizer=tokenizer,
            ledger_root=Path(warehouse.root) / "_ledger", limits=CallLimits(16, 64, 2.0), **changes,
        )  # fmt: skip

    return run


def land(warehouse: Warehouse, result: ShardResult, engine: FakeEngine) -> tuple[ShardSummary, dict[str, list[dict[str, Any]]]]:
    """The summary, and the staged rows by table."""
    stage = make_stage(warehouse, P1, TABLES)
    summary = land_shard(warehouse, PLAN, result, stage=stage, engine=engine)
    return summary, {table: pq.read_table(stage[table]).to_pylist() for table in TABLES}


def test_ranges_of_buckets_touch_and_cover_all_users() -> None:
    for count in (1, 3, 7, 1024, 5000):
        names = shard_names(count)
        assert [bucket for name in names for bucket in shard_range(name)] == list(range(1024))
        assert len(names) == min(count, 1024)


def test_shards_read_their_own_users_of_their_own_generation(warehouse: Warehouse) -> None:
    plans = [PLAN._replace(shard=name) for name in shard_names(4)]
    read = [row["user_id"] for plan in plans for row in context_rows(warehouse, plan)]
    assert sorted(read) == USERS
    assert sum(count_contexts(warehouse, plan) for plan in plans) == 10


def test_nine_of_ten_users_are_staged_and_the_tenth_is_in_quarantine(warehouse: Warehouse, run_shard: Callable[..., ShardResult]) -> None:
    engine = FakeEngine(faults=lambda request, nth: "row_error" if request.user_id == "u3" else None)
    summary, staged = land(warehouse, run_shard(engine), engine)
    assert (summary.inputs, summary.failed, dict(summary.reasons)) == (10, 1, {"engine_refused": 1})
    assert dict(summary.rows) == {"intent_plans": 27, "tag_proposals": 135, "intent_tags": 54}
    assert sorted({row["user_id"] for row in staged["intent_tags"]}) == [user for user in USERS if user != "u3"]
    (bad,) = read_rows(warehouse, "quarantine")
    assert (bad["user_id"], bad["reason"], bad["attempt"], bad["ds"]) == ("u3", "engine_refused", 1, DS)
    assert "try again: recgpt quarantine replay --ds 2017-10-30 --user u3" in bad["detail"]
    assert bad["raw"] == make_context("u3").text


def test_every_row_names_a_call_that_is_recorded_once_and_prompts_are_kept(
    warehouse: Warehouse, run_shard: Callable[..., ShardResult]
) -> None:
    engine = FakeEngine()
    summary, staged = land(warehouse, run_shard(engine), engine)
    calls = {row["call_id"]: row for row in read_rows(warehouse, "llm_calls")}
    assert len(calls) == len(engine.calls) == summary.account.calls_made
    for rows in staged.values():
        assert {row["call_id"] for row in rows} <= set(calls)
    assert {row["prompt_id"] for row in calls.values()} == {row["prompt_id"] for row in read_rows(warehouse, "prompts")}
    assert {row["user_id"] for row in calls.values() if row["role"] == "arbiter_null"} == {None}


def test_a_rerun_makes_no_call_and_the_same_rows(warehouse: Warehouse, run_shard: Callable[..., ShardResult]) -> None:
    first = run_shard(FakeEngine())
    engine = FakeEngine()
    again = run_shard(engine)
    assert engine.calls == []
    assert (again.account.calls_made, again.plans, again.proposals, again.tags) == (0, first.plans, first.proposals, first.tags)
    assert {row["call_id"] for row in again.call_rows} == {row["call_id"] for row in first.call_rows}


def test_another_number_of_shards_makes_the_same_rows(run_shard: Callable[..., ShardResult]) -> None:
    whole = run_shard(FakeEngine())
    parts = [run_shard(FakeEngine(), PLAN._replace(shard=name)) for name in shard_names(3)]
    assert sorted((tag["user_id"], tag["rank"], tag["tag"]) for part in parts for tag in part.tags) == sorted(
        (tag["user_id"], tag["rank"], tag["tag"]) for tag in whole.tags
    )


def test_progress_tells_users_and_calls_to_the_end(run_shard: Callable[..., ShardResult]) -> None:
    told: list[tuple[int, int]] = []
    result = run_shard(FakeEngine(), on_progress=lambda users, account: told.append((users, account.calls_made + account.calls_reused)))
    assert told[0] == (0, 0)
    assert told[-1] == (10, result.account.calls_made + result.account.calls_reused)


def test_too_many_failed_users_stop_the_stage_before_anything_is_published() -> None:
    summary = ShardSummary(inputs=10, failed=2)
    check_failures(summary, stage="intents", what="users", ds=DS, max_ratio=0.2)
    with pytest.raises(NightError, match=r"2 of 10 users could not be computed .* more than quarantine.stage_max_ratio 0.1"):
        check_failures(summary, stage="intents", what="users", ds=DS, max_ratio=0.1)


def test_summaries_of_shards_add_up() -> None:
    one = ShardSummary(inputs=3, failed=1, engine={"model": "m"})
    assert (one + replace(one, inputs=4)).inputs == 7
    assert (ShardSummary() + one).engine == {"model": "m"}
