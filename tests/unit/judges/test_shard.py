"""A shard from this generation's rows to staged verdicts and records, in a small warehouse with a fake engine and no Ray."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from recgpt_ops.delta.records import read_rows
from recgpt_ops.delta.schemas import arrow_schema
from recgpt_ops.delta.warehouse import Warehouse, create_table, fix_identity, open_warehouse
from recgpt_ops.errors import EngineError, NightError
from recgpt_ops.ids import user_bucket
from recgpt_ops.judges.landing import as_detail, candidates, count_subjects, land_shard
from recgpt_ops.judges.rules import is_in_share, planned_calls
from recgpt_ops.judges.shard import TABLES, ShardResult, VerdictPlan, compute_shard
from recgpt_ops.ledger.segments import shard_names
from recgpt_ops.ledger.summaries import check_failures, make_stage
from recgpt_ops.llm.fake import FakeEngine
from recgpt_ops.llm.tokenizer import PromptTokenizer
from recgpt_ops.tables import load_contract

from .conftest import LIMITS, TEXT, USER, flat_cutoffs, settings

DS, P1, P2 = "2017-10-30", "p0000000000000001", "p0000000000000002"
USERS = [f"u{number}" for number in range(5)]
TAGS = ("dog bed", "cat tree")
NIGHT = {"ds": DS, "publish_id": P1, "scenario": "default", "method": "v2"}


def plan_of(kind: str, shard: str = "0000-1023", method: str = "v2") -> VerdictPlan:
    return VerdictPlan(kind, DS, "default", P1, 1, shard, method, True)  # type: ignore[arg-type]  # a kind as a plain word


def context_row(user_id: str, method: str) -> dict[str, Any]:
    lines = [
        {**line, "facts": [], "item_ids": [], "queries": [], "newest_at": datetime(2017, 10, 28, tzinfo=UTC)} for line in USER["lines"]
    ]
    return NIGHT | {
        "method": method, "user_id": user_id, "user_bucket": user_bucket(user_id), "locale": "en-US", "region": "US",
        "serve_ds": "2017-10-31", "situation_id": "s", "text": "x",
        "attributes": [{"name": "id", "value": user_id}], "signals": USER["signals"], "lines": lines,
        "context_tokens": 50, "plain_tokens": 90, "budget_tokens": 2048, "cut_line_count": 0, "cut_item_count": 0,
        "unknown_item_count": 0, "groups": [], "recent_item_types": [],
    }  # fmt: skip


def tag_row(user_id: str, tag: str, rank: int, **changes: str) -> dict[str, Any]:
    return NIGHT | {
        "user_id": user_id, "user_bucket": user_bucket(user_id), "tag_id": f"id of {tag}", "intent_tag_id": f"{user_id} {tag}",
        "locale": "en-US", "tag": tag, "rank": rank, "score": 1.0, "persona_indexes": [1], "pool_index": 1, "reason": None, "call_id": "c",
    } | changes  # fmt: skip


def explanation_row(number: int, **changes: str) -> dict[str, Any]:
    return NIGHT | {
        "explanation_id": f"e{number}", "tag_id": "t", "tag": TEXT["tag"], "text_hash": "h", "item_text": TEXT["item_text"],
        "situation_id": "s", "situation": TEXT["situation"], "locale": "en-US", "style": None, "style_call_id": None,
        "text": f"text number {number}", "call_id": "c", "writer_hash": "w",
    } | changes  # fmt: skip


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """Five users with two tags and six explanations in generation P1, by two methods; one of each in another generation."""
    made = open_warehouse(str(tmp_path / "warehouse"), create=True)
    fix_identity(made, zone="America/New_York", locale="en-US")
    rows = {
        "user_contexts": [context_row(user, method) for user in USERS for method in ("v1", "v2")],
        "intent_tags": [
            tag_row(user, tag, rank, method=method) for method in ("v1", "v2") for user in USERS for rank, tag in enumerate(TAGS, start=1)
        ] + [tag_row("u0", "stranger", 1, publish_id=P2)],
        "explanations": [explanation_row(number) for number in range(6)] + [explanation_row(9, publish_id=P2)],
    }  # fmt: skip
    for table, these in rows.items():
        create_table(made, table)
        write_deltalake(made.open(table), pa.Table.from_pylist(these, schema=arrow_schema(load_contract(table))), mode="append")
    return made


@pytest.fixture
def run_shard(warehouse: Warehouse, tokenizer: PromptTokenizer) -> Callable[..., ShardResult]:
    def run(engine: FakeEngine, plan: VerdictPlan, *, ratio: float = 1.0, **variables: str) -> ShardResult:
        known = settings(**variables)
        return compute_shard(
            plan, candidates(warehouse, plan, ratio=ratio), settings=known, engine=engine, tokenizer=tokenizer,
            cutoffs=flat_cutoffs() if known.judging.level_from == "label_logprobs" else None,
            ledger_root=Path(warehouse.root) / "_ledger", limits=LIMITS,
        )  # fmt: skip

    return run


@pytest.mark.parametrize(("kind", "rows", "dimensions"), [("tag", 10, 4), ("explanation", 6, 7)])
def test_every_output_of_this_generation_is_judged_by_both_methods_and_the_rows_keep_the_contract(
    warehouse: Warehouse, run_shard: Callable[..., ShardResult], kind: str, rows: int, dimensions: int
) -> None:
    engine, plan = FakeEngine(), plan_of(kind)
    result = run_shard(engine, plan)
    assert count_subjects(warehouse, plan, ratio=1.0) == rows
    assert len(engine.calls) == planned_calls(plan.kind, rows, settings=settings())
    table = TABLES[plan.kind]
    stage = make_stage(warehouse, P1, (table,))
    summary = land_shard(warehouse, plan, result, stage=stage, engine=engine)
    staged = pq.read_table(stage[table]).to_pylist()
    assert (summary.inputs, summary.failed, summary.rows[table], len(staged)) == (2 * rows, 0, 2 * rows, 2 * rows)
    keys = [tuple(row[name] for name in load_contract(table).key) for row in staged]
    assert len(set(keys)) == len(keys)
    for row in staged:
        assert row["is_self_judged"] is True
        assert row["judge_model"] == "fake"
        assert row["label"] in ("S", "A", "B")
        assert len(row["levels"]) == (dimensions if row["judge_method"] == "panel" else 1)
        assert all(level["call_id"] and level["score"] is not None for level in row["levels"])
    assert len({(row["judge_method"], row["judge_hash"]) for row in staged}) == 2
    assert len(read_rows(warehouse, "llm_calls")) == len(engine.calls)


def test_the_verdicts_are_counted_by_method_judge_and_dimension(run_shard: Callable[..., ShardResult]) -> None:
    result = run_shard(FakeEngine(), plan_of("tag"))
    told = as_detail(result.tallies, "tag", methods=["v2"], judge_methods=["panel", "one_shot"])
    panel = told["verdicts"]["v2"]["panel"]
    assert list(panel) == ["judged", "failed", "by_rule", "excluded", "S", "A", "B"]
    assert panel["judged"] == panel["S"] + panel["A"] + panel["B"] == 10
    assert list(told["levels"]["v2"]) == ["relevance", "consistency", "specificity", "validity", "overall"]
    assert all(sum(levels.values()) == 10 for levels in told["levels"]["v2"].values())


def test_both_writers_tags_are_judged_on_the_same_bytes(run_shard: Callable[..., ShardResult]) -> None:
    prompts = []
    for method in ("v1", "v2"):
        engine = FakeEngine()
        run_shard(engine, plan_of("tag", method=method))
        prompts.append([request.token_ids for request in engine.calls])
    assert sorted(prompts[0]) == sorted(prompts[1])


def test_shards_together_judge_what_one_does_alone(run_shard: Callable[..., ShardResult]) -> None:
    for kind in ("tag", "explanation"):
        whole = run_shard(FakeEngine(), plan_of(kind)).rows
        parts = [run_shard(FakeEngine(), plan_of(kind, shard)).rows for shard in shard_names(3)]
        name = "tag_id" if kind == "tag" else "explanation_id"
        assert {(row.get("user_id"), row[name], row["judge_method"]) for part in parts for row in part} == {
            (row.get("user_id"), row[name], row["judge_method"]) for row in whole
        }
        assert sum(map(len, parts)) == len(whole)


def test_what_is_outside_of_the_share_is_excluded_and_counted(warehouse: Warehouse, run_shard: Callable[..., ShardResult]) -> None:
    inside = [user for user in USERS if is_in_share(user, 0.5)]
    assert 0 < len(inside) < 5
    result = run_shard(FakeEngine(), plan_of("tag"), ratio=0.5)
    assert {row["user_id"] for row in result.rows} == set(inside)
    assert count_subjects(warehouse, plan_of("tag"), ratio=0.5) == 2 * len(inside)
    assert result.tallies["verdicts", "v2", "panel", "excluded"] == 2 * (5 - len(inside))


def test_case_050_a_second_attempt_reads_the_ledger_and_gives_the_same_rows(run_shard: Callable[..., ShardResult]) -> None:
    engine = FakeEngine()
    first = run_shard(engine, plan_of("explanation"))
    made = len(engine.calls)
    second = run_shard(engine, plan_of("explanation")._replace(attempt=2))
    assert second.rows == first.rows
    assert (len(engine.calls), second.account.calls_made, second.account.calls_reused) == (made, 0, made)


def test_case_054_a_judge_that_always_errs_fails_the_stage_with_the_reasons_and_their_counts(
    warehouse: Warehouse, run_shard: Callable[..., ShardResult]
) -> None:
    engine = FakeEngine(texts=lambda request: "8/10" if request.role != "judge_one_shot" else "I cannot.")
    result = run_shard(engine, plan_of("explanation"), level_from="generation")
    assert {(row["status"], row["label"]) for row in result.rows} == {("failed", None)}
    stage = make_stage(warehouse, P1, ("explanation_verdicts",))
    summary = land_shard(warehouse, plan_of("explanation"), result, stage=stage, engine=engine)
    with pytest.raises(NightError, match=r"12 of 12 verdicts could not be computed \(refusal 6, a_number 6\), all or more than"):
        check_failures(summary, stage="explanation_verdicts", what="verdicts", ds=DS, max_ratio=1.0)
    quarantined = read_rows(warehouse, "quarantine")
    assert len(quarantined) == 12
    assert "second try" in str(quarantined[0]["detail"])


def test_case_049_one_bad_reply_leaves_a_failed_row_and_all_others_judged(run_shard: Callable[..., ShardResult]) -> None:
    def texts(request: Any) -> str:
        bad = "text number 3" in request.messages[1].text and request.role == "judge_clarity"
        return "{" if bad else '{"level":"positive","reason":"fine"}'

    result = run_shard(FakeEngine(texts=texts), plan_of("explanation"), level_from="generation", judge_methods="[panel]")
    assert [row["explanation_id"] for row in result.rows if row["status"] == "failed"] == ["e3"]
    assert [row["label"] for row in result.rows].count("S") == 5
    [failure] = result.failures
    assert (failure.reason, failure.row_key) == ("not_json", "e3 panel")


def test_a_dead_engine_ends_the_shard_and_keeps_what_was_answered(run_shard: Callable[..., ShardResult]) -> None:
    dying = FakeEngine(faults=lambda request, nth: "engine_death" if nth == 30 else None)
    with pytest.raises(EngineError, match="died at call 30"):
        run_shard(dying, plan_of("explanation"))
    again = FakeEngine()
    run_shard(again, plan_of("explanation")._replace(attempt=2))
    assert len(again.calls) < planned_calls("explanation", 6, settings=settings()) - 10
