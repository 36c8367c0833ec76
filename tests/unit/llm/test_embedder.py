"""Vectors are the same bit by bit in whatever company a text comes, kept or made. Needs the real embedder, hence slow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recgpt_ops.settings import load_settings

pytestmark = pytest.mark.slow
TEXTS = ["milk", "bread: italian/french, 20 oz, national brand", "日本のお茶 🎃", "candy " * 40, "yoga mat", "milk"]


@pytest.fixture(scope="module")
def models_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def embedder(models_root: Path) -> object:
    from recgpt_ops.llm.embedder import load_embedder

    return load_embedder(load_settings({}).embedder, models_root=models_root)


def test_case_098_vectors_have_length_one(embedder) -> None:
    vectors = embedder.embed(TEXTS)
    assert vectors.shape == (6, 384)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(6), abs=1e-6)


def test_company_order_and_the_cache_change_no_bit(embedder, models_root: Path) -> None:
    together = embedder.embed(TEXTS)
    assert all((embedder.embed([text])[0] == row).all() for text, row in zip(TEXTS, together, strict=True))
    assert (embedder.embed(TEXTS[::-1])[::-1] == together).all()
    told: list[tuple[int, int]] = []
    for _ in range(2):
        assert (embedder.encode(TEXTS, progress=lambda done, total: told.append((done, total))) == together).all()
    assert told == [(5, 5)]  # five distinct texts, and none the second time
    assert len(list((models_root / "embeddings").rglob("*.vec"))) == 1


def test_it_is_the_model_s_own_embedding(embedder) -> None:
    own = embedder.model.encode(TEXTS, normalize_embeddings=True)
    assert np.abs(own - embedder.embed(TEXTS)).max() < 1e-5
    assert embedder.encode([]).shape == (0, 384)
