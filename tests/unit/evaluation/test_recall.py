from __future__ import annotations

import pytest

from recgpt_ops.evaluation.recall import duplication, exclusive_count, route_exclusive_count


@pytest.mark.parametrize(
    ("routes", "expected"),
    [
        ([["tea", "milk"], ["bread"]], 0.0),
        ([["tea", "milk"], ["milk", "bread"]], 0.25),  # 3 distinct of 4
        ([["tea"], ["tea"], ["tea"]], pytest.approx(2 / 3)),
        ([[], []], None),
    ],
)
def test_duplication_is_the_share_of_what_was_produced_that_repeats(routes, expected) -> None:
    assert duplication(routes) == expected


@pytest.mark.parametrize(
    ("found", "others", "expected"),
    [
        ({"tea", "beef"}, [], 2),
        ({"tea", "beef"}, [{"tea"}, {"milk"}], 1),
        ({"tea", "socks"}, [{"beef"}], 1),  # nobody wanted socks
        ({"tea"}, [{"milk"}, {"tea"}], 0),
        (set(), [{"tea"}], 0),
    ],
)
def test_exclusive_is_what_is_wanted_and_found_here_and_nowhere_else(found, others, expected) -> None:
    assert exclusive_count({"tea", "beef"}, found, others) == expected


def test_a_route_is_credited_with_what_no_other_route_found() -> None:
    """Wanted a, b, c. Route 1 finds a and b, route 2 finds b and c: a and c are found by one alone."""
    assert route_exclusive_count({"a", "b", "c"}, [{"a", "b"}, {"b", "c"}]) == 2
    assert route_exclusive_count({"a"}, [{"a"}, {"a"}]) == 0
