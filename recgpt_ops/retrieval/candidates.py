"""Candidates: the items nearest to each tag a user got. Nearest by embedding, not best: no ranking model has seen them.

distinct tag -> 30 nearest items (looked up once, whoever has the tag) -> joined to users, what they bought left out, first 10 kept
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from recgpt_ops.llm.encoder import TextEncoder, Vectors
from recgpt_ops.retrieval.nearest import Near, nearest

TAG_BLOCK = 256  # tags a step: keeps the matrix of scores below 35 MB


class Catalog(NamedTuple):
    """What can be found: one item per distinct text, by item_id. `vectors` is [n, d], a row per item."""

    item_ids: tuple[str, ...]
    text_hashes: tuple[str, ...]
    vectors: Vectors


class Candidate(NamedTuple):
    """One item found for a tag; `score` is the cosine of tag and title."""

    item_id: str
    text_hash: str
    score: float


def one_item_per_text(items: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Of items with equal text the one with the smallest id, sorted by id: two sizes of one thing with one title are shown once."""
    smallest: dict[str, Mapping[str, Any]] = {}
    for item in items:
        known = smallest.get(item["text_hash"])
        if known is None or item["item_id"] < known["item_id"]:
            smallest[item["text_hash"]] = item
    return sorted(smallest.values(), key=lambda item: str(item["item_id"]))


def make_catalog(
    items: Iterable[Mapping[str, Any]], embedder: TextEncoder, *, progress: Callable[[int, int], None] | None = None
) -> Catalog:
    """Embeds the title of every distinct text; the embedder keeps what it has embedded before. `progress` as in `encode`."""
    distinct = one_item_per_text(items)
    titles = [str(item["title"]) for item in distinct]
    return Catalog(
        tuple(str(item["item_id"]) for item in distinct),
        tuple(str(item["text_hash"]) for item in distinct),
        embedder.encode(titles, progress=progress),
    )


def find_candidates(tags: Mapping[str, str], catalog: Catalog, embedder: TextEncoder, *, count: int) -> dict[str, list[Candidate]]:
    """For each distinct tag_id the `count` nearest items, best first. `tags`: tag_id -> words."""
    ids = sorted(tags)
    found: dict[str, list[Candidate]] = {}
    for start in range(0, len(ids), TAG_BLOCK):
        block = ids[start : start + TAG_BLOCK]
        queries = np.asarray(embedder.embed([tags[tag_id] for tag_id in block]), dtype=np.float32)
        for tag_id, near in zip(block, nearest(queries, catalog.vectors, catalog.item_ids, count=count), strict=True):
            found[tag_id] = [as_candidate(item, catalog) for item in near]
    return found


def as_candidate(near: Near, catalog: Catalog) -> Candidate:
    """A place of the catalog as an item."""
    return Candidate(catalog.item_ids[near.place], catalog.text_hashes[near.place], near.score)


def candidate_rows(
    tag_rows: Sequence[Mapping[str, Any]],
    found: Mapping[str, Sequence[Candidate]],
    *,
    publish_id: str,
    keep: int,
    bought_texts: Mapping[str, Collection[str]],
) -> list[dict[str, Any]]:
    """Rows of `candidate_items`: for each user's tag the first `keep` of its items, ranked from 1.

    `bought_texts`: user -> text hashes of what the user bought, which are left out (empty where the recipe keeps them). By text
    and not by id, because a catalog lists one thing under several ids.
    """
    rows = []
    for tag in tag_rows:
        bought = bought_texts.get(tag["user_id"], ())
        fresh = [item for item in found.get(tag["tag_id"], ()) if item.text_hash not in bought]
        rows += [
            {
                "ds": tag["ds"],
                "publish_id": publish_id,
                "scenario": tag["scenario"],
                "method": tag["method"],
                "user_id": tag["user_id"],
                "user_bucket": tag["user_bucket"],
                "tag_id": tag["tag_id"],
                "item_id": item.item_id,
                "text_hash": item.text_hash,
                "rank": rank,
                "score": item.score,
            }
            for rank, item in enumerate(fresh[:keep], start=1)
        ]
    return rows
