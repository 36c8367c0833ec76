"""Tag-to-Cate: the category of a tag, by a vote among the catalog's titles that are nearest to it (RecGPT V1, the model phi of HR@30).

    "string cheese" -> the 10 nearest titles -> their categories, each weighed by its cosine -> "CHEESE"

A hit rate cannot be better than this model, so its own accuracy stands beside each: on titles that were held out of the vote, and on
the names of the catalog's own item types. The rule is the same for every arm, also for a tag that is itself a type of the catalog.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from recgpt_ops.evaluation.feeds import category_of, word_of
from recgpt_ops.ids import row_id
from recgpt_ops.llm.encoder import TextEncoder, Vectors
from recgpt_ops.retrieval.candidates import one_item_per_text
from recgpt_ops.retrieval.nearest import nearest

NEIGHBORS = 10
HELD_OUT_EVERY = 5  # a fifth of the titles, by text hash
HELD_OUT_MAX = 2000
BLOCK = 256  # texts a step: keeps the matrix of cosines below 35 MB
DECIMALS = 6


class Titles(NamedTuple):
    """Titles whose category is known, a row of `vectors` each, [n, d]. `text_hashes` break ties."""

    text_hashes: tuple[str, ...]
    categories: tuple[str, ...]
    vectors: Vectors

    def some(self, places: Sequence[int]) -> Titles:
        """Only these."""
        return Titles(
            tuple(self.text_hashes[place] for place in places),
            tuple(self.categories[place] for place in places),
            self.vectors[np.asarray(places, dtype=np.int64)],
        )


def make_titles(items: Iterable[Mapping[str, Any]], embedder: TextEncoder, *, progress: Callable[[int, int], None] | None = None) -> Titles:
    """The distinct texts of a catalog (item_id, text_hash, title, category, item_type); what candidates have embedded is read back."""
    distinct = one_item_per_text(items)
    return Titles(
        tuple(str(item["text_hash"]) for item in distinct),
        tuple(category_of(item["category"], item["item_type"], item["title"]) for item in distinct),
        embedder.encode([str(item["title"]) for item in distinct], progress=progress),
    )


def vote_categories(vectors: Vectors, titles: Titles, *, neighbors: int = NEIGHBORS) -> list[str]:
    """Category of each vector, [n, d]: the category with most cosine among the nearest titles; ties by name. [] without titles."""
    if not titles.text_hashes:
        return []
    found = []
    for start in range(0, len(vectors), BLOCK):
        for near in nearest(vectors[start : start + BLOCK], titles.vectors, titles.text_hashes, count=neighbors):
            votes: defaultdict[str, float] = defaultdict(float)
            for one in near:
                votes[titles.categories[one.place]] += max(one.score, 0.0)
            found.append(min(votes, key=lambda category: (-round(votes[category], DECIMALS), category)))
    return found


def map_tags(tags: Iterable[str], titles: Titles, embedder: TextEncoder, *, neighbors: int = NEIGHBORS) -> dict[str, str]:
    """Category of every distinct tag; {} where nothing is known of any title."""
    distinct = sorted(set(tags))
    if not distinct or not titles.text_hashes:
        return {}
    return dict(zip(distinct, vote_categories(embedder.embed(distinct), titles, neighbors=neighbors), strict=True))


def held_out_places(text_hashes: Sequence[str], *, seed: int, at_most: int = HELD_OUT_MAX) -> tuple[list[int], list[int]]:
    """(places held out and asked, places that vote): a fifth is held out by its hash, of these a sample is asked."""
    out = [place for place, text_hash in enumerate(text_hashes) if int(text_hash, 16) % HELD_OUT_EVERY == 0]
    asked = sorted(out, key=lambda place: row_id((seed, text_hashes[place])))[:at_most]
    held_out = set(out)
    return sorted(asked), [place for place in range(len(text_hashes)) if place not in held_out]


def title_hits(titles: Titles, *, seed: int, at_most: int = HELD_OUT_MAX, neighbors: int = NEIGHBORS) -> list[float]:
    """Per asked title 1 where phi, voting among titles that are not held out, names its category, else 0."""
    asked, voters = held_out_places(titles.text_hashes, seed=seed, at_most=at_most)
    if not asked or not voters:
        return []
    guessed = vote_categories(titles.vectors[np.asarray(asked)], titles.some(voters), neighbors=neighbors)
    return [float(guess == titles.categories[place]) for guess, place in zip(guessed, asked, strict=True)]


def name_hits(names: Mapping[str, str], guessed: Mapping[str, str]) -> list[float]:
    """Per item type 1 where phi maps its name to its own category, else 0; [] without types."""
    return [float(guessed[name] == category) for name, category in sorted(names.items())]


def type_categories(items: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Name of each item type -> the category most of its items have; ties by name. Items without a type count for nothing."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for item in items:
        if item["item_type"]:
            name = word_of(item["item_type"], item["title"])
            counts[name][category_of(item["category"], item["item_type"], item["title"])] += 1
    return {name: min(found, key=lambda category: (-found[category], category)) for name, found in counts.items()}
