from __future__ import annotations

import numpy as np
import pytest

from recgpt_ops.evaluation import bootstrap
from recgpt_ops.evaluation.bootstrap import Estimate, draws, mean, ratio


def test_the_same_seed_gives_the_same_interval_and_another_seed_another() -> None:
    values = np.sqrt(np.arange(10))
    assert mean(values, seed=1) == mean(values, seed=1)
    assert mean(values, seed=1) != mean(values, seed=2)


def test_every_resample_draws_as_many_units_as_there_are() -> None:
    counts = np.concatenate(list(draws(7, seed=0, resamples=1000)))
    assert counts.shape == (1000, 7)
    assert set(counts.sum(axis=1)) == {7.0}


def test_the_draws_do_not_depend_on_how_many_are_held_at_once(monkeypatch) -> None:
    whole = mean([1, 2, 3, 4], seed=5)
    monkeypatch.setattr(bootstrap, "BLOCK_CELLS", 40)
    assert mean([1, 2, 3, 4], seed=5) == whole


def test_an_interval_covers_the_truth_about_95_times_of_100() -> None:
    """100 samples of 60 coins that fall on 1 three times of ten; the binomial spread of the count itself is 3."""
    generator = np.random.default_rng(0)
    covered = 0
    for sample in range(100):
        found = mean((generator.random(60) < 0.3).astype(float), seed=sample, resamples=1000)
        covered += found.lo <= 0.3 <= found.hi
    assert 88 <= covered <= 99


def test_a_mean_has_the_width_that_theory_gives() -> None:
    """Half zeros, half ones, n = 400: 1.96 * 0.5 / 20 = 0.049 to each side."""
    found = mean([0.0, 1.0] * 200, seed=0, resamples=4000)
    assert found.value == 0.5
    assert (found.hi - found.lo) / 2 == pytest.approx(0.049, abs=0.004)


def test_a_ratio_is_of_sums_and_not_a_mean_of_ratios() -> None:
    assert ratio([1, 9], [10, 10], seed=0).value == 0.5
    assert ratio([0, 9], [1, 99], seed=0).value == 0.09  # not (0 + 9/99) / 2


def test_users_keep_their_numerator_and_denominator_together() -> None:
    """Every user costs half as much: the ratio is the same in each resample."""
    before = np.array([10.0, 200.0, 3000.0])
    found = ratio(before / 2, before, seed=0)
    assert (found.value, found.lo, found.hi) == (0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("above", "below", "expected"),
    [
        ([], [], Estimate(None, None, None, 0)),
        ([0.0, 0.0], [0.0, 0.0], Estimate(None, None, None, 2)),
        ([1.0], [2.0], Estimate(0.5, None, None, 1)),
    ],
)
def test_what_cannot_be_told_is_none(above, below, expected) -> None:
    assert ratio(above, below, seed=0) == expected


def test_resamples_that_hold_nobody_who_counts_are_left_out() -> None:
    found = ratio([1.0, 0.0], [1.0, 0.0], seed=0)
    assert found == Estimate(1.0, 1.0, 1.0, 2)
