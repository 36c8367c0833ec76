"""Imports from end to end: files -> landed text -> rows with verdicts -> quarantine, feeds, certificates, and a report.

    import_source("warehouse", "complete-journey", path=None, arrived_ds=None, settings=settings, say=print)
    import_mapped("warehouse", "events", mapping=Path("events.yaml"), path=Path("events.csv"), arrived_ds=None, ...)

All tables of an import are judged before any is published, so an import that fails leaves the warehouse as it was. Importing
again adds nothing: a row's id is made from what it says, not from when it came.
"""

from __future__ import annotations

import os
import resource
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.dataset as pads
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from recgpt_ops.delta.certificates import certificates
from recgpt_ops.delta.faults import told_plainly
from recgpt_ops.delta.generations import publish_files, stage_directory
from recgpt_ops.delta.quarantine import QuarantineRow, quarantine_rows
from recgpt_ops.delta.warehouse import Warehouse, fix_identity, open_warehouse, read_identity
from recgpt_ops.errors import ContractError, UsageError
from recgpt_ops.ids import row_id
from recgpt_ops.imports import complete_journey, online_retail, open_ecommerce
from recgpt_ops.imports.frames import (
    existing_rows,
    fresh_events,
    in_contract_order,
    judge_versions,
    landed_frame,
    read_rows,
    there_count,
    verdict_counts,
    with_row_identity,
    write_parquet,
)
from recgpt_ops.imports.landing import Landed, SourceFile, find_files, land, source_columns
from recgpt_ops.imports.mapping import TABLES, ImportMapping, check_columns, load_mapping, nearest
from recgpt_ops.imports.reading import Reading
from recgpt_ops.imports.report import ImportReport, TableReport
from recgpt_ops.imports.sources import FileSet, Source
from recgpt_ops.settings import Settings
from recgpt_ops.spark import spark_session

SOURCES: dict[str, Source] = {source.name: source for source in (complete_journey.SOURCE, open_ecommerce.SOURCE, online_retail.SOURCE)}
QUARANTINE_BATCH = 5_000
DEFAULT_LOCALE = "en-US"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """One table's part of an import, ready to be judged."""

    reading: Reading
    frame: DataFrame
    counts_in: int
    input_digest: str
    import_id: str

    @property
    def table(self) -> str:
        """The feed that is imported into."""
        return self.reading.mapping.table


@dataclass(frozen=True)
class Judged:
    """One table's rows with their final verdicts, staged and not yet published."""

    plan: Plan
    report: TableReport
    verdicts: tuple[Path, ...]  # Parquet folders in which the quarantined rows stand
    staged: Path


def import_source(
    warehouse_root: str,
    source: str,
    *,
    path: Path | None,
    arrived_ds: str | None,
    settings: Settings,
    say: Say,
    tables: Sequence[str] | None = None,
    now: datetime | None = None,
) -> ImportReport:
    """Imports a data set that the project knows. `tables` None: all of its feeds. `now` is the latest time an event may have."""
    if source not in SOURCES:
        raise UsageError(f"no source {source!r}; {nearest(source, list(SOURCES))}")
    known, started = SOURCES[source], time.monotonic()
    feeds = [feed for feed in known.feeds if tables is None or feed.mapping.table in tables]
    needed = {name for feed in feeds for name in feed.file_sets}
    files = {name: found for name, found in known.find(path).items() if name in needed}
    warehouse = open_warehouse(warehouse_root, create=True)
    refuse_other_identity(warehouse, zone=known.time_zone, locale=known.locale)
    with staging_folder(warehouse, source) as staging:
        sets = {s.name: land_known(s, files[s.name], staging / s.name, say=say) for s in known.file_sets if s.name in needed}
        session = spark_session(settings.spark)
        frames = {s.name: known_frame(session, s, sets[s.name]) for s in known.file_sets if s.name in needed}
        plans = []
        for feed in feeds:
            first = feed.file_sets[0]
            inputs = {rule.column: rule.source for rule in feed.mapping.fields if rule.source is not None}
            is_csv = all(file.kind == "csv" for name in feed.file_sets for file in files[name])
            labels = {name: column for column, name in inputs.items()}
            reading = Reading(feed.mapping, inputs, labels, ("raw",) if is_csv else (), arrived_ds, now or datetime.now(UTC))
            digest = row_id([sets[name].digest for name in feed.file_sets])
            plans.append(
                Plan(
                    reading,
                    feed.shape(frames),
                    feed_rows(sets, feed.mapping.table, feed.file_sets, first),
                    digest,
                    free_import_id(warehouse, feed.mapping, digest),
                )
            )
        reports = run_plans(session, warehouse, plans, locale=known.locale, staging=staging, settings=settings, say=say)
    return finished(source, reports, started)


