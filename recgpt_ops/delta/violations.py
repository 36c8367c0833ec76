"""Which rows broke a rule: our own anti-filter in SQL over the staged files.

Great Expectations says how many; the engines it runs on do not agree on returning the keys. So the keys are found here, by the same
rule turned round. The null rule, everywhere: a null in a nullable column passes every check of values, a null in any other column
breaks `not_null` and nothing else. A null listed among allowed values changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

import duckdb
import pyarrow.dataset as pads

from recgpt_ops.delta.reading import DataFile, files_dataset
from recgpt_ops.tables import Check, Contract, Grade

MAX_ROWS = 1000  # rows of one rule that are kept for quarantine; the count is exact all the same


class Violation(NamedTuple):
    """A rule that did not hold: how many rows broke it, and the (key, row) texts of the first MAX_ROWS in key order."""

    rule: str
    columns: tuple[str, ...]
    grade: Grade
    row_count: int
    rows: tuple[tuple[str, str], ...]


def literal(value: object) -> str:
    """A value of a contract as SQL."""
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def bounds_sql(expression: str, arguments: dict[str, object]) -> str:
    """`x < min OR x > max`, with what of both is given."""
    terms = [f"{expression} < {literal(arguments['min'])}"] if arguments.get("min") is not None else []
    terms += [f"{expression} > {literal(arguments['max'])}"] if arguments.get("max") is not None else []
    return " OR ".join(terms) or "false"


def breaking_sql(contract: Contract, check: Check) -> str:
    """The condition under which a row breaks a rule; NULL and false both mean that it holds."""
    terms = []
    for name in check.columns:
        column = f'"{name}"'
        if check.rule == "not_null":
            terms.append(f"{column} IS NULL")
        elif check.rule == "in_set":
            allowed = ", ".join(literal(value) for value in allowed_values(check))
            terms.append(f"{column} NOT IN ({allowed})" if allowed else f"{column} IS NOT NULL")
        elif check.rule == "between":
            not_finite = f"NOT isfinite({column}) OR " if contract.column(name).type == "double" else ""
            terms.append(f"{not_finite}{bounds_sql(column, check.arguments)}")
        elif check.rule == "matches":
            terms.append(f"NOT regexp_matches({column}, {literal(check.arguments['pattern'])})")
        elif check.rule == "length_between":
            terms.append(bounds_sql(f"length({column})", check.arguments))
        else:
            raise ValueError(f"{check.rule} is no rule about single rows")
    return " OR ".join(f"({term})" for term in terms)


def allowed_values(check: Check) -> list[object]:
    """The values of an `in_set`; a null among them says nothing, because nulls are ruled by `nullable`."""
    values = check.arguments["values"]
    assert isinstance(values, list)
    return [value for value in values if value is not None]


def find_violation(contract: Contract, check: Check, dataset: pads.Dataset) -> Violation:
    """The rows that break one rule: for `unique` every row whose key stands there more than once, none for a count of rows."""
    if check.rule == "row_count_between":
        return Violation(check.rule, check.columns, check.grade, dataset.count_rows(), ())
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("staged", dataset)
        if check.rule == "unique":
            columns = ", ".join(f'"{name}"' for name in check.columns)
            source = f"SELECT * FROM staged SEMI JOIN (SELECT {columns} FROM staged GROUP BY ALL HAVING count(*) > 1) USING ({columns})"
        else:
            source = f"SELECT * FROM staged WHERE {breaking_sql(contract, check)}"
        count = int(scalar(connection, f"SELECT count(*) FROM ({source})"))
        key = ", ".join(f'"{name}"' for name in contract.key)
        found = connection.execute(f"SELECT to_json(t)::varchar FROM ({source}) t ORDER BY {key} LIMIT {MAX_ROWS}").fetchall()
    return Violation(check.rule, check.columns, check.grade, count, tuple((key_text(contract, raw), raw) for (raw,) in found))


def scalar(connection: duckdb.DuckDBPyConnection, sql: str) -> int:
    """The one number that a query gives."""
    row = connection.execute(sql).fetchone()
    return 0 if row is None else int(row[0])


def key_text(contract: Contract, raw: str) -> str:
    """`event_id=..., ...` of a row that is given as JSON."""
    row = json.loads(raw)
    return ", ".join(f"{name}={row[name]}" for name in contract.key)


def violation_message(violation: Violation, *, show_key: bool = True) -> str:
    """What broke, how often, and the first key; never the value that broke it."""
    subject = ", ".join(violation.columns) or "the table"
    if violation.rule == "row_count_between":
        return f"{violation.row_count} rows break row_count_between"
    text = f"{subject} breaks {violation.rule} in {violation.row_count} {'row' if violation.row_count == 1 else 'rows'}"
    return f"{text}, the first is {violation.rows[0][0]}" if show_key and violation.rows else text


def known_keys(contract: Contract, staged: Sequence[DataFile], committed: Sequence[DataFile]) -> tuple[int, str]:
    """How many staged keys the committed files hold already, and the first of them."""
    if not committed:
        return 0, ""
    with duckdb.connect() as connection:
        connection.register("staged", files_dataset(contract, staged))
        connection.register("committed", files_dataset(contract, committed))
        key = ", ".join(f'"{name}"' for name in contract.key)
        connection.execute(f"CREATE TEMP TABLE both_hold AS SELECT {key} FROM staged SEMI JOIN committed USING ({key})")
        count = int(scalar(connection, "SELECT count(*) FROM both_hold"))
        first = connection.execute(f"SELECT to_json(t)::varchar FROM both_hold t ORDER BY {key} LIMIT 1").fetchone()
    return count, "" if first is None else key_text(contract, first[0])
