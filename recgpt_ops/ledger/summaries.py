"""What a shard of model calls leaves behind: its calls, templates and failures on record, and a summary for the job.

summary = record_shard(warehouse, result, engine=engine, inputs=8, rows={"intent_tags": 48})
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from recgpt_ops.delta.quarantine import QuarantineRow, quarantine_rows
from recgpt_ops.delta.records import append_records
from recgpt_ops.delta.schemas import arrow_schema
from recgpt_ops.delta.staging import stage_directory
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.effects import effect
from recgpt_ops.errors import NightError
from recgpt_ops.ledger.account import Prices, TokenAccount
from recgpt_ops.ledger.recorder import CallRecorder
from recgpt_ops.llm.requests import Engine
from recgpt_ops.settings import Engine as EngineSettings
from recgpt_ops.settings import Settings
from recgpt_ops.tables import load_contract

T = TypeVar("T")
PROGRESS_SECONDS = 1.0
CALL_ROWS_A_COMMIT = 50_000  # some 100 MB of memory


class CallLimits(NamedTuple):
    """How many calls wait at once, how many answers or seconds a kill may cost, and what tokens cost (None: nobody said)."""

    max_in_flight: int
    flush_count: int
    flush_seconds: float
    prices: Prices | None = None


@dataclass
class ShardRecord:
    """What every shard leaves on record beside its rows; the shards' results add these. `keep` fills in all but the failures."""

    failures: list[QuarantineRow] = field(default_factory=list)
    call_rows: Iterable[dict[str, Any]] = ()
    prompt_rows: list[dict[str, Any]] = field(default_factory=list)
    account: TokenAccount = field(default_factory=TokenAccount)
    ledger_faults: list[str] = field(default_factory=list)

    def keep(self, calls: CallRecorder, prompt_rows: list[dict[str, Any]]) -> None:
        """Takes over what a recorder holds, and the templates that were used."""
        self.call_rows, self.prompt_rows = calls.call_rows, prompt_rows
        self.account, self.ledger_faults = calls.account, calls.faults


@dataclass
class ShardSummary:
    """What a shard tells the job: counts, no rows. `+` joins shards."""

    inputs: int = 0  # users, or whatever the stage computes one by one
    failed: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    account: TokenAccount = field(default_factory=TokenAccount)
    tokens_by_role: Counter[str] = field(default_factory=Counter)
    ledger_faults: list[str] = field(default_factory=list)
    engine_loads: int = 0
    engine: dict[str, Any] = field(default_factory=dict)  # what answered: model, hashes, build, effective sampling
    tallies: Counter[tuple[str, ...]] = field(default_factory=Counter)  # further counts, each under a path of words

    def __add__(self, other: ShardSummary) -> ShardSummary:
        return ShardSummary(
            self.inputs + other.inputs,
            self.failed + other.failed,
            self.rows + other.rows,
            self.reasons + other.reasons,
            self.account + other.account,
            self.tokens_by_role + other.tokens_by_role,
            self.ledger_faults + other.ledger_faults,
            self.engine_loads + other.engine_loads,
            other.engine or self.engine,
            self.tallies + other.tallies,
        )

    def as_dict(self) -> dict[str, Any]:
        """All of it but the tallies as plain values, for the night's record."""
        plain = asdict(replace(self, tallies=Counter()))
        del plain["tallies"]
        return plain | {"rows": dict(self.rows), "reasons": dict(self.reasons), "tokens_by_role": dict(self.tokens_by_role)}


def check_failures(summary: ShardSummary, *, stage: str, what: str, ds: str, max_ratio: float) -> None:
    """NightError when too many inputs could not be computed: then something else is wrong, and nothing is published.

    `what` names the inputs, such as users. The reasons are told with their counts, the commonest first.
    """
    if summary.failed > max_ratio * summary.inputs or 0 < summary.inputs == summary.failed:
        reasons = ", ".join(f"{reason} {count}" for reason, count in summary.reasons.most_common())
        raise NightError(
            f"{stage}, ds={ds}: {summary.failed} of {summary.inputs} {what} could not be computed ({reasons}), all or more than "
            f'quarantine.stage_max_ratio {max_ratio:g}; nothing is published. Read why: recgpt query "select * from quarantine"'
        )


def is_degraded(failed: int, inputs: int, *, degraded_ratio: float) -> bool:
    """Whether so many inputs failed that it has to be said; too many for publishing is `check_failures`' matter."""
    return failed > degraded_ratio * inputs


def stage_outcome(failed: int, inputs: int, *, degraded_ratio: float) -> dict[str, Any]:
    """What the record of a stage that publishes says of its failures: ok or degraded, and the two counts."""
    outcome = "degraded" if is_degraded(failed, inputs, degraded_ratio=degraded_ratio) else "ok"
    return {"outcome": outcome, "inputs_failed": failed, "inputs": inputs}