def import_mapped(
    warehouse_root: str,
    table: str,
    *,
    mapping: Path,
    path: Path,
    arrived_ds: str | None,
    settings: Settings,
    say: Say,
    now: datetime | None = None,
) -> ImportReport:
    """Imports anybody's CSV, Parquet or Delta as events, items or profiles, by a mapping."""
    if table not in TABLES:
        raise UsageError(f"no table {table!r}; {nearest(table, list(TABLES))}")
    told, started = load_mapping(mapping, table), time.monotonic()
    files = find_files(path)
    for file in files:
        check_columns(told, source_columns(file), f"{mapping.name} and {file.name}")
    warehouse = open_warehouse(warehouse_root, create=True)
    found = read_identity(warehouse)
    locale = told.locale or (found[1] if found else DEFAULT_LOCALE)
    stated = told.locale if told.table == "behavior_events" else None  # items and profiles have languages of their own
    refuse_other_identity(warehouse, zone=told.time_zone, locale=stated or (found[1] if found else locale))
    with staging_folder(warehouse, told.source) as staging:
        landed = land(files, directory=staging / "landed", say=say)
        session = spark_session(settings.spark)
        frame = landed_frame(session, landed)
        if told.table == "behavior_events" and told.rule("event_id") is None:
            frame = with_row_identity(frame, [landed.column(name) for name in sorted(landed.columns)])
        inputs = {rule.column: landed.column(rule.source) for rule in told.fields if rule.source is not None}
        labels = {landed.column(name): name for name in landed.columns}
        told = without_nan(told, landed)
        checked = ("raw",) if all(file.kind == "csv" for file in files) else tuple(landed.column(name) for name in landed.text_columns)
        reading = Reading(told, inputs, labels, checked, arrived_ds, now or datetime.now(UTC))
        plan = Plan(reading, frame, landed.row_count, landed.digest, free_import_id(warehouse, told, landed.digest))
        reports = run_plans(session, warehouse, [plan], locale=found[1] if found else locale, staging=staging, settings=settings, say=say)
    return finished(told.source, reports, started)


def without_nan(mapping: ImportMapping, landed: Landed) -> ImportMapping:
    """The mapping, NaN read as missing where a text is wanted from a column of numbers: so pandas writes an id that is not there.

    In amounts and quantities NaN stays a fault.
    """
    numbers = {"quantity", "amount", "price", "event_at"}
    return replace(
        mapping,
        fields=tuple(
            rule
            if rule.source is None or rule.source in landed.text_columns or rule.column in numbers or rule.column.endswith("_ds")
            else replace(rule, map={"nan": "", **rule.map})
            for rule in mapping.fields
        ),
    )


def free_import_id(warehouse: Warehouse, mapping: ImportMapping, digest: str) -> str:
    """The id of an import: the same files under the same mapping are the same import.

    An import that was certified before may still bring something new, when rows that lay in the future have become past. So it gets
    an id of its own, which is used only if there is something new.
    """
    first = candidate = row_id((mapping.source, mapping.table, mapping.digest, digest))
    turn = 0
    while certificates(warehouse, table=mapping.table, publish_id=candidate):
        turn += 1
        candidate = row_id((first, turn))
    return candidate


def was_imported_before(warehouse: Warehouse, plan: Plan) -> bool:
    """Whether this very import was certified before."""
    first = row_id((plan.reading.mapping.source, plan.table, plan.reading.mapping.digest, plan.input_digest))
    return bool(certificates(warehouse, table=plan.table, publish_id=first))


