"""The charts of a night, each with the table of its figures: grades and levels, seconds and tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from recgpt_ops.report.charts import Chart, Dot, Point, bars_chart, parts_chart
from recgpt_ops.report.glance import Counts
from recgpt_ops.report.reading import Rows
from recgpt_ops.report.spending import Stage
from recgpt_ops.report.texts import number, percent

GRADE_COLORS = {"S": "--good", "A": "--fair", "B": "--bad", "failed": "--none", "excluded": "--grid"}
LEVEL_COLORS = {"positive": "--good", "neutral": "--fair", "negative": "--bad", "failed": "--none"}
TOKEN_COLORS = {"computed": "--computed", "cached": "--cached"}


def grade_charts(counts: Counts) -> list[Chart]:
    """How many got which grade, by method and judge."""
    charts = []
    for what in counts.levels:
        points = [
            Point(grade.method, grade.judge, part, value)
            for grade in counts.grades
            if grade.what == what
            for part, value in (*grade.labels.items(), ("failed", grade.failed), ("excluded", grade.excluded))
        ]
        if points:
            table = tuple((point.group, point.name, point.part, number(point.value)) for point in points)
            svg = parts_chart(points, parts=GRADE_COLORS, unit=what)
            charts.append(Chart(f"grades-{what}", f"Grades of {what}", svg, ("method", "judge", "grade", what), table))
    return charts


def level_charts(counts: Counts) -> list[Chart]:
    """The levels behind the grades, by dimension."""
    return [level_chart(what, judge, rows) for what, rows in counts.levels.items() for judge in judges_of(rows)]


def judges_of(levels: Rows) -> list[str]:
    """The judges that gave levels, the panel first."""
    return sorted({row["judge_method"] for row in levels}, key=lambda name: (name != "panel", name))


def level_chart(what: str, judge: str, levels: Rows) -> Chart:
    """How often each dimension got each level, as shares of its verdicts; a dimension that failed has a part of its own."""
    sums: Counter[tuple[str, str, str]] = Counter()
    wholes: Counter[tuple[str, str]] = Counter()
    for row in levels:
        if row["judge_method"] == judge:
            bar = (row["method"], row["dimension"])
            sums[*bar, row["level"] if row["level"] in LEVEL_COLORS else "failed"] += row["verdicts"]
            wholes[bar] += row["verdicts"]
    points = [Point(*key, value) for key, value in sorted(sums.items())]
    table = tuple(
        (point.group, point.name, point.part, number(point.value), percent(point.value, wholes[point.group, point.name]))
        for point in points
    )
    svg = parts_chart(points, parts=LEVEL_COLORS, unit="share of verdicts", is_share=True)
    columns = ("method", "dimension", "level", "verdicts", "share")
    return Chart(f"levels-{what}-{judge}", f"Levels by dimension: {what}, {judge}", svg, columns, table)


def seconds_chart(stages: Sequence[Stage]) -> Chart:
    """Seconds of each stage."""
    dots = [Dot("", stage.name, stage.seconds, None, None) for stage in stages]
    table = tuple((dot.name, number(dot.value)) for dot in dots)
    return Chart("seconds", "Seconds by stage", bars_chart(dots, unit="seconds"), ("stage", "seconds"), table)


def tokens_chart(calls: Rows) -> Chart:
    """Prompt tokens of each stage by method: those that had to be computed, and those that the prefix cache had."""
    sums: Counter[tuple[str, str, str]] = Counter()
    for row in calls:
        for part in TOKEN_COLORS:
            sums[row["method"], row["stage"], part] += int(row[f"{part}_tokens"])
    points = [Point(*key, value) for key, value in sums.items()]
    table = tuple((point.group, point.name, point.part, number(point.value)) for point in points)
    svg = parts_chart(points, parts=TOKEN_COLORS, unit="prompt tokens")
    return Chart("tokens", "Prompt tokens by method and stage", svg, ("method", "stage", "kind", "tokens"), table)
