from __future__ import annotations

import random

from recgpt_ops.contexts.behaviors import count_unmatched, reliable_behaviors
from recgpt_ops.contexts.feeds import visible_events
from tests.spark.frames import events


def kept(frame):
    """(user, action, item or words, quantity, day) of what is left, sorted."""
    rows = reliable_behaviors(frame).collect()
    what = [(row.user_id, row.action, row.item_id or row.query or row.campaign_id, row.quantity, str(row.event_ds)) for row in rows]
    return sorted(what, key=str)


def test_ordinary_clicks_are_dropped_and_everything_meant_is_kept(spark):
    actions = ["detail_view", "review_read", "favorite", "cart", "search", "coupon", "campaign"]
    frame = events(spark, ("u", "click", "x", None, "2017-05-01"), *[("u", action, "x", None, "2017-05-01") for action in actions])
    assert [row[1] for row in kept(frame)] == sorted(actions)


def test_a_return_nets_the_newest_earlier_purchases_of_the_same_user_and_item(spark):
    frame = events(
        spark,
        ("u", "purchase", "x", 3, "2017-05-01"),
        ("u", "purchase", "x", 2, "2017-05-05"),
        ("u", "return", "x", 4, "2017-05-09"),
        ("u", "purchase", "x", 1, "2017-05-10"),
        ("u", "purchase", "y", 2, "2017-05-05"),
        ("v", "purchase", "x", 2, "2017-05-05"),
    )
    assert kept(frame) == [
        ("u", "purchase", "x", 1, "2017-05-01"),
        ("u", "purchase", "x", 1, "2017-05-10"),
        ("u", "purchase", "y", 2, "2017-05-05"),
        ("v", "purchase", "x", 2, "2017-05-05"),
    ]
    assert count_unmatched(frame).collect()[0].unmatched_return == 0


def test_returned_pieces_that_were_never_bought_are_counted_and_take_nothing_later(spark):
    frame = events(
        spark,
        ("u", "return", "x", 2, "2017-05-01"),
        ("u", "purchase", "x", 3, "2017-05-02"),
        ("u", "return", "x", 4, "2017-05-03"),
        ("u", "purchase", "x", 5, "2017-05-04"),
        ("v", "return", "z", 7, "2017-05-04"),
    )
    assert kept(frame) == [("u", "purchase", "x", 5, "2017-05-04")]
    assert count_unmatched(frame).collect()[0].unmatched_return == 2 + 1 + 7


def test_at_one_instant_what_was_bought_comes_before_what_was_sent_back(spark):
    frame = events(spark, ("u", "return", "x", 1, "2017-05-01"), ("u", "purchase", "x", 3, "2017-05-01"))
    assert kept(frame) == [("u", "purchase", "x", 2, "2017-05-01")]


def test_without_any_return_nothing_is_unmatched(spark):
    assert count_unmatched(events(spark, ("u", "purchase", "x", 3, "2017-05-01"))).collect()[0].unmatched_return == 0


def stack_twin(trades):
    """The rule as one would do it by hand: pieces on a stack, each return takes from the top."""
    stack, unmatched = [], 0
    for number, (action, quantity) in enumerate(trades):
        if action == "purchase":
            stack.append([number, quantity])
            continue
        while quantity and stack:
            taken = min(quantity, stack[-1][1])
            quantity -= taken
            stack[-1][1] -= taken
            if stack[-1][1] == 0:
                stack.pop()
        unmatched += quantity
    return dict(stack), unmatched


def test_windows_and_a_stack_agree_on_400_random_histories(spark):
    drawn = random.Random(7)
    histories = {
        f"u{n}": [(drawn.choice(["purchase", "purchase", "return"]), drawn.randint(1, 5)) for _ in range(drawn.randint(1, 12))]
        for n in range(400)
    }
    rows = [
        (user, action, "x", quantity, f"2017-05-{number + 1:02d}")
        for user, trades in histories.items()
        for number, (action, quantity) in enumerate(trades)
    ]
    frame = events(spark, *rows)
    expected = {user: stack_twin(trades) for user, trades in histories.items()}
    assert {(row[0], row[4], row[3]) for row in kept(frame)} == {
        (user, f"2017-05-{number + 1:02d}", quantity) for user, (left, _) in expected.items() for number, quantity in left.items()
    }
    assert count_unmatched(frame).collect()[0].unmatched_return == sum(unmatched for _, unmatched in expected.values())


def test_case_062_nothing_at_or_after_the_end_of_the_day_or_arrived_later_is_seen(spark):
    frame = events(
        spark,
        ("u", "detail_view", "x", None, "2017-10-30T23:59:59"),
        ("u", "purchase", "x", 1, "2017-10-31T00:00:00"),
        ("u", "purchase", "y", 1, "2017-10-29T12:00:00", "2017-10-31"),
        ("u", "purchase", "z", 1, "2017-09-01T12:00:00", "2017-11-01"),
    )
    assert [row.action for row in visible_events(frame, "2017-10-30").collect()] == ["detail_view"]
    assert visible_events(frame, "2017-10-31").count() == 3
