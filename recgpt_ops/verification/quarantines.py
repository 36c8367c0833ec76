"""Quarantine against the certificates: the rows that each stage and each import put there are still there, as they were."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from recgpt_ops.delta.certificates import Certificate, Place, place_of, quarantine_of, quarantined_digest, stage_of
from recgpt_ops.delta.digests import text_sql
from recgpt_ops.delta.reading import read_files
from recgpt_ops.tables import load_contract
from recgpt_ops.verification.files import RESTORE
from recgpt_ops.verification.findings import MOST_LINES, Findings
from recgpt_ops.verification.scope import Scope
from recgpt_ops.verification.tables import Tables, scalar

KEEP_DAYS = 90  # the contract's retention: what is older may have been dropped
ID_COLUMNS = ("table_name", "row_key", "stage", "ds", "method", "reason", "raw")
ATTEMPT_COLUMNS = ("scenario", "attempt")  # of a night's row they are part of the id, but for rows from before an attempt had its own


def check_quarantine(findings: Findings, tables: Tables, scope: Scope) -> None:
    """Ids, what certificates say of it, and a row for every user who is said to have failed."""
    check_ids(findings, tables)
    oldest, old = datetime.now(UTC) - timedelta(days=KEEP_DAYS), 0
    for one in scope.certificates:
        if one.made_at < oldest:
            old += 1
        elif one.quarantine_digest is not None:
            check_digest(findings, tables, one)
        elif one.quarantined_count:
            check_count(findings, tables, one)
    if old:
        findings.cannot(f"quarantine: {old} certificates are older than the {KEEP_DAYS} days for which rows are kept there")
    check_failed(findings, tables, scope, oldest)


def check_ids(findings: Findings, tables: Tables) -> None:
    """Every row has the id that its columns make."""
    contract = load_contract("quarantine")
    connection = tables.ask(quarantine=tables.files("quarantine"))
    made = [f"sha256({text_sql(contract, columns)})" for columns in (ID_COLUMNS, (*ID_COLUMNS, *ATTEMPT_COLUMNS))]
    wrong = f"FROM quarantine WHERE quarantine_id NOT IN ({', '.join(made)})"
    count = scalar(connection, f"SELECT count(*) {wrong}")
    found = connection.execute(f"SELECT quarantine_id {wrong} ORDER BY ALL LIMIT {MOST_LINES}").fetchall()
    rows = scalar(connection, "SELECT count(*) FROM quarantine")
    findings.counts["quarantine rows"] += rows
    findings.differ_each(
        [f"quarantine_id={one}" for (one,) in found], count, where="quarantine", expected="the hash of its columns", got="another",
        next_step=RESTORE,
    )  # fmt: skip


def check_digest(findings: Findings, tables: Tables, one: Certificate) -> None:
    """The rows that were there when a certificate was made."""
    rows = read_files(load_contract("quarantine"), tables.files("quarantine"), where=quarantine_of(one))
    if (found := quarantined_digest(rows, connection=tables.ask())) != one.quarantine_digest:
        findings.differ(
            f"quarantine, rows of {place_of(one)}",
            expected=f"those of digest {str(one.quarantine_digest)[:12]}, as its certificate says",
            got=f"{rows.num_rows} of {found[:12]}",
            next_step=RESTORE,
        )


def check_count(findings: Findings, tables: Tables, one: Certificate) -> None:
    """An older certificate: at least as many rows as it counted, since equal faults of one row are one row."""
    contract = load_contract(one.table_name)
    if contract.name == "night_users":
        return  # it counts the failed users, whose rows stand under the stage in which each failed
    connection = tables.ask(quarantine=tables.files("quarantine"))
    values: list[str | int | None] = [contract.name]
    where = "table_name = ? AND import_id IS NOT NULL"
    if contract.kind != "feed":
        values = [one.partition, contract.name, stage_of(contract), one.fence]
        where = "ds = ? AND stage IN (?, ?) AND attempt <= ?"
    (found,) = connection.execute(f"SELECT count(*) FROM quarantine WHERE {where}", values).fetchall()[0]
    if found < one.quarantined_count:
        findings.differ(
            f"quarantine, rows of {place_of(one)}", expected=f"{one.quarantined_count} or more", got=f"{found}", next_step=RESTORE
        )  # fmt: skip


def check_failed(findings: Findings, tables: Tables, scope: Scope, oldest: datetime) -> None:
    """Every user of a shown night who failed has a row that says why."""
    for row in scope.shown:
        if row["published_at"] < oldest:
            continue
        place = Place("night_users", str(row["ds"]), str(row["publish_id"]))
        users = tables.files("night_users", ds=place.partition, publish_id=place.publish_id)
        connection = tables.ask(night_users=users, quarantine=tables.files("quarantine"))
        connection.execute(
            "CREATE TEMP TABLE without AS SELECT user_id FROM night_users AS u WHERE status = 'failed' AND scenario = ? AND method = ? AND "
            "NOT EXISTS (SELECT 1 FROM quarantine AS q WHERE q.user_id = u.user_id AND q.ds = u.computed_ds AND q.method = u.method)",
            [row["scenario"], row["method"]],
        )
        count = scalar(connection, "SELECT count(*) FROM without")
        found = connection.execute(f"SELECT user_id FROM without ORDER BY ALL LIMIT {MOST_LINES}").fetchall()
        findings.differ_each(
            [f"user_id={user_id}" for (user_id,) in found], count, where=f"{place}, method={row['method']}, failed users",
            expected="a row in quarantine that says why", got="none", next_step=RESTORE,
        )  # fmt: skip
