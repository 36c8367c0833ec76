"""The items nearest to a tag, by cosine of sentence embeddings: exact, by blocks of a matrix product.

Norm rule (098): vectors are brought to unit length here, whatever comes in, so the order is that of cosines; a vector without a
direction (zero, NaN, infinite) is refused. Equal scores are ordered by item_id. One tag alone and 64 at once give the same rows (099),
because products are summed in float64 and rounded.

Cost: n_tags x n_items x d multiplications; 200,000 items and 1,000 tags take about half a minute on one core. From some ten million
items on (15 GB of vectors) an approximate index (HNSW or IVF-PQ, per shard of the catalog) takes over, with its recall against this
function as its test.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from recgpt_ops.errors import ContractError
from recgpt_ops.llm.encoder import Vectors

BLOCK = 16_384  # items a step: 50 MB of float64 at 384 dimensions
SCORE_DECIMALS = 6  # what is closer is a tie


class Near(NamedTuple):
    """One item near a tag: its place in the catalog that was searched, and the cosine."""

    place: int
    score: float


def unit_rows(vectors: Vectors, *, what: str) -> npt.NDArray[np.float64]:
    """The rows at unit length, [n, d]. ContractError names the first row that has no direction."""
    rows = np.asarray(vectors, dtype=np.float64)
    norms = np.linalg.norm(rows, axis=1)
    bad = np.flatnonzero(~(np.isfinite(norms) & (norms > 0)))
    if bad.size:
        raise ContractError(
            f"{what}: vector {bad[0]} of {len(rows)} has norm {norms[bad[0]]}; expected a finite one above 0, embed it again"
        )
    unit: npt.NDArray[np.float64] = rows / norms[:, None]
    return unit


def nearest(queries: Vectors, items: Vectors, item_ids: Sequence[str], *, count: int) -> list[list[Near]]:
    """For each query, [n, d], the `count` nearest rows of `items`, [m, d], best first; all rows where there are fewer.

    >>> # items "a" [1, 0], "b" [2, 0], "c" [0, 1]; query [3, 0]  ->  a 1.0, b 1.0, c 0.0: scale does not count, ties by id
    """
    if len(items) != len(item_ids):
        raise ContractError(f"items: {len(items)} vectors for {len(item_ids)} ids; embed the catalog again")
    if not len(items) or not len(queries):
        return [[] for _ in range(len(queries))]
    if queries.shape[1] != items.shape[1]:
        raise ContractError(f"tags have {queries.shape[1]} dimensions and items {items.shape[1]}; embed both by one model")
    wanted = unit_rows(queries, what="tags")
    id_order = np.empty(len(item_ids), dtype=np.int64)  # place of each item when all are sorted by id
    id_order[sorted(range(len(item_ids)), key=item_ids.__getitem__)] = np.arange(len(item_ids))
    best: list[npt.NDArray[np.int64]] = [np.empty(0, dtype=np.int64)] * len(queries)
    scores: list[npt.NDArray[np.float64]] = [np.empty(0)] * len(queries)
    for start in range(0, len(items), BLOCK):
        block = unit_rows(items[start : start + BLOCK], what="items")
        for query, cosines in enumerate(np.round(wanted @ block.T, SCORE_DECIMALS)):
            indexes = np.concatenate([best[query], start + at_least_nth(cosines, count)])
            found = np.concatenate([scores[query], cosines[at_least_nth(cosines, count)]])
            kept = np.lexsort((id_order[indexes], -found))[:count]
            best[query], scores[query] = indexes[kept], found[kept]
    return [
        [Near(int(index), float(score)) for index, score in zip(best[query], scores[query], strict=True)] for query in range(len(queries))
    ]


def at_least_nth(values: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.int64]:
    """Indexes of all values that are as great as the `count`-th greatest, so that ties at the cut stay in."""
    if count >= len(values):
        return np.arange(len(values))
    return np.flatnonzero(values >= np.partition(values, -count)[-count])