def refuse_other_identity(warehouse: Warehouse, *, zone: str, locale: str) -> None:
    """Tells before any work that the warehouse belongs to another zone or locale."""
    if read_identity(warehouse) is not None:
        fix_identity(warehouse, zone=zone, locale=locale)


@contextmanager
def staging_folder(warehouse: Warehouse, source: str) -> Iterator[Path]:
    """A folder for what this import works on; it is gone afterwards, however the import ended."""
    folder = Path(warehouse.root) / "_staging" / "imports" / f"{source}-{os.getpid()}-{time.time_ns()}"
    try:
        with told_plainly(f"import of {source}", root=warehouse.root):
            folder.mkdir(parents=True)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def land_known(file_set: FileSet, files: Sequence[SourceFile], directory: Path, *, say: Say) -> Landed:
    """Lands one file set of a known source; UsageError names the columns that a file lacks."""
    for file in files:
        missing = [name for name in file_set.columns if name not in source_columns(file)]
        if missing:
            raise UsageError(f"{file.name}: expected the columns {', '.join(file_set.columns)}, missing {', '.join(missing)}; check --path")
    say(f"reading {', '.join(file.name for file in files)}")
    return land(files, directory=directory, say=say)


def known_frame(session: SparkSession, file_set: FileSet, landed: Landed) -> DataFrame:
    """The rows of a file set under our words, with an identity where they have no natural key."""
    names = dict(file_set.columns)
    frame = landed_frame(session, landed, names)
    return frame if file_set.has_natural_key else with_row_identity(frame, [names[source] for source in sorted(names)])


def feed_rows(sets: Mapping[str, Landed], table: str, file_sets: Sequence[str], first: str) -> int:
    """How many rows a feed is made from. Products and campaign descriptions only lend events their words."""
    lenders = {"products", "campaign_descriptions"} if table == "behavior_events" else set()
    return sum(sets[name].row_count for name in file_sets if name not in lenders or name == first)


def run_plans(
    session: SparkSession,
    warehouse: Warehouse,
    plans: Sequence[Plan],
    *,
    locale: str,
    staging: Path,
    settings: Settings,
    say: Say,
) -> list[TableReport]:
    """Judges all tables, then publishes them; above the share of bad rows that the settings allow, nothing is published."""
    judged = []
    for plan in plans:
        say(f"{plan.table}: checking {plan.counts_in:,} rows")
        judged.append(judge(session, warehouse, plan, staging=staging))
        refuse_too_many(judged[-1].report, settings.quarantine.import_max_ratio)
    fix_identity(warehouse, zone=plans[0].reading.mapping.time_zone, locale=locale)
    return [publish(warehouse, table, say=say) for table in judged]


def judge(session: SparkSession, warehouse: Warehouse, plan: Plan, *, staging: Path) -> Judged:
    """One table: every row read and given its verdict, the new ones staged in the shape of the contract."""
    read_path, source = staging / f"{plan.table}.read", plan.reading.mapping.source
    write_parquet(read_rows(plan.frame, plan.reading), read_path)
    read = session.read.parquet(str(read_path))
    counts = verdict_counts(read)
    existing = existing_rows(session, warehouse.open(plan.table).file_uris()) if warehouse.exists(plan.table) else None
    staged, verdicts = staging / f"{plan.table}.fresh", [read_path]
    if plan.table == "behavior_events":
        write_parquet(fresh_events(read, source=source, import_id=plan.import_id, existing=existing), staged)
        already = there_count(read, existing)
        fresh = session.read.parquet(str(staged)).count()
        kept = counts.pop(("kept", None), 0)
        if kept - fresh - already:
            counts["dropped", "repeated"] = kept - fresh - already
    else:
        versions_path = staging / f"{plan.table}.versions"
        write_parquet(judge_versions(read, table=plan.table, existing=existing, arrived_ds=plan.reading.arrived_ds), versions_path)
        versions = session.read.parquet(str(versions_path))
        final = verdict_counts(versions)
        verdicts.append(versions_path)
        same = counts.pop(("kept", None), 0) - sum(final.values())
        fresh, already = final.pop(("kept", None), 0), final.pop(("there", None), 0)
        counts |= final | ({("dropped", "same_again"): same} if same else {})
        kept_rows = versions.filter(F.col("verdict") == "kept")
        write_parquet(in_contract_order(kept_rows, table=plan.table, source=source, import_id=plan.import_id), staged)
    quarantined = {str(reason): count for (verdict, reason), count in counts.items() if verdict == "quarantined"}
    report = TableReport(
        plan.table,
        plan.import_id,
        plan.counts_in,
        fresh,
        already,
        {str(reason): count for (verdict, reason), count in counts.items() if verdict == "dropped"},
        quarantined,
        first_examples(verdicts) if quarantined else {},
    )
    if not report.adds_up:
        raise ContractError(f"{plan.table}: {report.counts_in:,} rows came in, but the counts add up to another number: {report}")
    return Judged(plan, report, tuple(verdicts), staged)


