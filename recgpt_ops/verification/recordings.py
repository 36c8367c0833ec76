"""The ledger against `llm_calls`: each recorded answer is sound, is that of its call, and is the one that was told of.

    <ledger>/<ds>/<method>/<stage>/<shard>/<attempt>.seg   ->   one row a record, in a table on disk   ->   one join with llm_calls

A record without a row is none of a finished shard, or that of a method that asked the same question in the same attempt as the one whose
row there is; it is compared with nothing. A row without a record is a difference only while the ledger is young enough to
have it: a ledger that is older than its retention, or gone, is not verifiable, and what there is of it is still compared.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from recgpt_ops.delta.certificates import stage_of
from recgpt_ops.delta.reading import files_dataset
from recgpt_ops.delta.schemas import arrow_schema
from recgpt_ops.ledger.recorder import with_digest
from recgpt_ops.ledger.segments import scan
from recgpt_ops.tables import load_contract
from recgpt_ops.verification.findings import MOST_LINES, Findings
from recgpt_ops.verification.scope import Scope
from recgpt_ops.verification.tables import Tables, scalar

BATCH = 20_000
RESTORE = "restore the ledger's folder from a backup, or make the night again by recgpt night --ds {ds} --rebuild"
KEYS = ("call_id", "attempt", "method", "stage")
CONTRACT = load_contract("llm_calls")
COMPARED = tuple(name for name in CONTRACT.column_names if name not in KEYS)


def check_ledger(findings: Findings, tables: Tables, scope: Scope, *, ledger: Path, keep_days: int) -> None:
    """Every day in scope, each method and stage that has calls or a folder in the ledger."""
    oldest = datetime.now(UTC) - timedelta(days=keep_days)
    for ds in scope.days():
        step = RESTORE.format(ds=ds)
        connection = tables.ask(llm_calls=tables.files("llm_calls", ds=ds))
        connection.execute("CREATE TEMP TABLE calls AS SELECT * FROM llm_calls")
        load(findings, connection, sorted((ledger / ds).glob("*/*/*/*.seg")), step)
        compare(findings, connection, f"ledger, {ds}", step)
        check_places(findings, connection, ds)
        stages = connection.execute(
            "SELECT method, stage, count(*), max(called_at), EXISTS (SELECT 1 FROM records AS r WHERE r.method = c.method AND "
            "r.stage = c.stage) FROM calls AS c GROUP BY method, stage ORDER BY method, stage"
        ).fetchall()
        for method, stage, count, newest, is_there in stages:
            where = f"ledger, {ds}/{method}/{stage}"
            if not is_there:
                findings.cannot(f"{where}: there is no ledger of its {count} calls")
            elif newest < oldest:
                findings.cannot(f"{where}: its {count} calls are older than ledger.keep_days, {keep_days} days")
            else:
                check_missing(findings, connection, method, stage, where=where, step=step)
        check_untold(findings, tables, connection, scope, ds)
        old = scalar(connection, "SELECT count(*) FROM calls WHERE answer_digest IS NULL")
        if old:
            findings.cannot(f"ledger, {ds}: {old} calls are from before llm_calls held a digest of the answer; their counts are compared")


def load(findings: Findings, connection: duckdb.DuckDBPyConnection, segments: list[Path], step: str) -> None:
    """Reads the segments into a table `records`, and tells what of them is not sound."""
    schema = arrow_schema(CONTRACT)
    connection.register("batch", schema.empty_table())
    connection.execute("CREATE TEMP TABLE records AS SELECT *, '' AS segment FROM batch")
    for segment in segments:
        name, faults = "/".join(segment.parts[-5:]), list[str]()
        batch: list[dict[str, Any]] = []
        for row in records(findings, segment, faults, where=f"ledger, {name}"):
            batch.append(row)
            if len(batch) == BATCH:
                insert(connection, batch, schema, name)
        insert(connection, batch, schema, name)
        for fault in faults:
            if "corrupt record" in fault:  # a torn end is what a kill leaves; its call was made again
                findings.differ(f"ledger, {name}", expected="sound records", got=fault.partition(": ")[2], next_step=step)


def insert(connection: duckdb.DuckDBPyConnection, batch: list[dict[str, Any]], schema: pa.Schema, segment: str) -> None:
    """Writes a batch and empties it."""
    connection.register("batch", pa.Table.from_pylist(batch, schema=schema))
    connection.execute("INSERT INTO records SELECT *, ? FROM batch", [segment])
    batch.clear()


def records(findings: Findings, segment: Path, faults: list[str], *, where: str) -> Iterator[dict[str, Any]]:
    """The rows that a segment's records say of their calls, with the digest of the answer as it stands there."""
    if not segment.stat().st_size:
        return
    with segment.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for record in scan(data, faults, where=where):
            findings.counts["answers"] += 1
            try:
                payload = json.loads(record.payload)
                row = with_digest(payload)
                row["called_at"] = datetime.fromisoformat(row["called_at"])
            except (ValueError, KeyError, TypeError):
                faults.append(f"{where}: corrupt record of call {record.call_id.hex()}, which is no answer")
                continue
            if row["call_id"] != record.call_id.hex():
                faults.append(f"{where}: corrupt record of call {record.call_id.hex()}, which holds the answer of {row['call_id']}")
            yield {name: row.get(name) for name in CONTRACT.column_names}
            findings.progress(where, record.offset, len(data), unit="bytes")


