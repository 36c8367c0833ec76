"""Nearest items: order of cosines, ties by id, the same alone and in a batch."""

from __future__ import annotations

import numpy as np
import pytest

from recgpt_ops.errors import ContractError
from recgpt_ops.retrieval import nearest as module
from recgpt_ops.retrieval.nearest import Near, nearest


def vectors(*rows: list[float]) -> np.ndarray:
    return np.array(rows, dtype=np.float32)


def test_the_nearest_items_come_best_first() -> None:
    # cosines with (1, 0): 0.0, 1.0, 0.6
    found = nearest(vectors([1, 0]), vectors([0, 1], [5, 0], [3, 4]), ["a", "b", "c"], count=2)
    assert found == [[Near(1, 1.0), Near(2, 0.6)]]


def test_case_098_items_equal_but_for_scale_are_equal_and_ordered_by_id() -> None:
    items = vectors([0.2, 0.2], [9, 9], [1, 0])
    assert nearest(vectors([1, 1]), items, ["z", "b", "a"], count=2) == [[Near(1, 1.0), Near(0, 1.0)]]
    assert nearest(vectors([100, 100]), items, ["a", "b", "z"], count=1) == [[Near(0, 1.0)]]


def test_case_099_one_tag_alone_gives_what_64_at_once_give(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(7)
    items = random.normal(size=(5000, 384)).astype(np.float32)
    tags = random.normal(size=(64, 384)).astype(np.float32)
    ids = [f"item_{index}" for index in range(5000)]
    together = nearest(tags, items, ids, count=30)
    assert together == [nearest(tags[index : index + 1], items, ids, count=30)[0] for index in range(64)]
    monkeypatch.setattr(module, "BLOCK", 777)
    assert nearest(tags, items, ids, count=30) == together


def test_ties_at_the_cut_are_ordered_by_id_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", 2)
    items = vectors([1, 0], [1, 0], [1, 0], [1, 0], [1, 0])
    found = nearest(vectors([1, 0]), items, ["e", "d", "c", "b", "a"], count=2)
    assert [near.place for near in found[0]] == [4, 3]


def test_fewer_items_than_asked_for_are_all_given() -> None:
    assert len(nearest(vectors([1, 0]), vectors([1, 0], [0, 1]), ["a", "b"], count=30)[0]) == 2
    assert nearest(vectors([1, 0]), np.empty((0, 2), dtype=np.float32), [], count=30) == [[]]


@pytest.mark.parametrize("bad", [[0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0]])
def test_a_vector_without_a_direction_is_refused(bad: list[float]) -> None:
    with pytest.raises(ContractError, match="items: vector 1 of 2 has norm"):
        nearest(vectors([1, 0]), vectors([1, 0], bad), ["a", "b"], count=1)


def test_vectors_of_two_models_are_not_compared() -> None:
    with pytest.raises(ContractError, match="tags have 2 dimensions and items 3"):
        nearest(vectors([1, 0]), vectors([1, 0, 0]), ["a"], count=1)
