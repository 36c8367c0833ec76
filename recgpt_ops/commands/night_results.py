"""What a night made, method by method: users, tags, explanations, verdicts by grade, and how often each level was given.

Explanations and verdicts come from the counts that their stages put into `nights`; users and tags from the generation's rows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow.compute as pc

from recgpt_ops.commands.output import render_rows
from recgpt_ops.delta.records import read_rows
from recgpt_ops.delta.warehouse import Warehouse

METHOD_COLUMNS = ("method", "users", "failed_users", "carried_users", "tags", "explanations", "shared", "failed_explanations")
VERDICT_COLUMNS = ("table", "method", "judge", "judged", "failed", "by_rule", "excluded", "S", "A", "B")
LEVEL_COLUMNS = ("table", "method", "dimension", "negative", "neutral", "positive", "failed")
VERDICT_STAGES = ("tag_verdicts", "explanation_verdicts")


def night_results(warehouse: Warehouse, publish_id: str, stages: Sequence[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Rows by kind: `methods`, `verdicts`, `levels`. `stages` are the done rows of `nights` of this generation."""
    details = {row["stage"]: json.loads(row["detail"]) for row in stages}
    return {
        "methods": method_rows(warehouse, publish_id, details),
        "verdicts": [row for stage in VERDICT_STAGES for row in verdict_rows(stage, details.get(stage, {}))],
        "levels": [row for stage in VERDICT_STAGES for row in level_rows(stage, details.get(stage, {}))],
    }


def method_rows(warehouse: Warehouse, publish_id: str, details: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row a method of the run. Users are those whom this generation computed; a method that ends at its tags has no explanations."""
    mine = pc.field("publish_id") == publish_id
    users = read_rows(warehouse, "night_users", columns=["method", "status", "made_by"], where=mine)
    computed = Counter(row["method"] for row in users if row["status"] == "computed" and row["made_by"] == publish_id)
    tags = Counter(row["method"] for row in read_rows(warehouse, "intent_tags", columns=["method"], where=mine))
    settled = details.get("publish_night", {})
    failed, carried = settled.get("failed_users", {}), settled.get("carried_users", {})
    rows = []
    for method in next(iter(details.values()), {}).get("methods", []):
        texts = details.get("explanations", {}).get("texts", {}).get(method, {})
        rows.append(
            {
                "method": method,
                "users": computed[method],
                "failed_users": failed.get(method),
                "carried_users": carried.get(method),
                "tags": tags[method],
                "explanations": texts.get("written"),
                "shared": texts.get("shared"),
                "failed_explanations": texts.get("failed"),
            }
        )
    return rows


def verdict_rows(stage: str, detail: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row a method and judge: how many rows were graded, how many could not be, and S, A and B among the graded."""
    return [
        {"table": stage, "method": method, "judge": judge, **{name: counts.get(name, 0) for name in VERDICT_COLUMNS[3:]}}
        for method, judges in sorted(detail.get("verdicts", {}).items())
        for judge, counts in sorted(judges.items())
    ]


def level_rows(stage: str, detail: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row a method and dimension of the panel: the share of each level among those that were given, and how many calls failed.

    A dimension that is nearly always positive tells nothing about the rows, and much about the judge.
    """
    rows = []
    for method, dimensions in sorted(detail.get("levels", {}).items()):
        for dimension, counts in dimensions.items():
            given = sum(counts.get(level, 0) for level in LEVEL_COLUMNS[3:6])
            shares = {level: f"{counts.get(level, 0) / given:.0%}" if given else None for level in LEVEL_COLUMNS[3:6]}
            rows.append({"table": stage, "method": method, "dimension": dimension, **shares, "failed": counts.get("failed", 0)})
    return rows


def results_text(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """The three tables for people; a table without rows is left out, and so is a column of which nothing is known."""
    told = []
    for name, columns in (("methods", METHOD_COLUMNS), ("verdicts", VERDICT_COLUMNS), ("levels", LEVEL_COLUMNS)):
        rows = results[name]
        known = [column for column in columns if any(row[column] is not None for row in rows)]
        if rows:
            told.append(render_rows(rows, known, form="table"))
    return "\n".join(told)
