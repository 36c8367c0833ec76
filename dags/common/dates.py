"""Which business date a run is for. One function decides; no task reads a date from anywhere else."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from recgpt_ops.errors import UsageError

RULES_OF = range(2025, 2032)  # years whose clock changes are looked at
LATER = 4  # by then the clocks have changed everywhere

ASK = "start the run again with the parameter ds, such as {'ds': '2017-10-30'}"


def resolve_ds(*, param: str | None, partition_key: str | None, logical_date: datetime | None, zone: str) -> str:
    """The business date of a run: the parameter or the partition key, which must agree; else a midnight as logical date.

    A logical date says a day only at exactly 00:00, in UTC (the console's date picker) or in the business `zone`; it then means
    that calendar date, never the day before. Any other moment, or nothing at all, is an error that asks for `ds`.

    >>> resolve_ds(param=None, partition_key=None, logical_date=datetime(2026, 3, 1, tzinfo=UTC), zone="America/New_York")
    '2026-03-01'
    """
    told = {"parameter ds": param, "partition key": partition_key}
    dates = {name: parse_ds(name, text) for name, text in told.items() if text}
    if len(set(dates.values())) > 1:
        raise UsageError(f"partition key {partition_key!r} and parameter ds {param!r} name two business dates; {ASK}")
    if dates:
        return next(iter(dates.values()))
    if logical_date is None:
        raise UsageError(f"no business date: the run has neither parameter ds, nor partition key, nor logical date; {ASK}")
    if logical_date.tzinfo is None:
        raise UsageError(f"logical date {logical_date.isoformat()} has no time zone; {ASK}")
    for midnight_zone in (UTC, ZoneInfo(zone)):
        local = logical_date.astimezone(midnight_zone)
        if local.time() == time.min:
            return local.date().isoformat()
    raise UsageError(f"logical date {logical_date.isoformat()} is midnight neither in UTC nor in {zone}, so it names no day; {ASK}")


def due_hour(zone: str) -> int:
    """The hour at which a night is due: 0, or 4 in a zone that skips or repeats a midnight when its clocks change.

    Airflow's timetable goes back one tick of the clock to name the day that ended. Where that tick does not exist it names the day that
    just began: one day would never run, another twice.

    >>> due_hour("America/New_York"), due_hour("Africa/Cairo")
    (0, 4)
    """
    midnight, end = datetime(RULES_OF.start, 1, 1, tzinfo=ZoneInfo(zone)), datetime(RULES_OF.stop, 1, 1, tzinfo=ZoneInfo(zone))
    while midnight < end:
        if midnight.utcoffset() != midnight.replace(fold=1).utcoffset():
            return LATER
        midnight += timedelta(days=1)
    return 0


def parse_ds(name: str, text: str) -> str:
    """The date in its one spelling, YYYY-MM-DD; Airflow itself does not check the keys of asset-started runs."""
    try:
        ds = date.fromisoformat(text).isoformat()
    except ValueError as error:
        raise UsageError(f"{name} is {text!r}, expected a date such as 2017-10-30; {ASK}") from error
    if ds != text:
        raise UsageError(f"{name} is {text!r}, expected YYYY-MM-DD; write {ds}")
    return ds


def business_date(context: Mapping[str, Any], zone: str) -> str:
    """`resolve_ds` of a task's context."""
    return resolve_ds(
        param=(context.get("params") or {}).get("ds"),
        partition_key=context.get("partition_key"),
        logical_date=context.get("logical_date"),
        zone=zone,
    )
