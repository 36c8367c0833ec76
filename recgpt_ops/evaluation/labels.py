"""What people did after a night: the category of the next thing, and all categories of the window. Nothing else may read these rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import duckdb

from recgpt_ops.evaluation.feeds import Window, category_of
from recgpt_ops.ids import row_id

# The item's text on the day of the event. Things done at one instant (or on one day, where only days are known) are ordered by event_id.
FUTURE = """
SELECT e.user_id, i.category, i.item_type, i.title
FROM (
    SELECT user_id, item_id, event_ds, event_at, event_id FROM behavior_events
    WHERE event_ds > $ds AND event_ds <= $last_ds AND list_contains($actions, action) AND list_contains($users, user_id)
) e
ASOF JOIN items i ON e.item_id = i.item_id AND e.event_ds >= i.valid_from_ds
ORDER BY e.user_id, e.event_at, e.event_id
"""


class Label(NamedTuple):
    """One user's future: the category of the first event after `ds`, and every category of the window."""

    next_category: str
    categories: frozenset[str]


def read_labels(
    connection: duckdb.DuckDBPyConnection, window: Window, *, actions: Collection[str], user_ids: Collection[str]
) -> tuple[dict[str, Label], str]:
    """The labels of those users who have any, and in words what their categories are, such as `category` or `category, else item_type`."""
    terms = {"ds": window.ds, "last_ds": window.last_ds, "actions": list(actions), "users": list(user_ids)}
    rows = connection.execute(FUTURE, terms).fetchall()
    return as_labels((user_id, category_of(*texts)) for user_id, *texts in rows), level_of(rows)


def as_labels(events: Iterable[tuple[str, str]]) -> dict[str, Label]:
    """Labels from (user, category) in the order in which things happened.

    [("u1", "cheese"), ("u1", "beef"), ("u1", "cheese")]  ->  {"u1": ("cheese", {"cheese", "beef"})}
    """
    found: dict[str, list[str]] = {}
    for user_id, category in events:
        found.setdefault(user_id, []).append(category)
    return {user_id: Label(categories[0], frozenset(categories)) for user_id, categories in found.items()}


def level_of(rows: Iterable[tuple[Any, ...]]) -> str:
    """Which columns the categories come from, those first that stand for others."""
    levels = {"category" if category else "item_type" if item_type else "title" for _, category, item_type, _ in rows}
    return ", else ".join(name for name in ("category", "item_type", "title") if name in levels) or "none"


def labels_digest(labels: dict[str, Label]) -> str:
    """One digest of all labels: part of what an evaluation was made from."""
    return row_id(row_id((user_id, label.next_category, *sorted(label.categories))) for user_id, label in sorted(labels.items()))
