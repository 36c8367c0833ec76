from __future__ import annotations

import hashlib

import numpy as np
import pytest

from recgpt_ops.evaluation.tag_to_cate import (
    Titles,
    held_out_places,
    make_titles,
    map_tags,
    name_hits,
    title_hits,
    type_categories,
    vote_categories,
)
from tests.unit.evaluation.conftest import AxisEmbedder


def titles(*rows: tuple[str, list[float]]) -> Titles:
    """Titles by category and vector; their hashes are 0, 1, 2 and so on."""
    return Titles(
        tuple(str(place) for place in range(len(rows))),
        tuple(category for category, _ in rows),
        np.array([vector for _, vector in rows], np.float32),
    )


def item(item_id: str, title: str, category: str | None, item_type: str | None = "t", text: str | None = None) -> dict[str, object]:
    return {"item_id": item_id, "title": title, "category": category, "item_type": item_type, "text_hash": text or title}


def vote(query: list[float], known: Titles, neighbors: int) -> str:
    return vote_categories(np.array([query], np.float32), known, neighbors=neighbors)[0]


def test_the_vote_is_weighed_by_cosine() -> None:
    """Cosines with [1, 0]: one beef 1.0; two teas 0.6 each, together 1.2."""
    known = titles(("beef", [1, 0]), ("tea", [0.6, 0.8]), ("tea", [0.6, -0.8]))
    assert vote([1, 0], known, 1) == "beef"
    assert vote([1, 0], known, 2) == "beef"  # 1.0 against 0.6
    assert vote([1, 0], known, 3) == "tea"


def test_a_tie_goes_to_the_first_name_and_what_points_away_has_no_weight() -> None:
    assert vote([1, 0], titles(("tea", [1, 0]), ("beef", [1, 0])), 2) == "beef"
    assert vote([1, 0], titles(("beef", [-1, 0]), ("tea", [0.1, 1])), 2) == "tea"


def test_a_tag_that_is_a_type_goes_the_same_way_as_any_other() -> None:
    """The catalog files all titles that begin with cheese under tea: the tag cheese is tea then."""
    known = make_titles([item("i1", "cheese brie", "tea"), item("i2", "socks wool", "socks")], AxisEmbedder())
    assert map_tags(["cheese", "socks", "cheese"], known, AxisEmbedder(), neighbors=1) == {"cheese": "tea", "socks": "socks"}


def test_nothing_is_known_without_titles() -> None:
    assert map_tags(["cheese"], make_titles([], AxisEmbedder()), AxisEmbedder()) == {}


def test_equal_texts_count_once_with_the_category_of_the_smallest_id() -> None:
    known = make_titles([item("b", "cheese", "X", text="h"), item("a", "cheese", "Y", text="h")], AxisEmbedder())
    assert (known.text_hashes, known.categories) == (("h",), ("Y",))


def test_a_fifth_of_the_titles_is_held_out_and_never_votes() -> None:
    hashes = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(500)]
    asked, voters = held_out_places(hashes, seed=0, at_most=1000)
    assert not set(asked) & set(voters)
    assert sorted(asked + voters) == list(range(500))
    assert all(int(hashes[place], 16) % 5 == 0 for place in asked)
    assert 70 <= len(asked) <= 130
    some, same_voters = held_out_places(hashes, seed=0, at_most=20)
    assert len(some) == 20
    assert set(some) < set(asked)
    assert same_voters == voters  # a held-out title that is not asked does not vote either
    assert some != held_out_places(hashes, seed=1, at_most=20)[0]


def test_accuracy_on_titles_by_hand() -> None:
    """Hashes 0 and 5 are held out. Near 0 is a beef, as it is itself; near 5 a beef too, but it is a tea: one of two."""
    known = Titles(("0", "1", "5"), ("beef", "beef", "tea"), np.array([[1, 0], [1, 0], [1, 0.1]], np.float32))
    assert title_hits(known, seed=0, neighbors=1) == [1.0, 0.0]


def test_without_held_out_titles_there_is_no_accuracy() -> None:
    assert title_hits(Titles(("1",), ("beef",), np.ones((1, 2), np.float32)), seed=0) == []


def test_a_types_own_category_is_that_of_most_of_its_items() -> None:
    items = [
        item("1", "x", "DAIRY", "cheese"),
        item("2", "y", "DELI", "cheese"),
        item("3", "z", "DELI", "cheese"),
        item("4", "w", None, None),
    ]
    assert type_categories(items) == {"cheese": "DELI"}
    assert type_categories(items[:2]) == {"cheese": "DAIRY"}  # a tie: the first name
    assert type_categories([item("5", "v", None, "tea  bags")]) == {"tea bags": "tea  bags"}  # its own category where there is none


def test_accuracy_on_names_by_hand() -> None:
    assert name_hits({"cheese": "DELI", "tea": "DRINKS"}, {"cheese": "DELI", "tea": "DELI", "more": "x"}) == [1.0, 0.0]


@pytest.mark.parametrize("count", [0, 1, 300])
def test_as_many_answers_as_texts_whatever_the_block(count) -> None:
    known = titles(("beef", [1, 0]), ("tea", [0, 1]))
    vectors = np.tile(np.array([[1, 0.2], [0.2, 1]], np.float32), (count, 1))
    assert vote_categories(vectors, known, neighbors=1) == ["beef", "tea"] * count
