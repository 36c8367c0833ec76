"""Lists without a model, by hand on the three users of conftest."""

from __future__ import annotations

import pytest

from recgpt_ops.delta.sql import connect
from recgpt_ops.evaluation.feeds import word_of
from recgpt_ops.evaluation.lists import in_turn, most_bought_types, own_repeats
from tests.unit.evaluation.conftest import DS, ITEMS, event, make_shop

WORDS = {item_id: word_of(type_, title) for item_id, (type_, title) in ITEMS.items()}
BUYING = ("purchase",)
USERS = ("u1", "u2", "u3")


def popular(connection, size: int = 30) -> tuple[str, ...]:
    return most_bought_types(connection, WORDS, ds=DS, actions=BUYING, size=size)


def own(connection, size: int = 30, fill: tuple[str, ...] = ()) -> dict[str, tuple[str, ...]]:
    return own_repeats(connection, WORDS, ds=DS, actions=BUYING, user_ids=USERS, fill=fill, size=size)


def test_most_bought_types_are_those_of_everybody_in_90_days_most_first_and_ties_by_name(sold) -> None:
    """Up to DS, from August 3 on: cheese 3, tea 3, socks 1."""
    assert popular(sold) == ("cheese", "tea", "socks")
    assert popular(sold, 2) == ("cheese", "tea")


def test_what_was_bought_90_days_back_and_more_does_not_count(tmp_path) -> None:
    """August 2 is the 90th day back from October 31, August 3 the first that counts."""
    old = [event(500 + number, "u3", "i5", day) for number, day in enumerate(["2021-08-02"] * 5 + ["2021-08-03"] * 4)]
    assert popular(connect(make_shop(str(tmp_path / "s"), more=old))) == ("socks", "cheese", "tea")  # 4 + 1, 3, 3


def test_own_repeats_are_the_users_own_most_first_then_what_everybody_buys(sold) -> None:
    assert own(sold) == {"u1": ("cheese", "tea"), "u2": ("tea",), "u3": ("socks",)}
    filled = own(sold, size=3, fill=("cheese", "tea", "socks"))
    assert filled == {"u1": ("cheese", "tea", "socks"), "u2": ("tea", "cheese", "socks"), "u3": ("socks", "cheese", "tea")}
    assert own(sold, size=1, fill=("cheese",)) == {"u1": ("cheese",), "u2": ("tea",), "u3": ("socks",)}


def test_a_user_without_a_past_has_what_everybody_buys(sold) -> None:
    found = own_repeats(sold, WORDS, ds=DS, actions=BUYING, user_ids=["nobody"], fill=("cheese",), size=3)
    assert found == {"nobody": ("cheese",)}


@pytest.mark.parametrize("future", [(), (("u1", "i5", "2021-11-01"),) * 50])
def test_no_list_knows_what_happened_or_arrived_after_ds(tmp_path, sold, future) -> None:
    """Any other future, and the beef of October 30 that arrived on November 2, leave every list as it is."""
    other = connect(make_shop(str(tmp_path / "other"), future))
    assert popular(other) == popular(sold)
    assert own(other) == own(sold)


def test_items_without_a_text_are_left_out(sold) -> None:
    some = {item_id: word for item_id, word in WORDS.items() if word != "tea"}
    assert most_bought_types(sold, some, ds=DS, actions=BUYING, size=9) == ("cheese", "socks")


@pytest.mark.parametrize(
    ("lists", "size", "expected"),
    [
        ([("a", "b", "c"), ("d", "e"), ("f",)], 4, ("a", "d", "f", "b")),
        ([("a", "b", "c"), ("b", "d")], 6, ("a", "b", "d", "c")),
        ([], 6, ()),
        ([()], 6, ()),
    ],
)
def test_several_lists_are_read_from_the_top_in_turn(lists, size, expected) -> None:
    assert in_turn(lists, size) == expected


def test_a_shorter_list_is_the_beginning_of_the_longer_one() -> None:
    lists = [tuple("abcdef"), tuple("ghabij"), tuple("klmnop")]
    assert in_turn(lists, 15)[:6] == in_turn(lists, 6)


def test_a_type_is_written_as_the_closed_vocabulary_writes_it() -> None:
    assert word_of("Tea\x00  bags", "Lipton") == "Tea bags"
    assert word_of(None, "Soap; lemon") == word_of("", "Soap; lemon") == "Soap, lemon"
