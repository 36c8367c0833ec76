"""The closed vocabulary: the words a small model may choose among, and the short list that one expert is shown.

    all item types of the catalog -> the 22 nearest to "cheese: string cheese, shredded cheese", without what was just bought

A list is short because a small model's choice among hundreds is noise; it is shown in an order of its own for each user, because
such a model favors the first words, and an order that all users shared would push the same tags to everybody.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from recgpt_ops.agents.rows import Persona
from recgpt_ops.ids import normalize_text, row_id, tag_id
from recgpt_ops.llm.encoder import TextEncoder, Vectors

COSINE_DECIMALS = 6  # float noise of a batch stays below; what is closer than that is a tie


class Vocabulary(NamedTuple):
    """Distinct words of the catalog, sorted, with their unit vectors, [n, d]."""

    words: tuple[str, ...]
    vectors: Vectors


def build_vocabulary(words: Iterable[str], embedder: TextEncoder) -> Vocabulary:
    """Embeds every distinct word once. Of words with equal normalized text the smallest spelling stays."""
    distinct: dict[str, str] = {}
    for word in sorted(words, reverse=True):
        distinct[normalize_text(word)] = word
    distinct.pop("", None)
    ordered = tuple(sorted(distinct.values()))
    return Vocabulary(ordered, embedder.encode(ordered))


def cosines(vectors: Vectors, query: Vectors) -> npt.NDArray[np.float64]:
    """Cosine of each row with the query, rounded. Summed in float64, so that a row's value does not depend on the others."""
    return np.round(vectors.astype(np.float64) @ query.astype(np.float64), COSINE_DECIMALS)


def query_text(persona: Persona) -> str:
    """What the list is looked up by: `cheese: string cheese, shredded cheese`."""
    return f"{persona.name}: {', '.join(persona.evidence)}" if persona.evidence else persona.name


def closed_list(
    query: str, vocabulary: Vocabulary, *, embedder: TextEncoder, size: int, leave_out: Collection[str], user_id: str, locale: str
) -> tuple[str, ...]:
    """The `size` words nearest to the query, without `leave_out` (compared as normalized text), in this user's order.

    Nearness ties by tag_id; shown in order of sha256(user_id, tag_id). Shorter where the vocabulary is.
    """
    left_out = {normalize_text(word) for word in leave_out}
    scores = cosines(vocabulary.vectors, embedder.embed([query])[0])
    enough = size + len(left_out)  # so many are wanted at most; all that score as well as the last of them stay in, for the ties
    cut = np.sort(scores)[-enough] if enough < len(scores) else -np.inf
    near = [(-scores[index], tag_id(locale, vocabulary.words[index]), vocabulary.words[index]) for index in np.flatnonzero(scores >= cut)]
    kept = [(id_, word) for _, id_, word in sorted(near) if normalize_text(word) not in left_out][:size]
    return tuple(word for _, word in sorted((row_id((user_id, id_)), word) for id_, word in kept))
