"""What a channel finds that no other does, and how often its routes say the same (RecGPT-V2, 2.3; the definitions are ours).

duplication      = 1 - |union of the routes' tags| / sum over routes of |tags|             per user
exclusive recall = sum_u |wanted_u and found_u and not found by others_u| / sum_u |wanted_u|
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence


def duplication(routes: Iterable[Sequence[str]]) -> float | None:
    """The share of what all routes (or personas) of one user produced that repeats something; None where nothing was produced.

    >>> duplication([["tea", "milk"], ["milk", "bread"]])
    0.25
    """
    produced = [tag for tags in routes for tag in tags]
    return 1 - len(set(produced)) / len(produced) if produced else None


def exclusive_count(wanted: Collection[str], found: Collection[str], others: Iterable[Collection[str]]) -> int:
    """How many wanted categories of one user this channel found and no other."""
    elsewhere = {category for other in others for category in other}
    return len((set(wanted) & set(found)) - elsewhere)


def route_exclusive_count(wanted: Collection[str], routes: Sequence[Collection[str]]) -> int:
    """How many wanted categories of one user exactly one route of a method found: the variant for several routes."""
    return sum(exclusive_count(wanted, found, [*routes[:place], *routes[place + 1 :]]) for place, found in enumerate(routes))
