"""Figures of an evaluation, from what was counted per user to rows of `evaluations`.

hr_next1@6                      a metric of an arm; @6: by the first six tags of its list
hr_next1@6 - own_repeats        the difference to another arm, user by user
prompt_tokens_computed / v1     the ratio to another arm
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from recgpt_ops.evaluation.bootstrap import Estimate, Numbers, mean, ratio


class Figure(NamedTuple):
    """One figure of one arm, as a row of `evaluations` holds it."""

    metric: str
    arm: str
    estimate: Estimate
    unit: str


class Draw(NamedTuple):
    """How intervals are made."""

    seed: int
    resamples: int

    def mean(self, values: Numbers) -> Estimate:
        """The mean over users."""
        return mean(values, seed=self.seed, resamples=self.resamples)

    def ratio(self, numerators: Numbers, denominators: Numbers) -> Estimate:
        """A ratio of two sums over users."""
        return ratio(numerators, denominators, seed=self.seed, resamples=self.resamples)


def without_interval(value: float | None, n: int) -> Estimate:
    """A figure that does not differ from user to user."""
    return Estimate(value, None, None, n)


def difference(metric: str, arm: str, other: str, values: Mapping[str, Sequence[float]], draw: Draw, *, unit: str) -> Figure:
    """`arm` minus `other`, user by user: users that both find easy do not widen the interval."""
    paired = np.asarray(values[arm], dtype=np.float64) - np.asarray(values[other], dtype=np.float64)
    return Figure(f"{metric} - {other}", arm, draw.mean(paired), unit)


def as_row(figure: Figure, *, evaluation_id: str, shared: Mapping[str, Any], made_at: datetime) -> dict[str, Any]:
    """A row of `evaluations`; `shared` holds the columns that all figures of an evaluation have in common."""
    value, lo, hi, n = figure.estimate
    return {
        "evaluation_id": evaluation_id, "metric": figure.metric, "arm": figure.arm, "value": value, "lo": lo, "hi": hi, "n": n,
        "unit": figure.unit, "made_at": made_at, **shared,
    }  # fmt: skip
