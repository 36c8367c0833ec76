"""The charts of a report, each with the table of its figures: judges, tokens and seconds, evaluations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from recgpt_ops.report.charts import Dot, Point, bars_chart, intervals_chart, parts_chart
from recgpt_ops.report.glance import Counts
from recgpt_ops.report.reading import Row, Rows
from recgpt_ops.report.spending import Stage
from recgpt_ops.report.texts import number, percent

GRADE_COLORS = {"S": "--good", "A": "--fair", "B": "--bad", "failed": "--none", "excluded": "--grid"}
LEVEL_COLORS = {"positive": "--good", "neutral": "--fair", "negative": "--bad", "failed": "--none"}
TOKEN_COLORS = {"computed": "--computed", "cached": "--cached"}
RATE = "hr_"  # metrics of this name are hit rates, drawn with their intervals
HEADLINE = "computed"  # what saves money: prompt tokens that no cache had


class Chart(NamedTuple):
    """One drawing and the figures it shows. `id` names its caption within the page."""

    id: str
    title: str
    svg: Markup
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Cell(NamedTuple):
    """One arm's figure, and its interval where it has one."""

    value: float | None
    lo: float | None
    hi: float | None


class EvaluationLine(NamedTuple):
    """One metric over all arms; None where an arm lacks it."""

    metric: str
    unit: str
    cells: tuple[Cell | None, ...]


class Evaluation(NamedTuple):
    """One kind of evaluation, the newest of its kind."""

    name: str
    data_set: str
    split: str
    arms: tuple[str, ...]
    lines: tuple[EvaluationLine, ...]
    charts: tuple[Chart, ...]


def judge_charts(counts: Counts) -> list[Chart]:
    """Grades by method and judge, and the levels behind them by dimension."""
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
        charts += [level_chart(what, judge, counts.levels[what]) for judge in judges_of(counts.levels[what])]
    return charts


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


def spending_charts(stages: Sequence[Stage], calls: Rows) -> list[Chart]:
    """Seconds of each stage, and prompt tokens of each stage by method."""
    charts = []
    if stages:
        seconds = [Dot("", stage.name, stage.seconds, None, None) for stage in stages]
        table = tuple((dot.name, number(dot.value)) for dot in seconds)
        charts.append(Chart("seconds", "Seconds by stage", bars_chart(seconds, unit="seconds"), ("stage", "seconds"), table))
    sums: Counter[tuple[str, str, str]] = Counter()
    for row in calls:
        for part in TOKEN_COLORS:
            sums[row["method"], row["stage"], part] += int(row[f"{part}_tokens"])
    if sums:
        points = [Point(*key, value) for key, value in sums.items()]
        rows = tuple((point.group, point.name, point.part, number(point.value)) for point in points)
        svg = parts_chart(points, parts=TOKEN_COLORS, unit="prompt tokens")
        charts.append(Chart("tokens", "Prompt tokens by method and stage", svg, ("method", "stage", "kind", "tokens"), rows))
    return charts


def evaluations_of(found: Rows) -> list[Evaluation]:
    """Each kind of evaluation with its table and charts."""
    kinds: dict[tuple[str, str, str], Rows] = {}
    for row in found:
        kinds.setdefault((row["name"], row["data_set"], row["split"]), []).append(row)
    return [evaluation(*kind, mine, number_=place) for place, (kind, mine) in enumerate(kinds.items(), start=1)]


def evaluation(name: str, data_set: str, split: str, mine: Rows, *, number_: int) -> Evaluation:
    """One evaluation. Arms that cost model calls come before those without a model."""
    told = {(row["metric"], row["arm"]): row for row in mine}
    priced = {row["arm"] for row in mine if HEADLINE in row["metric"]}
    arms = tuple(sorted({row["arm"] for row in mine}, key=lambda arm: (arm not in priced, arm)))
    lines = []
    for metric in sorted({row["metric"] for row in mine}, key=lambda metric: (HEADLINE not in metric, not metric.startswith(RATE), metric)):
        units = {row["unit"] for row in mine if row["metric"] == metric}
        lines.append(EvaluationLine(metric, ", ".join(sorted(units)), tuple(cell_of(told.get((metric, arm))) for arm in arms)))
    charts = [metric_chart(line, arms, f"evaluation-{number_}-{place}") for place, line in enumerate(lines) if is_drawn(line)]
    return Evaluation(name, data_set, split, arms, tuple(lines), tuple(charts))


def cell_of(row: Row | None) -> Cell | None:
    """The figure of a row."""
    return None if row is None else Cell(row["value"], row["lo"], row["hi"])


def is_drawn(line: EvaluationLine) -> bool:
    """Headline and hit rates are drawn, where there is a figure."""
    wanted = HEADLINE in line.metric or line.metric.startswith(RATE)
    return wanted and any(cell is not None and cell.value is not None for cell in line.cells)


def metric_chart(line: EvaluationLine, arms: Sequence[str], id_: str) -> Chart:
    """One metric by arm, with intervals where there are any."""
    dots = [
        Dot("", arm, cell.value, cell.lo, cell.hi)
        for arm, cell in zip(arms, line.cells, strict=True)
        if cell is not None and cell.value is not None
    ]
    table = tuple((dot.name, f"{number(dot.lo)} to {number(dot.hi)}", number(dot.value)) for dot in dots)
    has_interval = any(dot.lo is not None and dot.hi is not None for dot in dots)
    svg = intervals_chart(dots, unit=line.unit) if has_interval else bars_chart(dots, unit=line.unit)
    return Chart(id_, f"{line.metric} by arm", svg, ("arm", "95 % interval", line.unit), table)