def call_limits(settings: Settings) -> CallLimits:
    """The limits of these settings."""
    return CallLimits(
        settings.engine.max_in_flight, settings.ledger.flush_count, settings.ledger.flush_seconds, prices_of(settings.engine)
    )  # fmt: skip


def prices_of(engine: EngineSettings) -> Prices | None:
    """The prices of an engine's tokens; None unless both and their currency are set."""
    prompt, completion = engine.price_per_million_prompt_tokens, engine.price_per_million_completion_tokens
    if prompt is None or completion is None or engine.currency is None:
        return None
    return Prices(prompt, completion, engine.currency)


def ledger_root(settings: Settings, warehouse_root: str) -> Path:
    """Where answers are recorded: `ledger.root`, else `_ledger` below the warehouse."""
    return Path(settings.ledger.root or Path(warehouse_root) / "_ledger")


def resume_text(ledger: Path, *, ds: str, stage: str, limits: CallLimits) -> str | None:
    """What a stage says that goes on where another attempt ended, with the most calls that a kill makes again; None for the first.

    >>> resume_text(Path("/nowhere"), ds="2017-10-30", stage="intents", limits=CallLimits(16, 64, 5.0)) is None
    True
    """
    if not any((ledger / ds).glob(f"*/{stage}/*/*.seg")):
        return None
    in_flight, unflushed = limits.max_in_flight, limits.flush_count
    return (
        f"{stage}, ds={ds}: what is on record is not asked for again; after a kill at most {in_flight + unflushed} calls a shard are "
        f"repeated: {in_flight} in flight (engine.max_in_flight) + {unflushed} unflushed (ledger.flush_count)"
    )


def open_recorder(
    engine: Engine, *, root: Path, ds: str, scenario: str, method: str, stage: str, shard: str, attempt: int, limits: CallLimits,
    ask_again: bool = False,
) -> CallRecorder:  # fmt: skip
    """The recorder of one shard. `ask_again`: what earlier attempts recorded as refused is asked again."""
    return CallRecorder(
        engine,
        ledger_root=root,
        ds=ds,
        scenario=scenario,
        method=method,
        stage=stage,
        shard=shard,
        attempt=attempt,
        max_in_flight=limits.max_in_flight,
        flush_count=limits.flush_count,
        flush_seconds=limits.flush_seconds,
        ask_again=ask_again,
        prices=limits.prices,
    )


def make_stage(warehouse: Warehouse, publish_id: str, tables: Sequence[str]) -> dict[str, Path]:
    """One new folder per table, in which all shards of a job stage their files."""
    directories = {table: stage_directory(warehouse, table, publish_id) for table in tables}
    for table, directory in directories.items():
        with effect("stage.folder", table):
            directory.mkdir(parents=True)
    return directories


def stage_rows(directory: Path, table: str, rows: Sequence[Mapping[str, Any]], *, file: str) -> None:
    """Stages the rows of one table as one file; a shard that runs again writes the same file."""
    made = pa.Table.from_pylist(list(rows), schema=arrow_schema(load_contract(table)))
    with effect("stage.write", table):
        pq.write_table(made, directory / f"{file}.parquet")


def run_recorded(work: Coroutine[Any, Any, T], calls: CallRecorder, *, tell: Callable[[], None]) -> T:
    """Runs a shard's work in a loop of its own; the recorder is closed afterwards, also after an error.

    `tell` is called about once a second and at the end.
    """

    async def telling() -> None:
        while True:
            tell()
            await asyncio.sleep(PROGRESS_SECONDS)

    async def run() -> T:
        watch = asyncio.create_task(telling())
        try:
            return await work
        finally:
            watch.cancel()
            tell()
            calls.close()

    return asyncio.run(run())


def record_shard(warehouse: Warehouse, record: ShardRecord, *, engine: Engine, inputs: int, rows: Mapping[str, int]) -> ShardSummary:
    """Records calls, templates and failures, and sums up. `rows`: staged rows by table."""
    tokens: Counter[str] = Counter()
    call_rows = iter(record.call_rows)
    while batch := list(islice(call_rows, CALL_ROWS_A_COMMIT)):
        append_records(warehouse, "llm_calls", batch)
        for row in batch:
            tokens[row["role"]] += row["prompt_tokens"] + row["completion_tokens"]
    append_records(warehouse, "prompts", record.prompt_rows)
    quarantine_rows(warehouse, record.failures)
    return ShardSummary(
        inputs=inputs,
        failed=len(record.failures),
        rows=Counter(rows),
        reasons=Counter(row.reason for row in record.failures),
        account=record.account,
        tokens_by_role=tokens,
        ledger_faults=record.ledger_faults,
        engine_loads=getattr(engine, "loads", 0),  # only an engine that is loaded counts its loads
        engine=asdict(engine.identity),
    )
