"""What methods are worth, as evaluations of this night found: the headline and the hit rates drawn, every figure in a table.

hr_next1@6               a metric of an arm
hr_next1@6 - own_repeats the difference to another arm, user by user: whether an arm is really above it
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from recgpt_ops.report.charts import Chart, Dot, bars_chart, intervals_chart
from recgpt_ops.report.reading import Row, Rows
from recgpt_ops.report.texts import number

HEADLINE = "prompt_tokens_computed"  # a user: what is paid for, because no cache had it
RATE = "hr_"  # hit rates
MINUS, OVER = " - ", " / "  # metrics of two arms


class Cell(NamedTuple):
    """One arm's figure, and its interval where it has one."""

    value: float | None
    lo: float | None
    hi: float | None


class Line(NamedTuple):
    """One metric over all arms; None where an arm lacks it."""

    metric: str
    unit: str
    cells: tuple[Cell | None, ...]

    @property
    def is_compared(self) -> bool:
        """Whether it sets two arms against each other."""
        return MINUS in self.metric or OVER in self.metric


class Evaluation(NamedTuple):
    """One kind of evaluation, the newest of its kind. `n` is the largest number of users a figure rests on."""

    name: str
    data_set: str
    split: str
    n: int
    arms: tuple[str, ...]
    lines: tuple[Line, ...]
    charts: tuple[Chart, ...]


def evaluations_of(found: Rows) -> list[Evaluation]:
    """Each kind of evaluation with its table and charts."""
    kinds: dict[tuple[str, str, str], Rows] = {}
    for row in found:
        kinds.setdefault((row["name"], row["data_set"], row["split"]), []).append(row)
    return [evaluation(kind, mine, place) for place, (kind, mine) in enumerate(kinds.items(), start=1)]


def evaluation(kind: tuple[str, str, str], mine: Rows, place: int) -> Evaluation:
    """One evaluation. Arms that cost model calls come before those without a model."""
    told = {(row["metric"], row["arm"]): row for row in mine}
    units = {row["metric"]: row["unit"] for row in mine}
    priced = {row["arm"] for row in mine if row["metric"] == HEADLINE}
    arms = tuple(sorted({row["arm"] for row in mine}, key=lambda arm: (arm not in priced, arm)))
    metrics = sorted(units, key=lambda metric: (metric != HEADLINE, not metric.startswith(RATE), metric))
    lines = tuple(Line(metric, units[metric], tuple(cell_of(told.get((metric, arm))) for arm in arms)) for metric in metrics)
    return Evaluation(*kind, max(row["n"] for row in mine), arms, lines, tuple(charts_of(lines, arms, f"evaluation-{place}")))


def cell_of(row: Row | None) -> Cell | None:
    """The figure of a row."""
    return None if row is None else Cell(row["value"], row["lo"], row["hi"])


def charts_of(lines: Sequence[Line], arms: Sequence[str], id_: str) -> list[Chart]:
    """The headline, each hit rate, and of each hit rate the differences between arms."""
    charts = []
    for place, line in enumerate(lines):
        if line.metric == HEADLINE:
            charts.append(chart("Prompt tokens computed a user", line.unit, dots_of(line, arms), f"{id_}-{place}"))
        elif line.metric.startswith(RATE) and not line.is_compared:
            charts.append(chart(f"{line.metric} by arm", line.unit, dots_of(line, arms), f"{id_}-{place}"))
            differences = [
                dot._replace(name=f"{dot.name} − {other.metric.partition(MINUS)[2]}")
                for other in lines
                if other.metric.startswith(line.metric + MINUS)
                for dot in dots_of(other, arms)
            ]
            if differences:
                charts.append(chart(f"{line.metric}: differences between arms", line.unit, differences, f"{id_}-{place}-differences"))
    return [made for made in charts if made.rows]


def dots_of(line: Line, arms: Sequence[str]) -> list[Dot]:
    """The figures of a line that can be drawn."""
    return [
        Dot("", arm, cell.value, cell.lo, cell.hi)
        for arm, cell in zip(arms, line.cells, strict=True)
        if cell is not None and cell.value is not None
    ]


def chart(title: str, unit: str, dots: Sequence[Dot], id_: str) -> Chart:
    """One metric by arm, with intervals where there are any."""
    has_interval = any(dot.lo is not None and dot.hi is not None for dot in dots)
    svg = intervals_chart(dots, unit=unit) if has_interval else bars_chart(dots, unit=unit)
    table = tuple((dot.name, f"{number(dot.lo)} to {number(dot.hi)}" if has_interval else "none", number(dot.value)) for dot in dots)
    return Chart(id_, title, svg, ("arm", "95 % interval", unit), table)
