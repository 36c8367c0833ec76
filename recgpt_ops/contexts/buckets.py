"""Which time buckets a night reads: V1's days, months and years, on the calendar (RecGPT V1, section 2.1).

    ds = 2017-10-30     behavior_days    2017-09-01 ... 2017-10-30     this and the previous calendar month
                        behavior_months  2016-01    ... 2017-08        the other months of this and the previous year
                        behavior_years             ... 2015            whole earlier years

Calendar buckets never move: a night later only few of them change, so they can be kept as state.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Literal, NamedTuple

StateTable = Literal["behavior_days", "behavior_months", "behavior_years"]
STATE_TABLES: tuple[StateTable, ...] = ("behavior_days", "behavior_months", "behavior_years")
BUCKET_CHARS: dict[str, int] = {"behavior_days": 10, "behavior_months": 7, "behavior_years": 4}  # leading characters of event_ds


class BucketSpan(NamedTuple):
    """The event dates that one state table covers for a night; both ends are in it. `first_ds` None: from the beginning."""

    first_ds: str | None
    last_ds: str


def bucket_span(table: StateTable, ds: str) -> BucketSpan:
    """The dates of events that `table` holds for the night of `ds`. The three spans touch and never overlap."""
    day = date.fromisoformat(ds)
    previous_month = (day.replace(day=1) - timedelta(days=1)).replace(day=1)
    january = date(day.year - 1, 1, 1)
    if table == "behavior_days":
        return BucketSpan(previous_month.isoformat(), ds)
    if table == "behavior_months":
        return BucketSpan(january.isoformat(), (previous_month - timedelta(days=1)).isoformat())
    return BucketSpan(None, (january - timedelta(days=1)).isoformat())


def calendar_buckets(table: StateTable, ds: str) -> list[str]:
    """Every bucket of the span, oldest first, with data or not. Years have no beginning: the last one; data says which others."""
    first_ds, last_ds = bucket_span(table, ds)
    if first_ds is None:
        return [last_ds[:4]]
    days = (date.fromisoformat(last_ds) - date.fromisoformat(first_ds)).days + 1
    chars = BUCKET_CHARS[table]
    dates = ((date.fromisoformat(first_ds) + timedelta(days=n)).isoformat()[:chars] for n in range(days))
    return list(dict.fromkeys(dates))


def days_before(ds: str, days: int) -> str:
    """The date `days` days before `ds`.

    >>> days_before("2017-03-01", 1)
    '2017-02-28'
    """
    return (date.fromisoformat(ds) - timedelta(days=days)).isoformat()
