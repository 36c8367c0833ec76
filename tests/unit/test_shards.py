"""Shards side by side: what their job tells of them."""

from __future__ import annotations

import pytest

from recgpt_ops import shards
from recgpt_ops.shards import STALE_SECONDS, ProgressBoard


def test_inputs_and_calls_of_all_shards_add_up_and_the_last_word_of_each_counts() -> None:
    board = ProgressBoard()
    board.tell("v1 0000-0511", 1, 10)
    board.tell("v1 0512-1023", 2, 20)
    board.tell("v1 0000-0511", 3, 30)
    assert board.total() == (0.0, 5, 50)


def test_a_wait_for_the_engine_is_over_when_nobody_tells_it_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(shards.time, "monotonic", lambda: now)
    board = ProgressBoard()
    board.wait("v1", 41.0)
    board.wait("v2", 43.0)
    assert board.total()[0] == 43.0
    now += STALE_SECONDS
    assert board.total()[0] == 0.0
