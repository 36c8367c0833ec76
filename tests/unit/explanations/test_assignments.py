"""Which items are explained, and by which text."""

from __future__ import annotations

from recgpt_ops.explanations.assignments import Reader, Surroundings, Tag, assign, assignment_row
from recgpt_ops.explanations.budget import planned_calls, planned_prompt_tokens
from recgpt_ops.explanations.rows import ItemText, explanation_id
from recgpt_ops.recipes import load_recipe

AUTUMN = Surroundings("autumn, Halloween", "autumn", "Halloween", (10, 31))
ITEMS = {name: ItemText(f"hash of {name}", f"Item {name}") for name in "abcdef"}
ITEMS["blank"] = ItemText("hash of nothing", "")
ITEMS["twin"] = ItemText("hash of a", "Item a")


def reader(user_id: str, *tags: tuple[str, str]) -> Reader:
    """A user whose tags have the candidates named by the letters (or words, joined by spaces)."""
    made = tuple(Tag(name, name, "en-US", tuple(items.split())) for name, items in tags)
    return Reader(user_id, 7, "s1", AUTUMN, made)


def chosen(*readers: Reader, count: int) -> list[tuple[str, int, str, str]]:
    assigned = assign(readers, ITEMS, count=count)
    return [(one.user_id, one.rank, one.item_id, one.wanted.tag_id) for one in assigned.assignments]


def test_the_best_of_each_tag_in_turn_then_the_second_best_each_item_once() -> None:
    user = reader("u1", ("candy", "a b"), ("cookies", "a c"), ("tea", "d"))
    assert chosen(user, count=2) == [("u1", 1, "a", "candy"), ("u1", 2, "c", "cookies")]
    assert chosen(user, count=9) == [
        ("u1", 1, "a", "candy"), ("u1", 2, "c", "cookies"), ("u1", 3, "d", "tea"), ("u1", 4, "b", "candy")
    ]  # fmt: skip


def test_items_that_read_the_same_are_explained_once() -> None:
    assert chosen(reader("u1", ("candy", "a twin b")), count=3) == [("u1", 1, "a", "candy"), ("u1", 2, "b", "candy")]


def test_an_item_with_an_empty_title_or_without_one_is_passed_over_and_counted() -> None:
    user = reader("u1", ("candy", "blank gone b"), ("tea", "blank"))
    assert chosen(user, count=2) == [("u1", 1, "b", "candy")]
    assert assign([user], ITEMS, count=2).without_text == 3


def test_two_users_with_one_interest_and_situation_want_one_text() -> None:
    first, second = assign([reader("u1", ("candy", "a")), reader("u2", ("candy", "a"))], ITEMS, count=2).assignments
    assert first.wanted == second.wanted
    assert first.wanted.explanation_id == explanation_id("candy", "hash of a", "s1", "en-US")


def test_an_id_depends_on_interest_text_situation_and_locale_and_on_no_user() -> None:
    base = explanation_id("t", "h", "s", "en-US")
    others = {
        explanation_id(*key)
        for key in (("x", "h", "s", "en-US"), ("t", "x", "s", "en-US"), ("t", "h", "x", "en-US"), ("t", "h", "s", "zh"))
    }
    assert len(others | {base}) == 5


def test_a_user_without_tags_or_candidates_has_no_assignment() -> None:
    assert chosen(reader("u1"), reader("u2", ("candy", "")), count=2) == []


def test_a_text_that_did_not_come_is_told_in_the_row() -> None:
    (one,) = assign([reader("u1", ("candy", "a"))], ITEMS, count=1).assignments
    row = assignment_row(one, ds="2017-10-30", publish_id="p", scenario="default", method="v2", made_by=None, status="failed")
    assert (row["explanation_made_by"], row["status"], row["rank"]) == (None, "failed", 1)


def test_the_calls_of_a_night_are_known_before_it_starts() -> None:
    assert planned_calls(load_recipe("v2"), 8) == (32, 16)  # 8 users x 2 items x 2 picks of style, and a text each
    assert planned_calls(load_recipe("v1"), 8) == (0, 16)
    assert planned_calls(load_recipe("v2_free"), 8) == (16, 16)
    assert planned_calls(load_recipe("v2_hr30"), 8).total == 0
    assert planned_prompt_tokens(load_recipe("v1"), 8) == 16 * 512
