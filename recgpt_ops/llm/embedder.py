"""Sentence embeddings: unit-length float32 vectors, the same for the same text every time. The only module with sentence_transformers.

Vectors are kept on disk by the embedder's hash and the text's own hash, because a catalog hardly changes from night to
night (40,000 titles take minutes on 2 cores, reading them back well under a second). The cache is safe to delete.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from sentence_transformers import SentenceTransformer

from recgpt_ops.llm.models import model_directory, model_hash
from recgpt_ops.llm.vectors import VectorCache
from recgpt_ops.settings import Embedder as EmbedderSettings

Vectors = npt.NDArray[np.float32]
CHUNK = 2048  # texts between two calls of `progress`, and between two writes of the cache


class Embedder:
    """A loaded embedder. `embedder_hash` names model and settings that decide a vector."""

    def __init__(self, folder: Path, *, batch_size: int, cache_root: Path | None, threads: int | None = None) -> None:
        """`cache_root` None: nothing is kept. `threads` None: torch's own choice."""
        if threads is not None:
            torch.set_num_threads(threads)
        self.model = SentenceTransformer(str(folder), device="cpu", local_files_only=True, trust_remote_code=False)
        self.batch_size = batch_size
        self.embedder_hash = hashlib.sha256(f"1\x1f{model_hash(folder)}".encode()).hexdigest()
        self.dimensions = int(self.model.get_embedding_dimension() or 0)
        self.cache = None if cache_root is None else VectorCache(cache_root, self.embedder_hash, self.dimensions)

    def encode(self, texts: Sequence[str], *, progress: Callable[[int, int], None] | None = None) -> Vectors:
        """Vectors of the texts, [n, d], each of length 1, in their order. `progress` is told (texts done, texts to embed).

        Equal texts are embedded once. An empty text has a vector too (of the model's own frame tokens); leave such rows out.
        """
        distinct = list(dict.fromkeys(texts))
        vectors = self.cache.read(distinct) if self.cache else {}
        missing = sorted((text for text in distinct if text not in vectors), key=lambda text: (len(text), text))
        for start in range(0, len(missing), CHUNK):
            chunk = missing[start : start + CHUNK]
            rows = self.embed(chunk)
            if self.cache:
                self.cache.append(chunk, rows)
            vectors.update(zip(chunk, rows, strict=True))
            if progress:
                progress(start + len(chunk), len(missing))
        return np.stack([vectors[text] for text in texts]) if texts else np.zeros((0, self.dimensions), np.float32)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of texts by the model, nothing read or kept."""
        rows = self.model.encode(
            list(texts), batch_size=self.batch_size, convert_to_numpy=True, normalize_embeddings=True, show_progress_bar=False
        )
        return np.asarray(rows, dtype=np.float32)


def load_embedder(settings: EmbedderSettings, *, models_root: Path | None = None) -> Embedder:
    """The embedder of the settings; its vectors are kept below `models_root`/embeddings, or nowhere when that is None."""
    folder = model_directory(settings.model, models_root=models_root or Path())
    return Embedder(folder, batch_size=settings.batch_size, cache_root=models_root / "embeddings" if models_root else None)
