"""The panel: one call for each dimension of a tag (4) or an explanation (7), each call blind to the others (RecGPT-V2, 4.1).

    "orthopedic dog bed"  ->  relevance positive, consistency positive, specificity neutral, validity positive

A call that gives no level is a status of that dimension; the others stand, and the verdict's row is written all the same (049).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from recgpt_ops.errors import RowError
from recgpt_ops.judges.cutoffs import Cutoffs
from recgpt_ops.judges.dimensions import DIMENSIONS, LEVELS, Dimension
from recgpt_ops.judges.judge import Judge, Subject
from recgpt_ops.judges.replies import LEVEL_SCHEMA, read_level
from recgpt_ops.ledger.asking import all_of
from recgpt_ops.llm.requests import Request


class Level(NamedTuple):
    """What one call said. `level` None: it failed, `status` says how and `detail` tells it; else `status` is ok.

    `score` is what the level was cut from, None where the judge named it.
    """

    dimension: str
    level: str | None
    status: str
    score: float | None = None
    reason: str | None = None
    call_id: str | None = None
    detail: str = ""


async def ask_panel(subject: Subject, judge: Judge, cutoffs: Cutoffs | None) -> tuple[Level, ...]:
    """A level for each dimension, in their order. `cutoffs` None: the judges write their levels."""
    return tuple(await all_of(ask_dimension(subject, dimension, judge, cutoffs) for dimension in DIMENSIONS[subject.kind]))


async def ask_dimension(subject: Subject, dimension: Dimension, judge: Judge, cutoffs: Cutoffs | None) -> Level:
    """One dimension's level, or why there is none."""
    role = f"judge_{dimension.name}"
    try:
        if cutoffs is not None:
            score, call_id = await judge.label_score(subject, dimension, role=role)
            return Level(dimension.name, LEVELS[cutoffs.of(subject.kind, dimension.name).place(score)], "ok", score, None, call_id)

        def make(refused: str) -> Request:
            request = judge.question(role, subject, "level_reason", dimension, refused=refused, user_id=subject.user_id)
            return replace(request, json_schema=LEVEL_SCHEMA)

        (level, reason), call_id = await judge.asker.ask(make, read_level)
        return Level(dimension.name, level, "ok", None, reason, call_id)
    except RowError as error:
        return Level(dimension.name, None, error.reason, detail=error.detail)
