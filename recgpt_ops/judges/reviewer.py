"""The Senior Reviewer: the levels of all dimensions as one grade (RecGPT-V2, 4.1).

    1. defects      any negative                    -> B
    2. excellence   positives / D >= tau            -> S, else A

tau is ours, as the paper gives none: 3 of 4 for tags, 5 of 7 for explanations; every dimension is critical.
"""

from __future__ import annotations

from collections.abc import Sequence

from recgpt_ops.judges.dimensions import DIMENSIONS, Kind

SUPERIOR_COUNT: dict[Kind, int] = {"tag": 3, "explanation": 5}  # tau x D: 0.75 x 4, 5/7 x 7


def review(kind: Kind, levels: Sequence[str | None]) -> str | None:
    """The grade of one output. None where a dimension has no level: a failure is no grade.

    >>> review("tag", ["positive", "positive", "positive", "neutral"])
    'S'
    """
    if len(levels) != len(DIMENSIONS[kind]):
        raise ValueError(f"{kind}: {len(levels)} levels; expected one for each of the {len(DIMENSIONS[kind])} dimensions")
    if None in levels:
        return None
    if "negative" in levels:
        return "B"
    return "S" if levels.count("positive") >= SUPERIOR_COUNT[kind] else "A"
