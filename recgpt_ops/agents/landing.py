"""Where a shard's rows go: product rows to staged files, calls, prompts and failures to their record tables.

Every shard stages its own files and the job publishes them together, so no process holds the rows of all users.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as pads

from recgpt_ops.agents.shard import ShardPlan, ShardResult
from recgpt_ops.delta.reading import files_dataset, generation_files
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.ledger.segments import shard_range
from recgpt_ops.ledger.summaries import ShardSummary, record_shard, stage_rows
from recgpt_ops.llm.requests import Engine
from recgpt_ops.tables import load_contract

TABLES = ("intent_plans", "tag_proposals", "intent_tags")
READ_ROWS = 256  # contexts read at a time


def context_rows(warehouse: Warehouse, plan: ShardPlan) -> Iterator[Mapping[str, Any]]:
    """The shard's rows of `user_contexts` in this generation, read as they are asked for."""
    dataset, where = shard_contexts(warehouse, plan)
    for batch in dataset.to_batches(filter=where, batch_size=READ_ROWS):
        yield from batch.to_pylist()


def count_contexts(warehouse: Warehouse, plan: ShardPlan) -> int:
    """How many users `context_rows` will give."""
    dataset, where = shard_contexts(warehouse, plan)
    return int(dataset.count_rows(filter=where))


def shard_contexts(warehouse: Warehouse, plan: ShardPlan) -> tuple[pads.Dataset, pc.Expression]:
    """The generation's files of `user_contexts` and what tells the shard's rows among them."""
    files = generation_files(warehouse, "user_contexts", ds=plan.ds, publish_id=plan.publish_id)
    buckets = shard_range(plan.shard)
    where = (
        (pads.field("scenario") == plan.scenario)
        & (pads.field("method") == plan.recipe.name)
        & (pads.field("user_bucket") >= buckets.start)
        & (pads.field("user_bucket") < buckets.stop)
    )
    return files_dataset(load_contract("user_contexts"), files), where


def land_shard(warehouse: Warehouse, plan: ShardPlan, result: ShardResult, *, stage: Mapping[str, Path], engine: Engine) -> ShardSummary:
    """Stages the product rows and records calls, prompts and failures. `stage` is what `make_stage` gave, the same for every shard."""
    rows = dict(zip(TABLES, (result.plans, result.proposals, result.tags), strict=True))
    for table, made in rows.items():
        stage_rows(stage[table], table, made, file=f"{plan.recipe.name}-{plan.shard}")
    return record_shard(
        warehouse,
        result,
        engine=engine,
        inputs=result.user_count,
        rows={table: len(made) for table, made in rows.items()},
    )
