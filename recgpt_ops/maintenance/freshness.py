"""Whether nights still come: the newest published day of each recipe beside the day that should be there by now.

    FRESH v2: newest night 2026-11-29, expected 2026-11-29
    LATE  v1: newest night 2026-11-27, expected 2026-11-29; next: recgpt status --ds 2026-11-28

This is seen whatever kept a night away, also a run that was never made: Airflow's own deadline counts from a run's queue (087).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from recgpt_ops.delta.pointer import visible_publications
from recgpt_ops.delta.warehouse import Warehouse, open_warehouse
from recgpt_ops.errors import NightError
from recgpt_ops.settings import Settings, load_settings


class Freshness(NamedTuple):
    """One recipe's newest night; `expected_ds` is None where nights are only asked for."""

    method: str
    newest_ds: str | None
    expected_ds: str | None

    @property
    def is_late(self) -> bool:
        """Whether the expected night is not there."""
        return self.expected_ds is not None and (self.newest_ds or "") < self.expected_ds

    def __str__(self) -> str:
        told = f"{'LATE ' if self.is_late else 'FRESH'} {self.method}: newest night {self.newest_ds or 'none'}"
        if self.expected_ds is None:
            return f"{told}; nights are asked for here (setting night.is_scheduled), none is expected"
        if not self.is_late:
            return f"{told}, expected {self.expected_ds}"
        missing = date.fromisoformat(self.newest_ds) + timedelta(days=1) if self.newest_ds else self.expected_ds
        return f"{told}, expected {self.expected_ds}; next: recgpt status --ds {missing}, then infra/docs/runbooks/maintenance_daily.md"


def expected_ds(settings: Settings, now: datetime) -> str | None:
    """The newest day that ended at least `night.deadline_hours` ago in the time zone of the nights; None where the clock starts none."""
    if not settings.night.is_scheduled:
        return None
    local = (now - timedelta(hours=settings.night.deadline_hours)).astimezone(ZoneInfo(settings.night.cron_time_zone))
    return (local.date() - timedelta(days=1)).isoformat()


def freshness(warehouse: Warehouse, settings: Settings, *, now: datetime) -> list[Freshness]:
    """A line for each recipe of `night.methods`, in their order."""
    newest = newest_days(visible_publications(warehouse), scenario=settings.night.scenario)
    expected = expected_ds(settings, now)
    return [Freshness(method, newest.get(method), expected) for method in settings.night.methods]


def tell_freshness(root: str, *, say: Callable[[str], None]) -> None:
    """`freshness` of a warehouse now, each line told; NightError with those that are late."""
    found = freshness(open_warehouse(root), load_settings(warehouse=root), now=datetime.now(UTC))
    for one in found:
        say(str(one))
    if late := [str(one) for one in found if one.is_late]:
        raise NightError("; ".join(late))


def newest_days(visible: Mapping[tuple[str, str, str], object], *, scenario: str) -> dict[str, str]:
    """Recipe -> newest published ds."""
    newest: dict[str, str] = {}
    for ds, where, method in visible:
        if where == scenario:
            newest[method] = max(ds, newest.get(method, ""))
    return newest
