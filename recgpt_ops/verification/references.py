"""What rows name elsewhere: the generation that made a user's rows, a shared explanation, the model calls behind a row."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from recgpt_ops.delta.certificates import Place, place_of
from recgpt_ops.delta.reading import files_dataset
from recgpt_ops.publishing import RESULT_TABLE
from recgpt_ops.tables import Contract, all_contracts, load_contract
from recgpt_ops.verification.findings import MOST_LINES, Findings
from recgpt_ops.verification.generations import next_step
from recgpt_ops.verification.scope import Row, Scope, origins
from recgpt_ops.verification.tables import Tables, scalar

COMPUTED = "status IN ('computed', 'carried')"


def check_users(findings: Findings, tables: Tables, scope: Scope) -> None:
    """The users of every shown night: what each one's row says of its maker holds, and that generation has rows of the user."""
    certified = {place_of(one) for one in scope.every}
    for row in scope.shown:
        ds = str(row["ds"])
        night = Place("night_users", ds, str(row["publish_id"]))
        where = f"{night}, scenario={row['scenario']}, method={row['method']}"
        connection = tables.ask(night_users=tables.files("night_users", ds=ds, publish_id=night.publish_id))
        connection.execute(
            "CREATE TEMP TABLE users AS SELECT user_id, status, made_by, computed_ds FROM night_users WHERE scenario = ? AND method = ?",
            [row["scenario"], row["method"]],
        )
        check_days(findings, connection, ds, where)
        pairs = connection.execute(
            f"SELECT computed_ds, made_by, count(*) FROM users WHERE {COMPUTED} GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        for computed_ds, made_by, count in pairs:
            made = Place(RESULT_TABLE, computed_ds, made_by)
            if made not in certified:
                findings.differ(
                    f"{where}, {count} users", expected=f"made_by to name a generation of {RESULT_TABLE} of {computed_ds}",
                    got=f"{made_by}, which was never certified", next_step=next_step(load_contract("night_users"), ds),
                )  # fmt: skip
                continue
            check_results(findings, connection, tables, row, made, where)
        findings.counts["shown nights"] += 1


def check_days(findings: Findings, connection: duckdb.DuckDBPyConnection, ds: str, where: str) -> None:
    """A computed user was computed on this date, a carried one on this or an earlier one (a rebuild that failed for the user)."""
    wrong = "(status = 'computed' AND computed_ds <> $ds) OR (status = 'carried' AND computed_ds > $ds)"
    found = connection.execute(f"SELECT user_id, status, computed_ds FROM users WHERE {wrong} ORDER BY ALL LIMIT {MOST_LINES}", {"ds": ds})
    for user_id, status, computed_ds in found.fetchall():
        expected = f"computed_ds {ds}" if status == "computed" else f"a computed_ds up to {ds}"
        findings.differ(
            f"{where}, user_id={user_id}, {status}", expected=expected, got=computed_ds,
            next_step=next_step(load_contract("night_users"), ds),
        )  # fmt: skip


def check_results(findings: Findings, connection: duckdb.DuckDBPyConnection, tables: Tables, row: Row, made: Place, where: str) -> None:
    """Every user of one maker has rows in its generation."""
    results = tables.files(RESULT_TABLE, ds=made.partition, publish_id=made.publish_id)
    connection.register("results", files_dataset(load_contract(RESULT_TABLE), results))
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE without AS SELECT user_id FROM users WHERE {COMPUTED} AND made_by = ? AND computed_ds = ? "
        "AND user_id NOT IN (SELECT user_id FROM results WHERE scenario = ? AND method = ?)",
        [made.publish_id, made.partition, row["scenario"], row["method"]],
    )
    count = scalar(connection, "SELECT count(*) FROM without")
    users = connection.execute(f"SELECT user_id FROM without ORDER BY ALL LIMIT {MOST_LINES}").fetchall()
    findings.differ_each(
        [f"user_id={user_id}" for (user_id,) in users], count, where=where, expected=f"rows in {made}", got="none",
        next_step=next_step(load_contract(RESULT_TABLE), made.partition),
    )  # fmt: skip


