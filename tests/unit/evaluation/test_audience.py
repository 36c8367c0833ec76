from __future__ import annotations

import hashlib

import pytest

from recgpt_ops.delta.sql import connect
from recgpt_ops.errors import UsageError
from recgpt_ops.evaluation.audience import choose_users
from recgpt_ops.evaluation.feeds import Window, check_window, label_actions
from tests.unit.cli.conftest import write
from tests.unit.evaluation.conftest import DS, event, make_shop

WINDOW = Window(DS, 28)


@pytest.mark.parametrize(
    ("min_before", "expected"),
    [
        (1, {"u1", "u2"}),  # u3 did nothing that counts in the 28 days
        (2, {"u1", "u2"}),
        (3, {"u1"}),  # u2's third purchase arrived after DS
        (5, set()),
    ],
)
def test_users_have_a_past_that_the_night_knew_and_a_future(sold, min_before, expected) -> None:
    chosen, qualified = choose_users(sold, WINDOW, count=10, min_before=min_before)
    assert set(chosen) == expected
    assert qualified == len(expected)


def test_of_those_who_qualify_the_smallest_hashes_are_taken_in_their_order(sold) -> None:
    in_order = sorted(("u1", "u2"), key=lambda user_id: hashlib.sha256(user_id.encode()).hexdigest())
    assert choose_users(sold, WINDOW, count=10, min_before=1) == (in_order, 2)
    assert choose_users(sold, WINDOW, count=1, min_before=1) == (in_order[:1], 2)


def test_users_without_a_profile_as_of_ds_are_left_out(tmp_path) -> None:
    others = [
        event(700 + 2 * place + after, f"u{4 + place}", "i1", day) for place in range(3) for after, day in enumerate((DS, "2021-11-02"))
    ]
    warehouse = make_shop(str(tmp_path / "shop"), more=others)
    write(
        warehouse,
        "user_profiles",
        [
            {"user_id": "u4", "valid_from_ds": "2021-11-01"},  # not yet
            {"user_id": "u5", "valid_from_ds": "0001-01-01", "valid_to_ds": "2021-10-30"},  # no more
            {"user_id": "u6", "valid_from_ds": "2021-10-31"},
        ],
    )
    assert set(choose_users(connect(warehouse), WINDOW, count=10, min_before=1)[0]) == {"u1", "u2", "u6"}


def test_labels_are_purchases_or_without_any_whatever_somebody_did(sold, tmp_path) -> None:
    assert label_actions(sold) == ("purchase",)
    rows = [event(number, "u1", "i1", DS, action=action) for number, action in enumerate(("click", "cart", "coupon", "campaign", "return"))]
    watched = make_shop(str(tmp_path / "watched"), (), more=rows)
    connection = connect(watched)
    connection.execute("CREATE TEMP VIEW behavior_events AS SELECT * FROM memory.main.behavior_events WHERE action <> 'purchase'")
    assert label_actions(connection) == ("cart", "click")


@pytest.mark.parametrize(
    ("window", "said"),
    [
        (Window("2021-11-20", 28), "would reach 2021-12-18; give --label-days 9, or a --ds within the data"),
        (Window("2021-11-29", 28), "would reach 2021-12-27; give a --ds within the data"),
        (Window("2021-01-01", 28), "hold 2021-08-10 to 2021-11-29"),
    ],
)
def test_a_window_beyond_the_data_is_refused_with_how_far_it_goes(sold, window, said) -> None:
    with pytest.raises(UsageError, match=said):
        check_window(sold, window)


def test_a_window_may_end_on_the_last_day(sold) -> None:
    check_window(sold, Window(DS, 29))
