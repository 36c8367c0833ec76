"""The night in figures: one column a method, each figure beside that of the night before.

v1   tags 48, distinct 31        v2   tags 48 (+6), distinct 43 (±0)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from recgpt_ops.report.reading import ASSIGNMENTS, CALLS, GRADES, LEVELS, QUARANTINE, TAGS, TEXTS, USERS, Night, Rows, night_rows
from recgpt_ops.report.texts import change, number, percent

GRADED = {"tags": "tag_verdicts", "explanations": "explanation_verdicts"}  # what is judged -> the table of its verdicts
LABELS = ("S", "A", "B")


class Grades(NamedTuple):
    """What one judge said of one method: counts by grade, without a grade (failed), and never judged (excluded by the judges' share)."""

    what: str
    method: str
    judge: str
    labels: Mapping[str, int]
    failed: int
    excluded: int
    by_rule: int
    is_self_judged: bool

    @property
    def judged(self) -> int:
        """Verdicts with a grade."""
        return sum(self.labels.values())


@dataclass(frozen=True)
class Counts:
    """All counted rows of one night."""

    methods: tuple[str, ...]
    users: Rows
    tags: Rows
    assignments: Rows
    quarantine: Rows
    calls: Rows
    grades: tuple[Grades, ...]
    levels: Mapping[str, Rows]


class Cell(NamedTuple):
    """One figure of one method, and by how much it moved since the night before."""

    value: str
    change: str


class Figure(NamedTuple):
    """One line of the table; `level` 1 is a part of the line above."""

    name: str
    level: int
    cells: tuple[Cell, ...]


class Line(NamedTuple):
    """Where a counted figure comes from: a column of one of the `Counts`' rows, summed over those that are `where`."""

    name: str
    level: int
    rows: str
    column: str
    where: Mapping[str, str]


MADE = (
    Line("users", 0, "users", "users", {}),
    *(Line(status, 1, "users", "users", {"status": status}) for status in ("computed", "carried", "failed", "skipped")),
    Line("tags", 0, "tags", "tags", {}),
    Line("distinct", 1, "tags", "distinct_tags", {}),
    Line("explained items", 0, "assignments", "items", {}),
    *(Line(status, 1, "assignments", "items", {"status": status}) for status in ("written", "shared", "failed")),
)
SPENT = (
    Line("rows in quarantine", 0, "quarantine", "rows", {}),
    Line("model calls", 0, "calls", "calls", {}),
    Line("prompt tokens submitted", 1, "calls", "prompt_tokens", {}),
    Line("tokens from the prefix cache", 1, "calls", "cached_tokens", {}),
    Line("computed tokens", 1, "calls", "computed_tokens", {}),
)


def count_night(night: Night) -> Counts:
    """Reads the counts of one night."""
    tags, assignments = night_rows(night, TAGS), night_rows(night, ASSIGNMENTS)
    totals = {
        "tags": {row["method"]: row["tags"] for row in tags},
        "explanations": {row["method"]: row["texts"] for row in night_rows(night, TEXTS)},
    }
    grades = [
        grade
        for what, table in GRADED.items()
        for grade in grades_of(what, night_rows(night, GRADES.format(table=table)), totals[what], methods=night.methods)
    ]
    return Counts(
        night.methods,
        night_rows(night, USERS),
        tags,
        assignments,
        night_rows(night, QUARANTINE),
        night_rows(night, CALLS),
        tuple(grades),
        {what: night_rows(night, LEVELS.format(table=table)) for what, table in GRADED.items()},
    )


def grades_of(what: str, verdicts: Rows, totals: Mapping[str, int], *, methods: Sequence[str]) -> list[Grades]:
    """The verdicts of each method and judge, counted; `totals` are the rows that could have been judged."""
    found = []
    for method in methods:
        for judge in sorted({row["judge_method"] for row in verdicts if row["method"] == method}, key=lambda name: (name != "panel", name)):
            mine = [row for row in verdicts if (row["method"], row["judge_method"]) == (method, judge)]
            labels = {label: sum(row["verdicts"] for row in mine if row["label"] == label) for label in LABELS}
            failed = sum(row["verdicts"] for row in mine if row["status"] == "failed")
            excluded = totals.get(method, 0) - sum(row["verdicts"] for row in mine)
            by_rule = sum(row["verdicts"] for row in mine if row["status"] == "by_rule")
            own = any(row["is_self_judged"] for row in mine)
            found.append(Grades(what, method, judge, labels, failed, excluded, by_rule, own))
    return found


def glance(now: Counts, before: Counts | None) -> list[Figure]:
    """The lines of the table; a method that the night before did not have has nothing to compare with."""
    judged = [grade_figure(what, judge, now, before) for what, judge in judges(now)]
    return [*(counted(line, now, before) for line in MADE), *judged, *(counted(line, now, before) for line in SPENT)]


def counted(line: Line, now: Counts, before: Counts | None) -> Figure:
    """One line that is a sum over counted rows."""
    cells = []
    for method in now.methods:
        value = total(getattr(now, line.rows), line.column, method=method, **line.where)
        known = before is not None and method in before.methods
        cells.append(
            Cell(
                number(value), change(value, total(getattr(before, line.rows), line.column, method=method, **line.where) if known else None)
            )
        )
    return Figure(line.name, line.level, tuple(cells))


def total(counted: Rows, name: str, **where: str) -> int:
    """The sum of one column over the rows that are so."""
    return sum(int(row[name]) for row in counted if all(row[key] == value for key, value in where.items()))


def judges(counts: Counts) -> list[tuple[str, str]]:
    """What was judged, by which judge, in the order they are shown."""
    return list(dict.fromkeys((grade.what, grade.judge) for grade in counts.grades))


def grade_figure(what: str, judge: str, now: Counts, before: Counts | None) -> Figure:
    """The share of the best grade among what one judge graded, and its change in points."""
    cells = []
    for method in now.methods:
        grade, then = grade_of(now, what, judge, method), None if before is None else grade_of(before, what, judge, method)
        if grade is None or not grade.judged:
            cells.append(Cell("–", ""))
            continue
        moved = None if then is None or not then.judged else round(100 * then.labels["S"] / then.judged)
        cells.append(Cell(percent(grade.labels["S"], grade.judged), change(round(100 * grade.labels["S"] / grade.judged), moved)))
    return Figure(f"{what}: S by {judge}", 0, tuple(cells))


def grade_of(counts: Counts, what: str, judge: str, method: str) -> Grades | None:
    """The grades of one judge for one method, if there are any."""
    return next((grade for grade in counts.grades if (grade.what, grade.judge, grade.method) == (what, judge, method)), None)