def check_explanations(findings: Findings, tables: Tables, scope: Scope) -> None:
    """Every written or shared assignment of what a shown night was made from has its explanation."""
    shown = sorted({(str(row["ds"]), publish_id) for row in scope.shown for publish_id in origins(scope.nights, row)})
    for ds, publish_id in shown:
        place = Place("explanation_assignments", ds, publish_id)
        connection = tables.ask(explanation_assignments=tables.files(place.table, ds=ds, publish_id=publish_id))
        connection.execute(
            "CREATE TEMP TABLE named AS SELECT DISTINCT scenario, method, explanation_id, explanation_made_by AS publish_id "
            "FROM explanation_assignments WHERE status IN ('written', 'shared')"
        )
        writers = {str(name) for (name,) in connection.execute("SELECT DISTINCT publish_id FROM named").fetchall()}
        connection.register("explanations", files_dataset(load_contract("explanations"), tables.files("explanations", publish_id=writers)))
        key = "(scenario, method, explanation_id, publish_id)"
        connection.execute(f"CREATE TEMP TABLE without AS SELECT * FROM named ANTI JOIN explanations USING {key}")
        count = scalar(connection, "SELECT count(*) FROM without")
        found = connection.execute(f"SELECT explanation_id, publish_id FROM without ORDER BY ALL LIMIT {MOST_LINES}").fetchall()
        findings.differ_each(
            [f"explanation_id={one[:12]}, made by {by}" for one, by in found], count, where=str(place), expected="its row in explanations",
            got="none", next_step=next_step(load_contract(place.table), ds),
        )  # fmt: skip


def call_columns(contract: Contract) -> list[str]:
    """The SQL of every call id that a row of a table names."""
    columns = [f'"{column.name}"' for column in contract.columns if column.name.endswith("call_id") and column.type == "string"]
    nested = [column.name for column in contract.columns if column.type.startswith("array<struct") and "call_id:string" in column.type]
    return columns + [f'unnest(list_transform("{name}", lambda one: one.call_id))' for name in nested]


def check_call_ids(findings: Findings, tables: Tables, scope: Scope) -> None:
    """Every call that a row names stands in `llm_calls`."""
    for contract in all_contracts().values():
        columns = call_columns(contract) if contract.kind == "night" else []
        mine = {place_of(one) for one in scope.certificates if one.table_name == contract.name and one.row_count}
        if columns and mine:
            check_calls_of(findings, tables, contract, mine, columns)


def check_calls_of(findings: Findings, tables: Tables, contract: Contract, places: set[Place], columns: Sequence[str]) -> None:
    """The call ids of some generations of a table. The same question on an earlier day has its row there."""
    days, generations = {place.partition for place in places}, {place.publish_id for place in places}
    rows = tables.files(contract.name, ds=days, publish_id=generations)
    connection = tables.ask(**{contract.name: rows, "llm_calls": tables.files("llm_calls", ds=days)})
    named = " UNION ALL ".join(f"SELECT ds, publish_id, {column} AS call_id FROM {contract.name}" for column in columns)
    connection.execute(f"CREATE TEMP TABLE named AS SELECT DISTINCT * FROM ({named}) WHERE call_id IS NOT NULL")
    without = "DELETE FROM named WHERE call_id IN (SELECT call_id FROM llm_calls)"
    connection.execute(without).fetchall()
    if scalar(connection, "SELECT count(*) FROM named"):
        connection.register("llm_calls", files_dataset(load_contract("llm_calls"), tables.files("llm_calls")))
        connection.execute(without).fetchall()
    found = connection.execute(f"SELECT ds, publish_id, call_id FROM named ORDER BY ALL LIMIT {MOST_LINES}").fetchall()
    keys = [f"ds={ds}, generation {publish_id}, call_id={call_id}" for ds, publish_id, call_id in found]
    findings.differ_each(
        keys, scalar(connection, "SELECT count(*) FROM named"), where=contract.name, expected="its row in llm_calls", got="none",
        next_step="restore llm_calls from a backup",
    )  # fmt: skip
