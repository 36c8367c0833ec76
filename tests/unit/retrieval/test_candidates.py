"""Candidates: one item a text, one lookup a tag, what was bought left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from recgpt_ops.ids import text_hash
from recgpt_ops.retrieval.candidates import Candidate, candidate_rows, find_candidates, make_catalog, one_item_per_text
from recgpt_ops.tables import load_contract

AXES = ("milk", "cheese", "dog", "cat")


class AxisEmbedder:
    """One dimension per word of AXES: a text points to the words it holds."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str], **_: Any) -> np.ndarray:
        return self.embed(texts)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.asked += texts
        rows = np.array([[float(axis in text.lower()) for axis in AXES] for text in texts], dtype=np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def item(item_id: str, title: str) -> dict[str, str]:
    return {"item_id": item_id, "title": title, "text_hash": text_hash(title)}


ITEMS = [item("3", "Milk"), item("1", "Milk"), item("2", "Dog and cat"), item("4", "cheese"), item("5", "MILK ")]
TAG = {"ds": "2017-10-30", "scenario": "default", "method": "v2", "user_bucket": 7}


def tag(user_id: str, tag_id: str) -> dict[str, Any]:
    return TAG | {"user_id": user_id, "tag_id": tag_id}


def test_of_items_with_one_text_the_smallest_id_stays() -> None:
    assert [row["item_id"] for row in one_item_per_text(ITEMS)] == ["1", "2", "4"]


def test_a_tag_is_looked_up_once_whoever_has_it_and_gets_its_nearest_items() -> None:
    embedder = AxisEmbedder()
    catalog = make_catalog(ITEMS, embedder)
    assert embedder.asked == ["Milk", "Dog and cat", "cheese"]
    found = find_candidates({"t2": "cat", "t1": "milk"}, catalog, embedder, count=2)
    # milk: 1.0 with 1, 0.0 with 2 and 4, of which the smaller id; cat: 1/sqrt(2) with 2
    assert found == {
        "t1": [Candidate("1", text_hash("milk"), 1.0), Candidate("2", text_hash("dog and cat"), 0.0)],
        "t2": [Candidate("2", text_hash("dog and cat"), 0.707107), Candidate("1", text_hash("milk"), 0.0)],
    }


def test_rows_are_ranked_per_user_and_tag_without_what_the_user_bought() -> None:
    found = {"t1": [Candidate("1", "h1", 0.9), Candidate("2", "h2", 0.8), Candidate("3", "h3", 0.7)]}
    rows = candidate_rows([tag("u1", "t1"), tag("u2", "t1")], found, publish_id="p1", keep=2, bought_texts={"u1": {"h1"}})
    assert [(row["user_id"], row["item_id"], row["rank"], row["score"]) for row in rows] == [
        ("u1", "2", 1, 0.8),
        ("u1", "3", 2, 0.7),
        ("u2", "1", 1, 0.9),
        ("u2", "2", 2, 0.8),
    ]


def test_where_the_recipe_keeps_bought_items_they_stay() -> None:
    found = {"t1": [Candidate("1", "h1", 0.9)]}
    assert len(candidate_rows([tag("u1", "t1")], found, publish_id="p1", keep=5, bought_texts={})) == 1


def test_a_row_has_exactly_the_columns_of_its_contract() -> None:
    (row,) = candidate_rows([tag("u1", "t1")], {"t1": [Candidate("1", "h1", 0.9)]}, publish_id="p1", keep=5, bought_texts={})
    assert sorted(row) == sorted(load_contract("candidate_items").column_names)
