"""Finding the cut-offs of a model on the labeled pairs (20 tags, 20 explanations, a label for every dimension).

Of all pairs of cuts between neighboring scores, the ones with the highest balanced agreement (the mean, over the levels that are
labeled, of the share of their pairs that come out right) are kept; of these the ones with the highest agreement, of these those with
the widest gap between the scores on both sides of the cuts, of these the lowest. Balanced, because half of the labels of most
dimensions are positive and a judge that always says positive would else do well.

one_shot is calibrated on the grade that the rule of 19.1 makes of the labels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import yaml

from recgpt_ops.errors import ConfigError
from recgpt_ops.judges.cutoffs import CALIBRATION, Cut, Cutoffs, basis_digest
from recgpt_ops.judges.dimensions import DIMENSIONS, GRADES, KINDS, LEVELS, OVERALL, Dimension, Kind
from recgpt_ops.judges.judge import Judge, Subject
from recgpt_ops.judges.one_shot import ROLE
from recgpt_ops.judges.reviewer import review
from recgpt_ops.judges.subjects import explanation_subject, tag_subject, user_context
from recgpt_ops.ledger.asking import all_of
from recgpt_ops.llm.requests import EngineIdentity

FILES: dict[Kind, str] = {"tag": "tags_v1.yaml", "explanation": "explanations_v1.yaml"}
PLACES = range(len(LEVELS))
DIGITS = 4  # of a cut: below what another batch changes a log-probability by


def load_pairs(kind: Kind) -> list[dict[str, Any]]:
    """The labeled pairs of a kind, each as a row of its table with `levels`: dimension -> level, and the rule's grade as `overall`."""
    told: Any = yaml.safe_load((CALIBRATION / FILES[kind]).read_text(encoding="utf-8"))
    rows = []
    for number, pair in enumerate(told["pairs"], start=1):
        levels = {dimension.name: pair[dimension.name] for dimension in DIMENSIONS[kind]}
        if unknown := [level for level in levels.values() if level not in LEVELS]:
            raise ConfigError(FILES[kind], [f"pair {number}: level {unknown[0]!r}; expected one of {', '.join(LEVELS)}"])
        levels[OVERALL] = LEVELS[GRADES.index(review(kind, list(levels.values())) or "B")]
        row: dict[str, Any] = {"levels": levels, "locale": told["locale"]}
        if kind == "tag":
            context = told["contexts"][pair["context"]]
            attributes = [dict(zip(("name", "value"), text.split(": ", 1), strict=True)) for text in context["attributes"]]
            lines = [{"line_id": place, "text": text} for place, text in enumerate(context["lines"], start=1)]
            user = {"locale": told["locale"], "attributes": attributes, "signals": context["signals"], "lines": lines}
            row |= {"tag": pair["tag"], "tag_id": str(number), "user_id": None, "user": user}
        else:
            row |= {"tag": pair["interest"], "item_text": pair["item"], "situation": pair["situation"], "text": pair["text"]}
            row["explanation_id"] = str(number)
        rows.append(row)
    return rows


async def calibrate(judge: Judge, identity: EngineIdentity) -> Cutoffs:
    """The cut-offs of the judge's model, from the scores it gives the labeled pairs."""
    cuts: dict[str, dict[str, Cut]] = {}
    for kind in KINDS:
        pairs = load_pairs(kind)
        subjects = [pair_subject(kind, pair, judge) for pair in pairs]
        cuts[kind] = {}
        for dimension in (*DIMENSIONS[kind], None):
            name = dimension.name if dimension else OVERALL
            scores = await pair_scores(subjects, dimension, judge)
            cuts[kind][name] = find_cut(scores, [LEVELS.index(pair["levels"][name]) for pair in pairs])
    return Cutoffs(identity.model, identity.model_hash, basis_digest(), cuts)


def pair_subject(kind: Kind, pair: dict[str, Any], judge: Judge) -> Subject:
    """A labeled pair as a judge reads it in a night."""
    if kind == "explanation":
        return explanation_subject(pair, judge)
    return tag_subject(pair, locale=pair["locale"], context=user_context(pair["user"], judge), judge=judge)


async def pair_scores(subjects: Sequence[Subject], dimension: Dimension | None, judge: Judge) -> list[float]:
    """The score of every pair in one dimension (None: of the whole)."""
    role = f"judge_{dimension.name}" if dimension else ROLE
    return [score for score, _ in await all_of(judge.label_score(subject, dimension, role=role) for subject in subjects)]


def find_cut(scores: Sequence[float], labels: Sequence[int]) -> Cut:
    """The cut-offs for these scores; `labels` are places in LEVELS."""
    low, high = best_cuts(scores, labels)
    found = [Cut(low, high, 0, 0, 0).place(score) for score in scores]
    left_out = []
    for index, score in enumerate(scores):
        others = [place for place in range(len(scores)) if place != index]
        cuts = best_cuts([scores[place] for place in others], [labels[place] for place in others])
        left_out.append(Cut(*cuts, 0, 0, 0).place(score))
    return Cut(low, high, round(agreement(found, labels), 3), round(balanced(found, labels), 3), round(balanced(left_out, labels), 3))


def best_cuts(scores: Sequence[float], labels: Sequence[int]) -> tuple[float, float]:
    """Low and high cut by the rule of this module.

    >>> best_cuts([-2.0, -1.0, 1.0, 4.0], [0, 0, 1, 2])
    (0.0, 2.5)
    """
    known = sorted(set(scores))
    # A cut, and how far the nearest scores are from it; the outermost cuts leave a level out, at no margin.
    cuts = [(round(known[0] - 1.0, DIGITS), 0.0)]
    cuts += [(round((left + right) / 2, DIGITS), right - left) for left, right in pairwise(known)]
    cuts.append((round(known[-1] + 1.0, DIGITS), 0.0))
    below = [
        [sum(score < cut and label == level for score, label in zip(scores, labels, strict=True)) for level in PLACES] for cut, _ in cuts
    ]
    total = below[-1]  # every score lies below the last cut
    best, key = (0.0, 0.0), (-math.inf, -math.inf, -math.inf)
    for place, (low, low_gap) in enumerate(cuts):
        for other, (high, high_gap) in enumerate(cuts[place:], start=place):
            right = (below[place][0], below[other][1] - below[place][1], total[2] - below[other][2])
            shares = [found / all_ for found, all_ in zip(right, total, strict=True) if all_]
            now = (round(sum(shares) / len(shares), 9), float(sum(right)), round(min(low_gap, high_gap), 9))
            if now > key:
                best, key = (low, high), now
    return best


def agreement(found: Sequence[int], labels: Sequence[int]) -> float:
    """Share of pairs whose level is the label."""
    return sum(level == label for level, label in zip(found, labels, strict=True)) / len(labels)


def balanced(found: Sequence[int], labels: Sequence[int]) -> float:
    """Mean over the labeled levels of the share of their pairs that come out right."""
    by_label = {wanted: [level == wanted for level, label in zip(found, labels, strict=True) if label == wanted] for wanted in set(labels)}
    return sum(sum(right) / len(right) for right in by_label.values()) / len(by_label)
