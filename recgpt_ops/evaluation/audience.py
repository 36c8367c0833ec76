"""Who an evaluation is made of: users with a past to learn from and a future to be guessed."""

from __future__ import annotations

import duckdb

from recgpt_ops.evaluation.feeds import Window, label_actions
from recgpt_ops.ids import user_order

USERS = """
WITH told AS (
    SELECT user_id, valid_to_ds FROM user_profiles WHERE valid_from_ds <= $ds
    QUALIFY row_number() OVER (PARTITION BY user_id ORDER BY valid_from_ds DESC) = 1
),
counted AS (
    SELECT
        user_id,
        count(*) FILTER (WHERE event_ds <= $ds AND arrived_ds <= $ds) AS before_count,
        count(*) FILTER (WHERE event_ds > $ds AND event_ds <= $last_ds) AS after_count
    FROM behavior_events WHERE list_contains($actions, action) GROUP BY user_id
)
SELECT user_id FROM counted JOIN told USING (user_id)
WHERE (valid_to_ds IS NULL OR valid_to_ds >= $ds) AND before_count >= $min_before AND after_count >= $min_after
"""


def choose_users(
    connection: duckdb.DuckDBPyConnection, window: Window, *, count: int, min_before: int, min_after: int = 1
) -> tuple[list[str], int]:
    """The `count` users with the smallest sha256(user_id) who qualify, and how many qualify.

    They have a profile as of `ds`, at least `min_before` events that the night of `ds` may read and `min_after` in the window; only
    actions that are labels count.
    """
    terms = {
        "ds": window.ds,
        "last_ds": window.last_ds,
        "actions": list(label_actions(connection)),
        "min_before": min_before,
        "min_after": min_after,
    }
    found = [user_id for (user_id,) in connection.execute(USERS, terms).fetchall()]
    return sorted(found, key=user_order)[:count], len(found)
