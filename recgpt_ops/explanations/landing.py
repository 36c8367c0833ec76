"""What the stage reads of its night, and where its rows go.

Users are read in slices of their buckets, so no process holds the candidates of all of them; texts are staged by their shards,
assignments by the job once it is known which texts came.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset as pads

from recgpt_ops.delta.catalog import items_as_of
from recgpt_ops.delta.reading import files_dataset, generation_files
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.explanations.assignments import Reader, Surroundings, Tag
from recgpt_ops.explanations.rows import ItemText
from recgpt_ops.explanations.shard import ShardPlan, ShardResult
from recgpt_ops.ledger.segments import shard_names, shard_range
from recgpt_ops.ledger.summaries import ShardSummary, record_shard, stage_rows
from recgpt_ops.llm.requests import Engine
from recgpt_ops.tables import load_contract

TABLES = ("explanations", "explanation_assignments")
USERS_PER_SLICE = 2_000
Place = tuple[str, str]  # region, locale


class Night(NamedTuple):
    """Whose rows are read: one method of one generation."""

    warehouse: Warehouse
    ds: str
    scenario: str
    method: str
    publish_id: str


def read_slice(night: Night, table: str, columns: Collection[str], *, buckets: range = range(1024)) -> pa.Table:
    """Some columns of the rows whose user is in `buckets`."""
    files = generation_files(night.warehouse, table, ds=night.ds, publish_id=night.publish_id)
    where = (
        (pads.field("scenario") == night.scenario)
        & (pads.field("method") == night.method)
        & (pads.field("user_bucket") >= buckets.start)
        & (pads.field("user_bucket") < buckets.stop)
    )
    return files_dataset(load_contract(table), files).to_table(columns=list(columns), filter=where)


def slices(night: Night) -> list[range]:
    """Ranges of buckets with some thousand users each; none where nobody has a context."""
    users = read_slice(night, "user_contexts", ["user_bucket"]).num_rows
    return [shard_range(name) for name in shard_names(-(-users // USERS_PER_SLICE))] if users else []


def places(night: Night) -> set[Place]:
    """Every (region, locale) of the users."""
    rows = read_slice(night, "user_contexts", ["region", "locale"])
    return {(row["region"], row["locale"]) for row in rows.group_by(["region", "locale"]).aggregate([]).to_pylist()}


def candidate_item_ids(night: Night) -> set[str]:
    """Every item that may be explained."""
    return {str(item_id) for item_id in read_slice(night, "candidate_items", ["item_id"])["item_id"].unique().to_pylist()}


def item_texts(warehouse: Warehouse, ds: str, item_ids: Collection[str], *, clean: Callable[[str], str]) -> dict[str, ItemText]:
    """item_id -> its text as of `ds`, each part cleaned to one line."""
    columns = ["item_id", "text_hash", "title", "category", "item_type", "brand"]
    items = items_as_of(warehouse, ds, columns=columns)
    wanted = items.filter(pads.field("item_id").isin(pa.array(sorted(item_ids), pa.string())))
    return {
        row["item_id"]: ItemText(row["text_hash"], *(clean(row[name] or "") for name in ("title", "category", "item_type", "brand")))
        for row in wanted.to_pylist()
    }


def brand_names(warehouse: Warehouse, ds: str) -> frozenset[str]:
    """The brands of the catalog as of `ds`, casefolded."""
    brands = items_as_of(warehouse, ds, columns=["brand"])["brand"].drop_null().unique().to_pylist()
    return frozenset(" ".join(str(brand).casefold().split()) for brand in brands) - {""}


def readers(night: Night, buckets: range, surroundings: Mapping[Place, Surroundings]) -> list[Reader]:
    """The users of a slice with their tags and candidates, by user_id."""
    candidates: defaultdict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    for row in slice_rows(night, "candidate_items", ["user_id", "tag_id", "item_id", "rank"], buckets):
        candidates[row["user_id"], row["tag_id"]].append((row["rank"], row["item_id"]))
    tags: defaultdict[str, list[tuple[int, Tag]]] = defaultdict(list)
    for row in slice_rows(night, "intent_tags", ["user_id", "tag_id", "tag", "locale", "rank"], buckets):
        found = tuple(item_id for _, item_id in sorted(candidates[row["user_id"], row["tag_id"]]))
        tags[row["user_id"]].append((row["rank"], Tag(row["tag_id"], row["tag"], row["locale"], found)))
    users = slice_rows(night, "user_contexts", ["user_id", "user_bucket", "region", "locale", "situation_id"], buckets)
    return [
        Reader(
            row["user_id"], row["user_bucket"], row["situation_id"], surroundings[row["region"], row["locale"]],
            tuple(tag for _, tag in sorted(tags[row["user_id"]])),
        )
        for row in sorted(users, key=lambda row: str(row["user_id"]))
    ]  # fmt: skip


def slice_rows(night: Night, table: str, columns: Collection[str], buckets: range) -> Iterable[dict[str, Any]]:
    """`read_slice` row by row."""
    rows: list[dict[str, Any]] = read_slice(night, table, columns, buckets=buckets).to_pylist()
    return rows


def land_shard(warehouse: Warehouse, plan: ShardPlan, result: ShardResult, *, stage: Mapping[str, Path], engine: Engine) -> ShardSummary:
    """Stages the texts and records calls, prompts and failures."""
    stage_rows(stage["explanations"], "explanations", result.rows, file=f"{plan.recipe.name}-{plan.shard}")
    return record_shard(
        warehouse,
        result,
        engine=engine,
        inputs=len(plan.wanted),
        rows={"explanations": len(result.rows)},
    )


class Texts(NamedTuple):
    """What a recipe's shards staged: the ids of the texts, and how many guidelines they follow."""

    ids: frozenset[str]
    style_count: int


def staged_texts(stage: Path, method: str) -> Texts:
    """The texts of one method in the job's stage."""
    files = sorted(str(path) for path in stage.glob(f"{method}-[0-9]*.parquet"))
    if not files:
        return Texts(frozenset(), 0)
    rows = pads.dataset(files).to_table(columns=["method", "explanation_id", "style"], filter=pads.field("method") == method)
    return Texts(frozenset(map(str, rows["explanation_id"].to_pylist())), len(rows["style"].drop_null().unique()))
