"""Vectors kept on disk: append-only files of (text hash, vector), one folder per embedder, each file checked by its name.

    <root>/<embedder hash, 16 digits>/<xxh3 of the bytes>.vec        bytes = n x (32-byte sha256 of the text | d x float32)

A file is written beside its place and renamed, so readers see whole files only; one whose bytes do not fit its name is left
out and its texts are embedded again. Nothing else depends on these files: delete them at will.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import xxhash

from recgpt_ops.effects import effect

Vectors = npt.NDArray[np.float32]
KEY_BYTES = 32


def text_key(text: str) -> bytes:
    """The exact text's hash: an embedder may tell apart what `ids.text_hash` counts as the same."""
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


class VectorCache:
    """The kept vectors of one embedder."""

    def __init__(self, root: Path, embedder_hash: str, dimensions: int) -> None:
        """Nothing is read or made yet."""
        self.directory = root / embedder_hash[:16]
        self.record = np.dtype([("key", f"S{KEY_BYTES}"), ("vector", np.float32, (dimensions,))])
        self.faults: list[str] = []

    def read(self, texts: Sequence[str]) -> dict[str, npt.NDArray[np.float32]]:
        """The kept vectors of those texts that have one."""
        if not self.directory.is_dir():
            return {}
        # numpy strips trailing zero bytes of an S32, so keys are compared in the same stripped form.
        wanted = {text_key(text).rstrip(b"\0"): text for text in texts}
        found = {}
        for path in sorted(self.directory.glob("*.vec")):
            for row in self.rows(path):
                text = wanted.get(bytes(row["key"]))
                if text is not None:
                    found[text] = row["vector"].copy()
        return found

    def rows(self, path: Path) -> npt.NDArray[np.void]:
        """The records of a file; none, and a fault told, when its bytes are not what was written."""
        data = path.read_bytes()
        if xxhash.xxh3_128_hexdigest(data) != path.stem or len(data) % self.record.itemsize:
            self.faults.append(f"{path.name}: its bytes are not what was written; its texts are embedded again, delete it")
            return np.zeros(0, self.record)
        return np.frombuffer(data, self.record)

    def append(self, texts: Sequence[str], vectors: Vectors) -> None:
        """Keeps vectors of texts that have none yet."""
        rows = np.zeros(len(texts), self.record)
        rows["key"] = [text_key(text) for text in texts]
        rows["vector"] = vectors
        data = rows.tobytes()
        path = self.directory / f"{xxhash.xxh3_128_hexdigest(data)}.vec"
        fresh = path.with_suffix(f".{os.getpid()}.new")
        with effect("vectors.write", self.directory.name):
            self.directory.mkdir(parents=True, exist_ok=True)
            fresh.write_bytes(data)
        with effect("vectors.rename", self.directory.name):
            fresh.rename(path)
