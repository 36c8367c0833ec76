"""Whether a night can be shown, and what to say where it cannot or where a newer attempt at it failed."""

from __future__ import annotations

import json
from collections.abc import Sequence

import duckdb

from recgpt_ops.errors import NightError, UsageError
from recgpt_ops.report.reading import PUBLICATIONS, STAGES, Night, Row, Rows, rows
from recgpt_ops.report.texts import one_line


def open_night(connection: duckdb.DuckDBPyConnection, *, ds: str, scenario: str) -> tuple[Night, Night | None]:
    """The visible night of `ds`, and the visible night before it (None: there is none).

    NightError tells in one line where the attempts at an invisible night ended, UsageError that there was none.
    """
    published = rows(connection, PUBLICATIONS, scenario=scenario)
    days = sorted({str(row["ds"]) for row in published})
    if ds not in days:
        raise not_visible(rows(connection, STAGES, ds=ds, scenario=scenario), days, ds=ds)
    earlier = [day for day in days if day < ds]
    before = Night(connection, earlier[-1], scenario, methods_of(published, earlier[-1])) if earlier else None
    return Night(connection, ds, scenario, methods_of(published, ds)), before


def methods_of(published: Rows, ds: str) -> tuple[str, ...]:
    """The visible methods of a night, by name: v1 stands before v2."""
    return tuple(sorted(str(row["method"]) for row in published if row["ds"] == ds))


def not_visible(stages: Sequence[Row], days: Sequence[str], *, ds: str) -> NightError | UsageError:
    """The one line for a night that nobody can see."""
    if stages:
        return NightError(
            f"report: {attempt_line(stages, ds=ds)}; nothing of it is visible. Mend it and run `recgpt night --ds {ds}` again"
        )
    if not days:
        return UsageError(f"report: no night has run in this warehouse; start one by `recgpt night --ds {ds} --users 8`")
    near = ", ".join(days[-5:])
    return UsageError(f"report: no night of {ds} has run; visible are {near}. Start it by `recgpt night --ds {ds} --users 8`")


def attempt_line(stages: Sequence[Row], *, ds: str) -> str:
    """How the newest attempt of these stages stands: which stage failed and why, or where it is."""
    attempt = max(row["attempt"] for row in stages)
    mine = [row for row in stages if row["attempt"] == attempt]
    failed = [row for row in mine if row["state"] == "failed"]
    if failed:
        why = one_line(str(json.loads(failed[-1]["detail"]).get("error", "it left no reason")))
        return f"attempt {attempt} at the night of {ds} failed at {failed[-1]['stage']}: {why}"
    return f"attempt {attempt} at the night of {ds} has come to {mine[-1]['stage']} ({mine[-1]['state']}) and runs still, or was killed"


def newer_attempt(stages: Sequence[Row], *, shown: int, ds: str) -> str | None:
    """What an attempt after the shown one came to; None where the shown one is the newest."""
    later = [row for row in stages if row["attempt"] > shown]
    return attempt_line(later, ds=ds) if later else None
