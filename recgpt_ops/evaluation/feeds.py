"""What an evaluation takes from the feeds: the days that are guessed at, which actions count, and the words of an item.

known to the night      event_ds <= ds and arrived_ds <= ds
labels                  event_ds in (ds, ds + days], whenever they arrived
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any, NamedTuple

import duckdb

from recgpt_ops.contexts.words import clean_text, short_title
from recgpt_ops.errors import UsageError

NO_LABELS = ("coupon", "campaign", "return")  # what a shop did to somebody, and what came back, is nothing that was wanted


class Window(NamedTuple):
    """The days after `ds` that are guessed at: (ds, ds + days]."""

    ds: str
    days: int

    @property
    def last_ds(self) -> str:
        """The last business date of the window."""
        return (date.fromisoformat(self.ds) + timedelta(days=self.days)).isoformat()


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


def category_of(category: str | None, item_type: str | None, title: str) -> str:
    """What an item counts as, as groups of a context do: its category, without one its type, without both its title."""
    return category or item_type or title


def word_of(item_type: str | None, title: str) -> str:
    """An item as a tag: its type in the form of the closed vocabulary, without one its title as lines show it."""
    return clean_text(item_type) if item_type else short_title(title)


def fetch_rows(connection: duckdb.DuckDBPyConnection, query: str, terms: Mapping[str, object]) -> list[dict[str, Any]]:
    """The rows of a query by column name; times with their zone."""
    rows: list[dict[str, Any]] = connection.sql(query, params=dict(terms)).to_arrow_table().to_pylist()
    return rows
