"""The feeds as an evaluation reads them: SQL over all events, what was known by the end of `ds` told apart from what came after."""

from __future__ import annotations

from datetime import date, timedelta
from typing import NamedTuple

import duckdb

from recgpt_ops.delta.reading import files_dataset, generation_files
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.errors import UsageError
from recgpt_ops.tables import load_contract

FEEDS = ("behavior_events", "items", "user_profiles")
NO_LABELS = ("coupon", "campaign", "return")  # what a shop did to somebody, and what came back, is nothing that was wanted


class Window(NamedTuple):
    """The days after `ds` that are guessed at: (ds, ds + days]."""

    ds: str
    days: int

    @property
    def last_ds(self) -> str:
        """The last business date of the window."""
        return (date.fromisoformat(self.ds) + timedelta(days=self.days)).isoformat()


def connect_feeds(warehouse: Warehouse) -> duckdb.DuckDBPyConnection:
    """A connection with the three feeds, all rows of them, whenever they arrived."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name in FEEDS:
        connection.register(name, files_dataset(load_contract(name), generation_files(warehouse, name)))
    return connection


def label_actions(connection: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """The actions that say what somebody wanted: purchases where the data has any, else everything but coupons, campaigns and returns."""
    found = {action for (action,) in connection.execute("SELECT DISTINCT action FROM behavior_events").fetchall()}
    return ("purchase",) if "purchase" in found else tuple(sorted(found - set(NO_LABELS)))


def check_window(connection: duckdb.DuckDBPyConnection, window: Window) -> None:
    """UsageError when the data ends before the window does: a week that nobody recorded would count as a week without purchases."""
    first, last = connection.execute("SELECT min(event_ds), max(event_ds) FROM behavior_events").fetchall()[0]
    if last is None:
        raise UsageError("behavior_events: there are no events; import a data set: recgpt import --help")
    if window.last_ds > last or window.ds < first:
        left = (date.fromisoformat(last) - date.fromisoformat(window.ds)).days
        fits = f"--label-days {left}, or " if 0 < left < window.days and window.ds >= first else ""
        raise UsageError(
            f"behavior_events hold {first} to {last}, the labels of ds={window.ds} would reach {window.last_ds}; "
            f"give {fits}a --ds within the data"
        )
