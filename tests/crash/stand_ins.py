"""What a night of the crash matrix runs on instead of Ray, a model and an embedder: the same interfaces, here and at once.

Jobs import Ray and the embedder by name, so the stand-ins are put under those names, before a job is imported.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from recgpt_ops.ids import row_id
from recgpt_ops.llm.fake import FakeEngine
from recgpt_ops.llm.requests import Answer, Request
from recgpt_ops.llm.vectors import VectorCache

DIMENSIONS = 16


class Inline:
    """`ray.remote(task)`: runs when it is called. Of a class: an object whose methods run when they are called."""

    def __init__(self, made: Callable[..., Any]) -> None:
        self.made = made

    def options(self, **_: object) -> Inline:
        return self

    def remote(self, *arguments: Any) -> Any:
        result = self.made(*arguments)
        return InlineActor(result) if isinstance(self.made, type) else result


class InlineActor:
    """An actor in this process."""

    def __init__(self, held: object) -> None:
        self.held = held

    def __getattr__(self, name: str) -> Inline:
        return Inline(getattr(self.held, name))


def ray_module() -> ModuleType:
    """As much of Ray as our jobs use."""
    module: Any = ModuleType("ray")
    module.remote = Inline
    module.get = lambda value: value
    module.wait = lambda waiting, **_: (waiting, [])
    module.cluster_resources = lambda: {"CPU": 2}
    return module  # type: ignore[no-any-return]  # built attribute by attribute


class LetterEmbedder:
    """Vectors made of the letters of a text and kept in the real cache: alike texts are near, nothing is loaded."""

    def __init__(self, cache_root: Path) -> None:
        self.embedder_hash = hashlib.sha256(b"letters").hexdigest()
        self.dimensions = DIMENSIONS
        self.cache = VectorCache(cache_root, self.embedder_hash, DIMENSIONS)

    def encode(self, texts: Sequence[str], *, progress: Callable[[int, int], None] | None = None) -> np.ndarray:
        distinct = list(dict.fromkeys(texts))
        vectors = self.cache.read(distinct)
        missing = [text for text in distinct if text not in vectors]
        if missing:
            rows = np.stack([self.embed_one(text) for text in missing])
            self.cache.append(missing, rows)
            vectors.update(zip(missing, rows, strict=True))
        return np.stack([vectors[text] for text in texts]) if texts else np.zeros((0, DIMENSIONS), np.float32)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        return self.encode(texts)

    def embed_one(self, text: str) -> np.ndarray:
        row = np.zeros(DIMENSIONS, np.float32)
        for pair in zip(f" {text}", f"{text} ", strict=True):
            row[hashlib.sha256("".join(pair).encode()).digest()[0] % DIMENSIONS] += 1
        made: np.ndarray = row / np.linalg.norm(row)
        return made


class CountedEngine(FakeEngine):
    """The fake engine; every call leaves a line in a file outside of the warehouse, where a kill cannot take it back.

    What is asked for one of `refused`, users, is refused.
    """

    def __init__(self, calls: Path, refused: Collection[str]) -> None:
        super().__init__(
            texts=lambda request: "A plain good pick for today" if is_free_text(request) else None,
            faults=lambda request, _: "row_error" if request.user_id in refused else None,
        )
        self.file = os.open(calls, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    async def answer(self, request: Request) -> Answer:
        asked = (
            request.role,
            request.user_id,
            request.token_ids,
            request.choice,
            request.json_schema,
            request.label_ids,
            request.forced_ids,
        )
        told = row_id([repr(asked), repr(request.forced_ids), repr([message.text for message in request.messages]), repr(request.sampling)])
        os.write(self.file, f"{told}\n".encode())
        return await super().answer(request)


def is_free_text(request: Request) -> bool:
    """Whether the answer is words without a form."""
    return request.choice is None and request.json_schema is None and request.label_ids is None and request.forced_ids is None


def install(calls: Path, *, refused: Collection[str] = ()) -> None:
    """Puts the stand-ins under the names that jobs import, in this process; `refused` as in `CountedEngine`."""
    import recgpt_ops.llm.engine as engine

    embedder: Any = ModuleType("recgpt_ops.llm.embedder")
    embedder.load_embedder = lambda settings, *, models_root=None: LetterEmbedder(models_root / "embeddings")
    session: Any = ModuleType("recgpt_ops.llm.ray_session")
    session.ray_session = lambda where: nullcontext()
    sys.modules |= {"ray": ray_module(), "recgpt_ops.llm.embedder": embedder, "recgpt_ops.llm.ray_session": session}
    engine.connect_engine = lambda *_, **__: CountedEngine(calls, refused)  # type: ignore[assignment]  # a stand-in
