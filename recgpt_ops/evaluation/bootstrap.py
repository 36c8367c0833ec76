"""95 % intervals by the bootstrap: users are drawn again with replacement, all figures of one user stay together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

RESAMPLES = 2000
BLOCK_CELLS = 4_000_000  # 32 MB of draws at once
PERCENTILES = (2.5, 97.5)

Numbers = Sequence[float] | npt.NDArray[np.float64]


class Estimate(NamedTuple):
    """A figure and its interval; `value` is None where it cannot be told, `lo` and `hi` too, and over fewer than two units."""

    value: float | None
    lo: float | None
    hi: float | None
    n: int


def draws(n: int, *, seed: int, resamples: int) -> Iterator[npt.NDArray[np.float64]]:
    """How often each of `n` units is drawn in each resample, [block, n] at a time. The same for the same n and seed."""
    generator = np.random.default_rng([seed, n])
    rows = max(1, BLOCK_CELLS // n)
    for start in range(0, resamples, rows):
        yield generator.multinomial(n, np.full(n, 1 / n), size=min(rows, resamples - start)).astype(np.float64)


def ratio(numerators: Numbers, denominators: Numbers, *, seed: int, resamples: int = RESAMPLES) -> Estimate:
    """sum(numerators) / sum(denominators), a value a unit of each."""
    above, below = np.asarray(numerators, dtype=np.float64), np.asarray(denominators, dtype=np.float64)
    n = len(above)
    if not n or below.sum() == 0:
        return Estimate(None, None, None, n)
    value = float(above.sum() / below.sum())
    if n < 2:
        return Estimate(value, None, None, n)
    found = []
    with np.errstate(invalid="ignore", divide="ignore"):  # a resample may hold no unit that counts
        for counts in draws(n, seed=seed, resamples=resamples):
            found.append((counts @ above) / (counts @ below))
    ratios = np.concatenate(found)
    lo, hi = np.percentile(ratios[np.isfinite(ratios)], PERCENTILES)
    return Estimate(value, float(lo), float(hi), n)


def mean(values: Numbers, *, seed: int, resamples: int = RESAMPLES) -> Estimate:
    """The mean over units; a difference of two arms is the mean of each user's difference."""
    return ratio(values, np.ones(len(values)), seed=seed, resamples=resamples)
