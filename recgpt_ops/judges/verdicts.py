"""One subject before one judge: panel and reviewer, or one_shot; a verdict with its levels, whatever failed.

subject -> "" ?  -> by_rule, B, no call (055)
        -> levels -> a level missing? -> failed, no grade (049)
                  -> reviewer         -> judged, S / A / B
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from recgpt_ops.errors import RowError
from recgpt_ops.judges.cutoffs import Cutoffs
from recgpt_ops.judges.dimensions import GRADES, LEVELS
from recgpt_ops.judges.judge import Judge, Subject
from recgpt_ops.judges.one_shot import ask_one_shot
from recgpt_ops.judges.panel import Level, ask_panel
from recgpt_ops.judges.replies import read_grade
from recgpt_ops.judges.reviewer import review
from recgpt_ops.llm.requests import Request, Sampling
from recgpt_ops.settings import Judging


class Verdict(NamedTuple):
    """What one judge method says of one subject. `label` None exactly where `status` is failed."""

    judge_method: str
    status: str
    label: str | None
    labeled_by: str
    levels: tuple[Level, ...]

    @property
    def columns(self) -> dict[str, Any]:
        """The verdict's own columns of `tag_verdicts` and `explanation_verdicts`."""
        kept = ("dimension", "level", "status", "score", "reason", "call_id")
        levels = [{name: getattr(level, name) for name in kept} for level in self.levels]
        return {
            "judge_method": self.judge_method,
            "status": self.status,
            "label": self.label,
            "labeled_by": self.labeled_by,
            "levels": levels,
        }

    @property
    def failure(self) -> RowError | None:
        """Why there is no grade: every failed dimension with its reason; None where there is a grade."""
        failed = [level for level in self.levels if level.level is None]
        if not failed:
            return None
        return RowError(failed[0].status, "; ".join(f"{level.dimension}: {level.status}: {level.detail}" for level in failed))


async def judge_subject(subject: Subject, judge_method: str, judge: Judge, *, judging: Judging, cutoffs: Cutoffs | None) -> Verdict:
    """The verdict of one judge method. `cutoffs` None: levels are written, not read from labels."""
    if not subject.text.strip():
        return Verdict(judge_method, "by_rule", "B", "rule", ())
    if judge_method == "one_shot":
        level = await ask_one_shot(subject, judge, cutoffs)
        grade = None if level.level is None else GRADES[LEVELS.index(level.level)]
        return Verdict(judge_method, "failed" if grade is None else "judged", grade, "model", (level,))
    levels = await ask_panel(subject, judge, cutoffs)
    grade, labeled_by = review(subject.kind, [level.level for level in levels]), "rule"
    if grade is not None and judging.reviewer == "model":
        grade, labeled_by = await ask_reviewer(subject, levels, judge, otherwise=grade)
    return Verdict(judge_method, "failed" if grade is None else "judged", grade, labeled_by, levels)


async def ask_reviewer(subject: Subject, levels: tuple[Level, ...], judge: Judge, *, otherwise: str) -> tuple[str, str]:
    """The grade by a model and `model`; where no usable reply came, the rule's grade and `rule`."""

    def make(refused: str) -> Request:
        told = [f"{level.dimension}: {level.level}" + (f" ({level.reason})" if level.reason else "") for level in levels]
        request = judge.asker.request(
            "judge_reviewer",
            "reviewer",
            subject.locale,
            user_id=subject.user_id,
            sampling=Sampling(8),
            kind=subject.kind,
            told=told,
            refused=refused,
        )
        return replace(request, choice=GRADES)

    try:
        grade, _ = await judge.asker.ask(make, read_grade)
    except RowError:
        return otherwise, "rule"
    return grade, "model"
