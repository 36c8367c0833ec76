"""Where a shard's subjects come from and its verdicts go: this generation's rows in, staged files and record tables out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as pads

from recgpt_ops.delta.reading import files_dataset, generation_files
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.ids import user_bucket
from recgpt_ops.judges.dimensions import DIMENSIONS, LEVELS, OVERALL, Kind
from recgpt_ops.judges.judge import Judge, Subject
from recgpt_ops.judges.rules import is_in_share
from recgpt_ops.judges.shard import TABLES, Candidate, ShardResult, VerdictPlan
from recgpt_ops.judges.subjects import explanation_subject, tag_subject, user_context
from recgpt_ops.ledger.segments import shard_range
from recgpt_ops.ledger.summaries import ShardSummary, record_shard, stage_rows
from recgpt_ops.llm.requests import Engine
from recgpt_ops.tables import load_contract

SOURCES: dict[Kind, str] = {"tag": "intent_tags", "explanation": "explanations"}
READ_ROWS = 256  # rows read at a time
CONTEXT_COLUMNS = ["user_id", "locale", "attributes", "signals", "lines"]
COUNTED = ("judged", "failed", "by_rule", "excluded", "S", "A", "B")


def generation_rows(warehouse: Warehouse, table: str, plan: VerdictPlan) -> tuple[pads.Dataset, pc.Expression]:
    """The generation's files of a table, and what tells the method's rows among them."""
    files = generation_files(warehouse, table, ds=plan.ds, publish_id=plan.publish_id)
    where = (pads.field("scenario") == plan.scenario) & (pads.field("method") == plan.method)
    return files_dataset(load_contract(table), files), where


def in_buckets(plan: VerdictPlan) -> pc.Expression:
    """The rows of the shard's users."""
    buckets = shard_range(plan.shard)
    return (pads.field("user_bucket") >= buckets.start) & (pads.field("user_bucket") < buckets.stop)


def count_subjects(warehouse: Warehouse, plan: VerdictPlan, *, ratio: float) -> int:
    """How many candidates of the shard lie in the judged share."""
    drawn_by = "user_id" if plan.kind == "tag" else "explanation_id"
    dataset, where = generation_rows(warehouse, SOURCES[plan.kind], plan)
    keys: list[Any] = dataset.to_table(columns=[drawn_by], filter=where).column(drawn_by).to_pylist()
    buckets = shard_range(plan.shard)
    return sum(1 for key in keys if user_bucket(key) in buckets and is_in_share(key, ratio))


def candidates(warehouse: Warehouse, plan: VerdictPlan, *, ratio: float) -> Iterator[Candidate]:
    """The shard's rows, each with how it becomes a subject."""
    return tag_candidates(warehouse, plan, ratio=ratio) if plan.kind == "tag" else explanation_candidates(warehouse, plan, ratio=ratio)


def tag_candidates(warehouse: Warehouse, plan: VerdictPlan, *, ratio: float) -> Iterator[Candidate]:
    """Tags, user by user, so that what a user's calls share is still in the engine's cache."""
    dataset, where = generation_rows(warehouse, "intent_tags", plan)
    columns = ["user_id", "user_bucket", "tag_id", "tag", "rank"]
    tags: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in dataset.to_table(columns=columns, filter=where & in_buckets(plan)).to_pylist():
        tags[row["user_id"]].append(row)
    dataset, where = generation_rows(warehouse, "user_contexts", plan)
    for batch in dataset.to_batches(columns=CONTEXT_COLUMNS, filter=where & in_buckets(plan), batch_size=READ_ROWS):
        for user in batch.to_pylist():
            for tag in sorted(tags.get(user["user_id"], ()), key=lambda tag: tag["rank"]):
                key = {name: tag[name] for name in ("user_id", "user_bucket", "tag_id")}
                yield Candidate(key, partial(make_tag, tag, user), not is_in_share(user["user_id"], ratio))


def make_tag(tag: Mapping[str, Any], user: Mapping[str, Any], judge: Judge) -> Subject:
    """The tag as a subject beside its user's context."""
    return tag_subject(tag, locale=user["locale"], context=user_context(user, judge), judge=judge)


def explanation_candidates(warehouse: Warehouse, plan: VerdictPlan, *, ratio: float) -> Iterator[Candidate]:
    """Explanations of this generation, by interest, so that equal beginnings of prompts come one after the other."""
    dataset, where = generation_rows(warehouse, "explanations", plan)
    columns = ["explanation_id", "tag", "item_text", "situation", "locale", "text"]
    buckets = shard_range(plan.shard)
    rows = [row for row in dataset.to_table(columns=columns, filter=where).to_pylist() if user_bucket(row["explanation_id"]) in buckets]
    for row in sorted(rows, key=lambda row: (row["tag"], row["item_text"], row["explanation_id"])):
        key = {"explanation_id": row["explanation_id"]}
        yield Candidate(key, partial(explanation_subject, row), not is_in_share(row["explanation_id"], ratio))


def land_shard(warehouse: Warehouse, plan: VerdictPlan, result: ShardResult, *, stage: Mapping[str, Path], engine: Engine) -> ShardSummary:
    """Stages the verdicts and records calls, prompts and failures. A verdict counts as one input."""
    table = TABLES[plan.kind]
    stage_rows(stage[table], table, result.rows, file=f"{plan.method}-{plan.shard}")
    summary = record_shard(
        warehouse,
        result,
        engine=engine,
        inputs=result.judged,
        rows={table: len(result.rows)},
    )
    summary.tallies = result.tallies
    return summary


def as_detail(
    tallies: Mapping[tuple[str, ...], int], kind: Kind, *, methods: Collection[str], judge_methods: Collection[str]
) -> dict[str, Any]:
    """The tallies as the night's record keeps them, every count there even where it is 0.

    {"verdicts": {"v2": {"panel": {"judged": 8, "failed": 0, ...}}}, "levels": {"v2": {"relevance": {"negative": 2, ...}}}}
    """
    dimensions = [dimension.name for dimension in DIMENSIONS[kind]] if "panel" in judge_methods else []
    dimensions += [OVERALL] if "one_shot" in judge_methods else []
    return {
        "verdicts": {
            method: {judge: {what: tallies.get(("verdicts", method, judge, what), 0) for what in COUNTED} for judge in judge_methods}
            for method in methods
        },
        "levels": {
            method: {name: {level: tallies.get(("levels", method, name, level), 0) for level in (*LEVELS, "failed")} for name in dimensions}
            for method in methods
        },
    }
