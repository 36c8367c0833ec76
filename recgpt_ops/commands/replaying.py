"""Replaying: the users behind rows in quarantine go through the stages they miss, as a generation beside the visible one.

quarantine of 2017-10-30: u7 (intents, poison), an explanation that u2 and u3 should be shown
->  u7, if readers still see no fresh result; u2 and u3, if their assignment still has no text        one order per set of methods
    (a verdict that failed: the user of the tag, or all who are shown the text)
->  night_users once more: u2, u3 and u7 made by the new generation, everybody else by the one that made them before
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from recgpt_ops.commands.night import changed_text
from recgpt_ops.commands.night_run import NightOrder, run_night
from recgpt_ops.commands.night_summary import write_summary
from recgpt_ops.commands.options import Format
from recgpt_ops.delta.pointer import visible_publications
from recgpt_ops.delta.sql import connect
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.errors import InputsChangedError, UsageError
from recgpt_ops.nights import Asked, standing
from recgpt_ops.planning.budget import night_budget
from recgpt_ops.settings import Settings

# Who still lacks something that readers could see, by stage: method, user and the key under which quarantine has it.
WITHOUT = {
    "intents": "SELECT method, user_id, user_id FROM night_users WHERE (status = 'failed' OR reason = 'retry')",
    "explanations": "SELECT method, user_id, explanation_id FROM explanation_assignments WHERE status = 'failed'",
    "tag_verdicts": "SELECT method, user_id, user_id FROM tag_verdicts WHERE status = 'failed'",
    "explanation_verdicts": (
        "SELECT method, user_id, explanation_id || ' ' || judge_method FROM explanation_verdicts AS v "
        "JOIN explanation_assignments AS a USING (ds, scenario, method, explanation_id) WHERE v.status = 'failed' AND a.status <> 'failed'"
    ),
}
BY_USER = frozenset({"intents", "user_contexts"})  # stages whose failure leaves the user without any result


def open_users(warehouse: Warehouse, rows: Sequence[Mapping[str, Any]], *, ds: str, scenario: str) -> dict[str, set[str]]:
    """By method the users behind some rows in quarantine who still lack what the rows were for."""
    if not any((day, place) == (ds, scenario) for day, place, _ in visible_publications(warehouse)):
        raise UsageError(
            f"no night of {ds} is visible in scenario {scenario!r}, so nothing can be added to it; run: recgpt night --ds {ds}"
        )
    connection = connect(warehouse)
    found: defaultdict[str, set[str]] = defaultdict(set)
    for stage, sql in WITHOUT.items():
        mine = {
            (row["method"], row["user_id"] or row["row_key"])
            for row in rows
            if row["stage"] == stage or (stage == "intents" and row["stage"] in BY_USER)
        }
        for method, user_id, key in connection.execute(f"{sql} AND ds = ? AND scenario = ?", [ds, scenario]).fetchall() if mine else ():
            if (method, key) in mine:
                found[method].add(user_id)
    return dict(found)


def replay_orders(found: Mapping[str, set[str]], *, ds: str, scenario: str) -> list[NightOrder]:
    """One night per set of users; methods that miss the same users run together."""
    by_users: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for method, users in found.items():
        by_users[tuple(sorted(users))].append(method)
    return [NightOrder(ds, scenario, tuple(sorted(methods)), None, users, "replay") for users, methods in sorted(by_users.items())]


def run_replay(warehouse: Warehouse, settings: Settings, orders: Sequence[NightOrder], *, form: Format, option: str) -> None:
    """Runs the orders one after the other and tells each one's result. Inputs that changed since are refused, before anything runs."""
    for order in orders:
        found = standing(
            warehouse, settings, ds=order.ds, scenario=order.scenario, methods=order.methods, asked=Asked(None, order.user_ids)
        )  # fmt: skip
        if found.changed:
            raise InputsChangedError(changed_text(order.ds, found, option))
    for order in orders:
        users, methods = len(order.user_ids), ", ".join(order.methods)
        sys.stderr.write(f"Replaying {users} {'user' if users == 1 else 'users'} of {order.ds} by {methods}; all others keep their rows.\n")
        result = run_night(warehouse, settings, order)
        budget = night_budget(settings, dict.fromkeys(order.methods, users))
        write_summary(warehouse, result, order.ds, budget=budget, form=form, option=option)
