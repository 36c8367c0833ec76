"""The made-up night in figures; every expected number is counted by hand from tests/unit/report/nights.py."""

from __future__ import annotations

import pytest

from recgpt_ops.delta.sql import connect
from recgpt_ops.report.glance import Grades, count_night, glance, grades_of
from recgpt_ops.report.standing import open_night
from tests.unit.report.nights import DS


@pytest.fixture(scope="module")
def figures(nights):
    night, before = open_night(connect(nights), ds=DS, scenario="default")
    return {(figure.level, figure.name): figure.cells for figure in glance(count_night(night), count_night(before))}


@pytest.mark.parametrize(
    ("line", "v1", "v2"),
    [
        ((0, "users"), ("4", ""), ("5", "+3")),  # v1 was not in the night before
        ((1, "computed"), ("4", ""), ("4", "+2")),
        ((0, "tags"), ("10", ""), ("10", "+4")),  # three each for 886, 1391, hostile; one for zh-1
        ((1, "distinct"), ("5", ""), ("5", "+2")),
        ((0, "explained items"), ("7", ""), ("7", "+3")),  # two each, one for zh-1
        ((1, "written"), ("6", ""), ("6", "+3")),
        ((0, "rows in quarantine"), ("0", ""), ("2", "+2")),
        ((0, "model calls"), ("6", ""), ("6", "±0")),
        ((1, "computed tokens"), ("12,000", ""), ("3,000", "±0")),
    ],
)
def test_a_figure_stands_beside_that_of_the_night_before(figures, line, v1, v2):
    assert [tuple(cell) for cell in figures[line]] == [v1, v2]


def verdicts(judge: str, status: str, label: str | None, count: int) -> dict:
    return {"method": "v2", "judge_method": judge, "status": status, "label": label, "verdicts": count, "is_self_judged": False}


def test_case_047_failed_and_excluded_are_counted_and_are_no_grade():
    """Ten tags: five graded, two of them by rule, three failed, two never judged."""
    found = [verdicts("panel", "judged", "S", 3), verdicts("panel", "by_rule", "B", 2), verdicts("panel", "failed", None, 3)]
    [panel] = grades_of("tags", found, {"v2": 10}, methods=["v1", "v2"])
    assert panel == Grades("tags", "v2", "panel", {"S": 3, "A": 0, "B": 2}, failed=3, excluded=2, by_rule=2, is_self_judged=False)
    assert panel.judged == 5


def test_the_panel_comes_first():
    found = [verdicts("one_shot", "judged", "S", 1), verdicts("panel", "judged", "S", 1)]
    assert [grade.judge for grade in grades_of("tags", found, {}, methods=["v2"])] == ["panel", "one_shot"]
