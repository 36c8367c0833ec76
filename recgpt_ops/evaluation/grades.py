"""S/A/B shares, failures and level shares of both judges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import duckdb

from recgpt_ops.evaluation.feeds import fetch_rows
from recgpt_ops.evaluation.nights import SHOWN

LABELS = ("S", "A", "B")
LEVELS = ("negative", "neutral", "positive")
# What was judged -> its table and the unit that is drawn again for the interval: an explanation is shared by users.
JUDGED: dict[str, tuple[str, str]] = {"tags": ("tag_verdicts", "user_id"), "explanations": ("explanation_verdicts", "explanation_id")}


class Share(NamedTuple):
    """One share before it is divided: how many of how many, a value per unit (user or explanation)."""

    name: str
    counted: Sequence[float]
    among: Sequence[float]


def read_verdicts(connection: duckdb.DuckDBPyConnection, what: str, *, ds: str, scenario: str, method: str) -> list[dict[str, Any]]:
    """The visible verdicts of a method as (unit, judge_method, judge_hash, label, levels)."""
    table, unit = JUDGED[what]
    query = f"SELECT {unit} AS unit, judge_method, judge_hash, label, levels FROM {table} WHERE {SHOWN} ORDER BY ALL"
    return fetch_rows(connection, query, {"ds": ds, "scenario": scenario, "method": method})


def grade_shares(what: str, verdicts: Iterable[Mapping[str, Any]]) -> list[Share]:
    """`tags.panel.S`: the share of grade S among the graded; `tags.panel.failed`: of those without a grade among all.

    `tags.panel.relevance.positive`: of that level among the levels that were told; `tags.panel.relevance.failed` among all asked.
    """
    shares: dict[str, defaultdict[str, list[float]]] = {}

    def count(name: str, unit: str, *, is_counted: bool) -> None:
        pair = shares.setdefault(name, defaultdict(lambda: [0.0, 0.0]))[unit]
        pair[0] += is_counted
        pair[1] += 1

    for verdict in verdicts:
        head, unit, label = f"{what}.{verdict['judge_method']}", verdict["unit"], verdict["label"]
        count(f"{head}.failed", unit, is_counted=label is None)
        for name in LABELS if label is not None else ():
            count(f"{head}.{name}", unit, is_counted=label == name)
        for told in verdict["levels"]:
            level = told["level"]
            count(f"{head}.{told['dimension']}.failed", unit, is_counted=level is None)
            for name in LEVELS if level is not None else ():
                count(f"{head}.{told['dimension']}.{name}", unit, is_counted=level == name)
    return [
        Share(name, [pair[0] for _, pair in sorted(units.items())], [pair[1] for _, pair in sorted(units.items())])
        for name, units in sorted(shares.items())
    ]
