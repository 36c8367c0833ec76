"""Where a shard's rows go: product rows to staged files, calls, prompts and failures to their record tables.

Every shard stages its own files and the job publishes them together, so no process holds the rows of all users.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.parquet as pq

from recgpt_ops.agents.shard import ShardPlan, ShardResult
from recgpt_ops.delta.quarantine import quarantine_rows
from recgpt_ops.delta.reading import files_dataset, generation_files
from recgpt_ops.delta.records import append_records
from recgpt_ops.delta.schemas import arrow_schema
from recgpt_ops.delta.staging import stage_directory
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.errors import NightError
from recgpt_ops.ledger.account import TokenAccount
from recgpt_ops.ledger.segments import shard_range
from recgpt_ops.llm.requests import Engine
from recgpt_ops.tables import load_contract

TABLES = ("intent_plans", "tag_proposals", "intent_tags")
READ_ROWS = 256  # contexts read at a time


@dataclass
class ShardSummary:
    """What a shard tells the job: counts, no rows. `+` joins shards."""

    users: int = 0
    failed: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    account: TokenAccount = field(default_factory=TokenAccount)
    tokens_by_role: Counter[str] = field(default_factory=Counter)
    ledger_faults: list[str] = field(default_factory=list)
    engine_loads: int = 0
    engine: dict[str, Any] = field(default_factory=dict)  # what answered: model, hashes, build, effective sampling

    def __add__(self, other: ShardSummary) -> ShardSummary:
        return ShardSummary(
            self.users + other.users,
            self.failed + other.failed,
            self.rows + other.rows,
            self.reasons + other.reasons,
            self.account + other.account,
            self.tokens_by_role + other.tokens_by_role,
            self.ledger_faults + other.ledger_faults,
            self.engine_loads + other.engine_loads,
            other.engine or self.engine,
        )

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values, for the night's record."""
        return asdict(self) | {"rows": dict(self.rows), "reasons": dict(self.reasons), "tokens_by_role": dict(self.tokens_by_role)}


def check_failures(summary: ShardSummary, *, ds: str, max_ratio: float) -> None:
    """NightError when too many users could not be computed: then something else is wrong, and nothing is published."""
    if summary.failed > max_ratio * summary.users:
        reasons = ", ".join(f"{reason} {count}" for reason, count in summary.reasons.most_common())
        raise NightError(
            f"intents, ds={ds}: {summary.failed} of {summary.users} users could not be computed ({reasons}), more than "
            f'quarantine.stage_max_ratio {max_ratio:g}; nothing is published. Read why: recgpt query "select * from quarantine"'
        )


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


def make_stage(warehouse: Warehouse, publish_id: str) -> dict[str, Path]:
    """One new folder per table, in which all shards of a job stage their files."""
    directories = {table: stage_directory(warehouse, table, publish_id) for table in TABLES}
    for directory in directories.values():
        directory.mkdir(parents=True)
    return directories


def land_shard(warehouse: Warehouse, plan: ShardPlan, result: ShardResult, *, stage: Mapping[str, Path], engine: Engine) -> ShardSummary:
    """Stages the product rows (a shard that runs again writes the same files) and records calls, prompts and failures.

    `stage` is what `make_stage` gave, the same for every shard of the job.
    """
    for table, rows in zip(TABLES, (result.plans, result.proposals, result.tags), strict=True):
        schema = arrow_schema(load_contract(table))
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), stage[table] / f"{plan.recipe.name}-{plan.shard}.parquet")
    append_records(warehouse, "llm_calls", result.call_rows)
    append_records(warehouse, "prompts", result.prompt_rows)
    quarantine_rows(warehouse, result.failures)
    tokens: Counter[str] = Counter()
    for row in result.call_rows:
        tokens[row["role"]] += row["prompt_tokens"] + row["completion_tokens"]
    return ShardSummary(
        users=result.user_count,
        failed=len(result.failures),
        rows=Counter({table: len(rows) for table, rows in zip(TABLES, (result.plans, result.proposals, result.tags), strict=True)}),
        reasons=Counter(row.reason for row in result.failures),
        account=result.account,
        tokens_by_role=tokens,
        ledger_faults=result.ledger_faults,
        engine_loads=getattr(engine, "loads", 0),  # only an engine that is loaded counts its loads
        engine=asdict(engine.identity),
    )
