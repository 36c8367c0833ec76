from __future__ import annotations

import pytest

from recgpt_ops.evaluation.labels import Label, as_labels, level_of
from recgpt_ops.evaluation.ranking import covered, hit_any, hit_next1

PHI = {"brie": "cheese", "gouda": "cheese", "steak": "beef", "green tea": "tea", "socks": "socks"}
WANTED = Label("beef", frozenset({"beef", "cheese"}))


@pytest.mark.parametrize(
    ("tags", "next1", "any_"),
    [
        ([], 0, 0),
        (["green tea"], 0, 0),
        (["gouda"], 0, 1),
        (["gouda", "steak"], 1, 1),
    ],
)
def test_a_hit_is_the_next_category_or_any_of_the_window(tags, next1, any_) -> None:
    predicted = covered(tags, PHI, size=30)
    assert (hit_next1(predicted, WANTED), hit_any(predicted, WANTED)) == (next1, any_)


def test_more_tags_never_lower_a_hit() -> None:
    tags = ["green tea", "brie", "steak", "socks"]
    for hit in (hit_next1, hit_any):
        found = [hit(covered(tags, PHI, size=size), WANTED) for size in range(len(tags) + 1)]
        assert found == sorted(found)
    assert [hit_next1(covered(tags, PHI, size=size), WANTED) for size in range(5)] == [0, 0, 0, 1, 1]


def test_a_category_named_twice_counts_once() -> None:
    assert covered(["brie", "gouda", "brie"], PHI, size=30) == {"cheese"}
    assert hit_any(covered(["brie", "gouda"], PHI, size=30), Label("beef", frozenset({"beef"}))) == 0


def test_a_list_that_covers_every_category_always_hits() -> None:
    everything = covered(list(PHI), PHI, size=30)
    assert everything == set(PHI.values())
    for category in everything:
        assert hit_next1(everything, Label(category, frozenset({category}))) == 1


def test_only_the_first_tags_count() -> None:
    assert covered(["green tea", "steak"], PHI, size=1) == {"tea"}


def test_the_first_event_is_the_next_thing_and_all_events_make_the_set() -> None:
    events = [("u1", "cheese"), ("u1", "beef"), ("u1", "cheese"), ("u2", "tea")]
    assert as_labels(events) == {"u1": Label("cheese", frozenset({"cheese", "beef"})), "u2": Label("tea", frozenset({"tea"}))}


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([("DAIRY", "cheese", "brie")], "category"),
        ([(None, "cheese", "brie")], "item_type"),
        ([(None, "cheese", "brie"), ("DAIRY", None, "brie")], "category, else item_type"),
        ([("", "", "brie")], "title"),
        ([], "none"),
    ],
)
def test_what_a_category_is_is_told(items, said) -> None:
    assert level_of([("u1", *item) for item in items]) == said
