"""The rule that makes one grade of all levels."""

from __future__ import annotations

import pytest

from recgpt_ops.judges.reviewer import review


@pytest.mark.parametrize(
    ("kind", "levels", "grade"),
    [
        ("tag", "++++", "S"),
        ("tag", "+++0", "S"),  # 3 of 4 = 0.75
        ("tag", "++00", "A"),
        ("tag", "0000", "A"),
        ("tag", "+++-", "B"),
        ("tag", "----", "B"),
        ("tag", "+++?", None),
        ("tag", "---?", None),  # a failure is no grade, not even a bad one
        ("explanation", "+++++++", "S"),
        ("explanation", "+++++00", "S"),  # 5 of 7
        ("explanation", "++++000", "A"),
        ("explanation", "++++++-", "B"),
        ("explanation", "++++++?", None),
    ],
)
def test_any_defect_is_bad_and_enough_positives_are_superior(kind: str, levels: str, grade: str | None) -> None:
    named = {"+": "positive", "0": "neutral", "-": "negative", "?": None}
    assert review(kind, [named[sign] for sign in levels]) == grade  # type: ignore[arg-type]  # a kind as a plain word


def test_a_missing_dimension_is_our_own_fault() -> None:
    with pytest.raises(ValueError, match="3 levels; expected one for each of the 4"):
        review("tag", ["positive"] * 3)
