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
from transformers.utils.logging import disable_progress_bar

from recgpt_ops.llm.models import model_directory, model_hash
from recgpt_ops.llm.vectors import VectorCache
from recgpt_ops.settings import Embedder as EmbedderSettings

Vectors = npt.NDArray[np.float32]
WIDTH = 8  # lengths in tokens are rounded up to a multiple of it
CHUNK = 2048  # texts between two calls of `progress`, and between two writes of the cache


class Embedder:
    """A loaded embedder. `embedder_hash` names model and settings that decide a vector."""

    def __init__(self, folder: Path, *, batch_size: int, cache_root: Path | None, threads: int | None = None) -> None:
        """`cache_root` None: nothing is kept. `threads` None: torch's own choice."""
        if threads is not None:
            torch.set_num_threads(threads)
        disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers names no types; its bar hides what a command tells
        self.model = SentenceTransformer(str(folder), device="cpu", local_files_only=True, trust_remote_code=False)
        self.batch_size = batch_size
        self.embedder_hash = hashlib.sha256(f"2\x1f{batch_size}\x1f{model_hash(folder)}".encode()).hexdigest()
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
        """Vectors of texts by the model, nothing read or kept; bit by bit the same in whatever company a text comes.

        Sums in a matrix product depend on the shape of the batch, and the last bit of a score decides ties and digests. So a
        text's batch always has the same shape: `batch_size` rows (filled up with empty ones), as long as its own length asks.
        """
        tokenizer = self.model.tokenizer
        longest = int(self.model.max_seq_length or tokenizer.model_max_length)
        lengths = [len(ids) for ids in tokenizer(list(texts), truncation=True, max_length=longest)["input_ids"]] if texts else []
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        by_width: dict[int, list[int]] = {}
        for index, length in enumerate(lengths):
            by_width.setdefault(min(longest, -(-length // WIDTH) * WIDTH), []).append(index)
        for width, indexes in sorted(by_width.items()):
            for start in range(0, len(indexes), self.batch_size):
                some = indexes[start : start + self.batch_size]
                padded = [texts[index] for index in some] + [""] * (self.batch_size - len(some))
                features = tokenizer(padded, padding="max_length", truncation=True, max_length=width, return_tensors="pt")
                with torch.inference_mode():
                    made = self.model(dict(features))["sentence_embedding"]
                rows[some] = torch.nn.functional.normalize(made, dim=1)[: len(some)].numpy()
        return rows


def load_embedder(settings: EmbedderSettings, *, models_root: Path | None = None) -> Embedder:
    """The embedder of the settings; its vectors are kept below `models_root`/embeddings, or nowhere when that is None."""
    folder = model_directory(settings.model, models_root=models_root or Path())
    return Embedder(folder, batch_size=settings.batch_size, cache_root=models_root / "embeddings" if models_root else None)
