"""HR@K: how often the categories that a list of tags covers hold what the user did next.

C_pred = {phi(t) for t in the first K tags}          a set: two tags of one category count once (RecGPT V1, HR@30)
hr_next1 = 1[category of the next item in C_pred]     V1's formula
hr_any   = 1[any category of the window in C_pred]    V2's wording
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from recgpt_ops.evaluation.labels import Label


def covered(tags: Sequence[str], categories: Mapping[str, str], *, size: int) -> frozenset[str]:
    """C_pred of the first `size` tags; `categories` is phi by tag."""
    return frozenset(categories[tag] for tag in tags[:size])


def hit_next1(predicted: Collection[str], label: Label) -> float:
    """1 where the next item's category was predicted, else 0."""
    return float(label.next_category in predicted)


def hit_any(predicted: Collection[str], label: Label) -> float:
    """1 where any category of the window was predicted, else 0."""
    return float(not label.categories.isdisjoint(predicted))
