"""Kept vectors are those that were made, whatever happens to their files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recgpt_ops.llm.vectors import VectorCache, text_key


def vectors(*rows: list[float]) -> np.ndarray:
    return np.array(rows, dtype=np.float32)


def test_what_is_kept_is_read_back_bit_by_bit(tmp_path: Path) -> None:
    VectorCache(tmp_path, "hash" * 8, 3).append(["milk", "Milk"], vectors([0.1, 0.2, 0.3], [1, 2, 3]))
    VectorCache(tmp_path, "hash" * 8, 3).append(["日本 \x00"], vectors([7, 8, 9]))
    found = VectorCache(tmp_path, "hash" * 8, 3).read(["日本 \x00", "Milk", "milk", "eggs"])
    assert {text: row.tolist() for text, row in found.items()} == {
        "milk": vectors([0.1, 0.2, 0.3])[0].tolist(),
        "Milk": [1, 2, 3],
        "日本 \x00": [7, 8, 9],
    }


def test_keys_that_end_in_zero_bytes_are_found(tmp_path: Path) -> None:
    text = next(text for text in map(str, range(10_000)) if text_key(text).endswith(b"\0"))
    cache = VectorCache(tmp_path, "h" * 16, 1)
    cache.append([text], vectors([5]))
    assert cache.read([text])[text].tolist() == [5]


def test_another_embedder_has_a_folder_of_its_own(tmp_path: Path) -> None:
    VectorCache(tmp_path, "a" * 64, 1).append(["milk"], vectors([1]))
    assert VectorCache(tmp_path, "b" * 64, 1).read(["milk"]) == {}


@pytest.mark.parametrize("harm", ["flip", "cut", "empty"])
def test_a_harmed_file_is_left_out_and_told(tmp_path: Path, harm: str) -> None:
    cache = VectorCache(tmp_path, "h" * 16, 2)
    cache.append(["milk"], vectors([1, 2]))
    cache.append(["eggs"], vectors([3, 4]))
    path = next(path for path in (tmp_path / ("h" * 16)).iterdir() if b"\x00\x00\x80\x3f" in path.read_bytes())  # holds 1.0
    data = bytearray(path.read_bytes())
    data[-1] ^= 0x40
    path.write_bytes({"flip": bytes(data), "cut": bytes(data[:-1]), "empty": b""}[harm])
    assert {text: row.tolist() for text, row in cache.read(["milk", "eggs"]).items()} == {"eggs": [3, 4]}
    assert len(cache.faults) == 1


def test_keeping_the_same_rows_twice_is_one_file(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path, "h" * 16, 1)
    for _ in range(2):
        cache.append(["milk"], vectors([1]))
    assert len(list((tmp_path / ("h" * 16)).iterdir())) == 1