def quarantined_rows(verdicts: Sequence[Path]) -> Iterator[dict[str, str | int | None]]:
    """The rows that were put into quarantine, batch by batch."""
    for path in verdicts:
        data = pads.dataset(path, format="parquet", exclude_invalid_files=False)
        columns: list[str] = [name for name in ("file", "line", "raw", "reason", "detail", "user_id") if name in data.schema.names]
        for batch in data.to_batches(columns=columns, filter=pc.field("verdict") == "quarantined", batch_size=QUARANTINE_BATCH):
            yield from batch.to_pylist()


def first_examples(verdicts: Sequence[Path]) -> dict[str, str]:
    """Where the first row of each reason stands."""
    first: dict[str, tuple[str, int]] = {}
    for row in quarantined_rows(verdicts):
        place = (str(row["file"]), int(row["line"] or 0))
        first[str(row["reason"])] = min(place, first.get(str(row["reason"]), place))
    return {reason: f"{file}:{line}" for reason, (file, line) in first.items()}


def refuse_too_many(report: TableReport, max_ratio: float) -> None:
    """Raises when the share of quarantined rows is above the setting."""
    if report.counts_in and report.quarantined_count / report.counts_in > max_ratio:
        raise ContractError(
            f"{report.table}: {report.quarantined_count:,} of {report.counts_in:,} rows are bad "
            f"({report.quarantined_count / report.counts_in:.0%}, quarantine.import_max_ratio is {max_ratio:.0%}): {report.reasons()}; "
            "nothing was published; mend the mapping or the file"
        )


def publish(warehouse: Warehouse, judged: Judged, *, say: Say) -> TableReport:
    """Puts the bad rows into quarantine and commits the new ones, with a certificate. An import that has nothing new commits nothing."""
    plan, report = judged.plan, judged.report
    batch: list[QuarantineRow] = []
    for row in quarantined_rows(judged.verdicts):
        batch.append(
            QuarantineRow(
                table_name=plan.table,
                row_key=f"{row['file']}:{row['line']}",
                stage="import",
                reason=str(row["reason"]),
                detail=str(row["detail"] or ""),
                raw=str(row["raw"] or ""),
                import_id=plan.import_id,
                user_id=str(row["user_id"]) if row.get("user_id") else None,
            )
        )
        if len(batch) == QUARANTINE_BATCH:
            quarantine_rows(warehouse, batch)
            batch = []
    if batch:
        quarantine_rows(warehouse, batch)
    if not report.kept and was_imported_before(warehouse, plan):
        say(f"{plan.table}: nothing new")
        return report
    say(f"{plan.table}: publishing {report.kept:,} rows")
    directory = stage_directory(warehouse, plan.table, plan.import_id)
    directory.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(sorted(judged.staged.glob("**/*.parquet"))):
        shutil.move(part, directory / f"part-{number:05d}.parquet")
    made = publish_files(
        warehouse,
        plan.table,
        directory,
        publish_id=plan.import_id,
        scopes=[plan.import_id],
        fence=None,
        input_digest=plan.input_digest,
        quarantined_count=report.quarantined_count,
        input_row_count=report.counts_in,
    )
    return replace(report, warnings=tuple(warning for certificate in made for warning in certificate.warnings))


def finished(source: str, reports: Sequence[TableReport], started: float) -> ImportReport:
    """The report of a whole import."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return ImportReport(source, tuple(reports), time.monotonic() - started, peak)
