from __future__ import annotations

from typing import Any

from recgpt_ops.evaluation.bootstrap import ratio
from recgpt_ops.evaluation.grades import grade_shares


def verdict(unit: str, label: str | None, *levels: str | None, judge: str = "panel") -> dict[str, Any]:
    told = [{"dimension": f"d{place}", "level": level} for place, level in enumerate(levels, start=1)]
    return {"unit": unit, "judge_method": judge, "label": label, "levels": told}


def shares(*verdicts: dict[str, Any]) -> dict[str, float | None]:
    return {share.name: ratio(share.counted, share.among, seed=0).value for share in grade_shares("tags", verdicts)}


def test_grades_are_shares_of_the_graded_and_failures_of_all() -> None:
    """Four verdicts: S, S, B and one without a grade."""
    found = shares(verdict("u1", "S"), verdict("u1", "S"), verdict("u2", "B"), verdict("u2", None))
    assert found == {"tags.panel.S": 2 / 3, "tags.panel.A": 0.0, "tags.panel.B": 1 / 3, "tags.panel.failed": 0.25}


def test_levels_are_shares_of_what_was_told_on_each_dimension() -> None:
    found = shares(verdict("u1", "S", "positive", "neutral"), verdict("u2", None, "negative", None))
    assert found["tags.panel.d1.positive"] == found["tags.panel.d1.negative"] == 0.5
    assert found["tags.panel.d1.failed"] == 0.0
    assert found["tags.panel.d2.neutral"] == 1.0
    assert found["tags.panel.d2.failed"] == 0.5


def test_two_judges_are_two_sets_of_shares() -> None:
    found = shares(verdict("u1", "S"), verdict("u1", "B", judge="one_shot"))
    assert (found["tags.panel.S"], found["tags.one_shot.S"], found["tags.one_shot.B"]) == (1.0, 0.0, 1.0)


def test_without_verdicts_there_are_no_shares() -> None:
    assert shares() == {}


def test_what_belongs_to_one_user_is_drawn_together() -> None:
    share = next(s for s in grade_shares("tags", [verdict("u1", "S"), verdict("u1", "S"), verdict("u2", "B")]) if s.name == "tags.panel.S")
    assert (share.counted, share.among) == ([2.0, 0.0], [2.0, 1.0])
