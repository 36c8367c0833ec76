"""Rows in quarantine as people read them: counted by reason, and the history of one row.

{"stage": "intents", "row_key": "u7", "attempt": 1, "reason": "timeout"}, {..., "attempt": 2, "reason": "poison"}
->  list: intents timeout 1, intents poison 1        show u7: attempt 1 timeout, attempt 2 poison
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import pyarrow.compute as pc

from recgpt_ops.delta.records import read_rows
from recgpt_ops.delta.warehouse import Warehouse

DETAIL_CHARS = 100  # of an example in a list
Row = Mapping[str, Any]


class Filter(NamedTuple):
    """Which rows are meant; None and () leave nothing out."""

    ds: str | None = None
    stage: str | None = None
    reason: str | None = None
    methods: tuple[str, ...] = ()
    user_ids: tuple[str, ...] = ()


def read_quarantine(warehouse: Warehouse, chosen: Filter) -> list[Row]:
    """The rows that a filter names, oldest first."""
    exact = (("ds", chosen.ds), ("stage", chosen.stage), ("reason", chosen.reason))
    terms = [pc.field(name) == value for name, value in exact if value is not None]
    terms += [pc.field(name).isin(list(values)) for name, values in (("method", chosen.methods), ("user_id", chosen.user_ids)) if values]
    where = reduce(lambda left, right: left & right, terms) if terms else None
    rows: list[dict[str, Any]] = read_rows(warehouse, "quarantine", where=where)
    return sorted(rows, key=lambda row: (row["quarantined_at"], row["attempt"] or 0, row["row_key"]))


def counted(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """One row per night (or import), stage, table, method and reason: how many, of how many keys and attempts, and the newest of them."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["ds"], row["stage"], row["table_name"], row["method"], row["reason"]), []).append(row)
    told = []
    for (ds, stage, table, method, reason), some in groups.items():
        newest = some[-1]
        told.append(
            {
                "ds": ds, "stage": stage, "table": table, "method": method, "reason": reason, "rows": len(some),
                "keys": len({row["row_key"] for row in some}), "attempts": len({row["attempt"] for row in some if row["attempt"]}),
                "newest_at": newest["quarantined_at"], "newest_key": newest["row_key"], "newest_detail": shortened(newest["detail"]),
            }
        )  # fmt: skip
    return sorted(told, key=lambda row: row["newest_at"], reverse=True)


def shortened(text: str) -> str:
    """A detail that fits into a line of a list."""
    line = " ".join(text.split())
    return line if len(line) <= DETAIL_CHARS else line[: DETAIL_CHARS - 3] + "..."


def history(rows: Sequence[Row], key: str) -> list[dict[str, Any]]:
    """Every attempt at the row with this key, or at any row of this user, oldest first."""
    return [{**row, "at": row["quarantined_at"]} for row in rows if key in (row["row_key"], row["user_id"], row["quarantine_id"])]


def mending(rows: Sequence[Row], *, option: str) -> str:
    """What can be done about a row; `option` names the warehouse."""
    newest = rows[-1]
    if newest["ds"] is None:
        return (
            f"This row came with an import ({newest['import_id']}). Mend it in its file ({newest['row_key']}), or in the mapping, and run "
            "the same `recgpt import` again: rows that are there already are not doubled."
        )
    who = f" --user {newest['user_id']}" if newest["user_id"] else f" --stage {newest['stage']}"
    return f"To run it again: recgpt quarantine replay --ds {newest['ds']}{who}{option}"