def compare(findings: Findings, connection: duckdb.DuckDBPyConnection, where: str, step: str) -> None:
    """Every column of a row that its record tells too; of two records of one attempt one has to agree."""
    equal = {name: f"(calls.{name} IS NOT DISTINCT FROM records.{name})" for name in COMPARED}
    equal["answer_digest"] = "(calls.answer_digest IS NULL OR calls.answer_digest = records.answer_digest)"
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE compared AS SELECT call_id, attempt, first(segment) AS segment, "
        f"bool_or({' AND '.join(equal.values())}) AS agrees, {', '.join(f'bool_or({sql}) AS is_{name}' for name, sql in equal.items())} "
        "FROM calls INNER JOIN records USING (call_id, attempt, method, stage) GROUP BY call_id, attempt"
    )
    names = ", ".join(f"CASE WHEN is_{name} THEN NULL ELSE '{name}' END" for name in COMPARED)
    count = scalar(connection, "SELECT count(*) FROM compared WHERE NOT agrees")
    found = connection.execute(
        f"SELECT call_id, attempt, segment, concat_ws(', ', {names}) FROM compared WHERE NOT agrees ORDER BY ALL LIMIT {MOST_LINES}"
    ).fetchall()
    for call_id, attempt, segment, columns in found:
        findings.differ(
            f"ledger, {segment}, call_id={call_id}, attempt {attempt}",
            expected="the answer and the counts that llm_calls says",
            got=f"another {columns}",
            next_step=step,
        )
    if count > len(found):
        findings.differ(where, expected="what llm_calls says", got=f"something else in {count - len(found)} more records", next_step=step)


def check_missing(findings: Findings, connection: duckdb.DuckDBPyConnection, method: str, stage: str, *, where: str, step: str) -> None:
    """Rows without a record, in a ledger that is young enough to hold it."""
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE missing AS SELECT call_id, attempt FROM calls "
        "ANTI JOIN records USING (call_id, attempt, method, stage) WHERE method = ? AND stage = ?",
        [method, stage],
    )
    count = scalar(connection, "SELECT count(*) FROM missing")
    found = connection.execute(f"SELECT call_id, attempt FROM missing ORDER BY ALL LIMIT {MOST_LINES}").fetchall()
    keys = [f"call_id={call_id}, attempt {attempt}" for call_id, attempt in found]
    findings.differ_each(keys, count, where=where, expected="the recorded answer that llm_calls tells of", got="none", next_step=step)


def check_places(findings: Findings, connection: duckdb.DuckDBPyConnection, ds: str) -> None:
    """Rows whose call is recorded, but under another method or stage than theirs."""
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE strayed AS SELECT call_id, attempt FROM calls SEMI JOIN records USING (call_id, attempt) "
        "ANTI JOIN records USING (call_id, attempt, method, stage)"
    )
    found = connection.execute(f"SELECT call_id, attempt FROM strayed ORDER BY ALL LIMIT {MOST_LINES}").fetchall()
    findings.differ_each(
        [f"call_id={call_id}, attempt {attempt}" for call_id, attempt in found], scalar(connection, "SELECT count(*) FROM strayed"),
        where=f"llm_calls, ds={ds}", expected="method and stage as the ledger has them", got="others",
        next_step="restore llm_calls from a backup",
    )  # fmt: skip


def check_untold(findings: Findings, tables: Tables, connection: duckdb.DuckDBPyConnection, scope: Scope, ds: str) -> None:
    """Records without a row, where the certificates say that as many calls were made as there are records.

    Where there are more, an attempt died and some of its answers may never have been asked for again. Two methods that ask the same
    question in one attempt share a row.
    """
    certified = {
        (stage_of(load_contract(one.table_name)), one.fence): one.calls_made
        for one in scope.every
        if one.partition == ds and load_contract(one.table_name).kind == "night"
    }
    counts = connection.execute("SELECT stage, attempt, count(*) FROM records GROUP BY ALL ORDER BY ALL").fetchall()
    for stage, attempt, count in counts:
        connection.execute(
            "CREATE OR REPLACE TEMP TABLE untold AS SELECT DISTINCT call_id FROM records ANTI JOIN calls USING (call_id, attempt) "
            "WHERE stage = ? AND attempt = ?",
            [stage, attempt],
        )
        if scalar(connection, "SELECT count(*) FROM untold"):  # the same question on an earlier day has its row there
            connection.register("llm_calls", files_dataset(CONTRACT, tables.files("llm_calls")))
            connection.execute("DELETE FROM untold WHERE call_id IN (SELECT call_id FROM llm_calls)").fetchall()
        untold = scalar(connection, "SELECT count(*) FROM untold")
        where = f"llm_calls, ds={ds}, stage={stage}, attempt {attempt}"
        if untold and certified.get((stage, attempt)) == count:
            found = connection.execute(f"SELECT call_id FROM untold ORDER BY ALL LIMIT {MOST_LINES}").fetchall()
            findings.differ_each(
                [f"call_id={call_id}" for (call_id,) in found], untold, where=where, expected="the row of an answer in the ledger",
                got="none", next_step="restore llm_calls from a backup",
            )  # fmt: skip
        elif untold and (stage, attempt) in certified:
            findings.cannot(f"{where}: {untold} answers in the ledger have no row; an attempt that died may have left them")
