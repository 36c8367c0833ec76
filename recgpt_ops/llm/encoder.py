"""What turns texts into vectors, as those see it who need not load one: `llm.embedder.Embedder` is one, tests have a small one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]


class TextEncoder(Protocol):
    """Unit-length vectors, [n, d], in the order of the texts."""

    def encode(self, texts: Sequence[str], *, progress: Callable[[int, int], None] | None = None) -> Vectors:
        """Of texts that come back night after night, such as a catalog's: what is kept on disk is not made again.

        `progress` is told (texts done, texts to embed).
        """

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Of a few texts that may be a user's: nothing is read or kept."""
