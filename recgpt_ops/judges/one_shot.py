"""V1's judge: one call that says S, A or B at once, without any dimension in between (RecGPT V1, section 3).

It runs on the output of every method, as the panel does, so that the two judges can be compared on the same rows.
"""

from __future__ import annotations

from dataclasses import replace

from recgpt_ops.errors import RowError
from recgpt_ops.judges.cutoffs import Cutoffs
from recgpt_ops.judges.dimensions import GRADES, LEVELS, OVERALL
from recgpt_ops.judges.judge import Judge, Subject
from recgpt_ops.judges.panel import Level
from recgpt_ops.judges.replies import read_grade
from recgpt_ops.llm.requests import Request

ROLE = "judge_one_shot"


async def ask_one_shot(subject: Subject, judge: Judge, cutoffs: Cutoffs | None) -> Level:
    """The one call's result as the level of `overall`: negative stands for B, neutral for A, positive for S."""
    try:
        if cutoffs is not None:
            score, call_id = await judge.label_score(subject, None, role=ROLE)
            return Level(OVERALL, LEVELS[cutoffs.of(subject.kind, OVERALL).place(score)], "ok", score, None, call_id)

        def make(refused: str) -> Request:
            return replace(judge.question(ROLE, subject, "grade_choice", None, refused=refused, user_id=subject.user_id), choice=GRADES)

        grade, call_id = await judge.asker.ask(make, read_grade)
        return Level(OVERALL, LEVELS[GRADES.index(grade)], "ok", None, None, call_id)
    except RowError as error:
        return Level(OVERALL, None, error.reason, detail=error.detail)
