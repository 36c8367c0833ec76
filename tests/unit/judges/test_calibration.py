"""Cut-offs: the labeled pairs, the rule that finds them, the files they are kept in."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from recgpt_ops.errors import ConfigError
from recgpt_ops.judges.calibration import best_cuts, calibrate, find_cut, load_pairs
from recgpt_ops.judges.cutoffs import SHIPPED, basis_digest, cutoffs_file, load_cutoffs, read_cutoffs, write_cutoffs
from recgpt_ops.judges.dimensions import DIMENSIONS, KINDS, LEVELS, OVERALL, Kind
from recgpt_ops.judges.judge import Judge
from recgpt_ops.llm.fake import FakeEngine

from .conftest import flat_cutoffs


@pytest.mark.parametrize("kind", KINDS)
def test_forty_pairs_are_shipped_with_every_dimension_labeled_and_bad_ones_among_them(kind: Kind) -> None:
    pairs = load_pairs(kind)
    assert len(pairs) == 20
    for dimension in (*(dimension.name for dimension in DIMENSIONS[kind]), OVERALL):
        seen = Counter(pair["levels"][dimension] for pair in pairs)
        assert seen["negative"] >= 2, dimension
        assert seen["positive"] >= 6, dimension
    assert Counter(pair["levels"][OVERALL] for pair in pairs)["negative"] >= 8


@pytest.mark.parametrize(
    ("scores", "labels", "cuts"),
    [
        ([-2.0, -1.0, 1.0, 4.0], [0, 0, 1, 2], (0.0, 2.5)),  # every level apart: the middle of each gap
        ([1.0, 2.0, 8.0], [0, 0, 2], (5.0, 5.0)),  # no neutral pairs: the widest gap, twice
        ([3.0, 1.0, 2.0], [2, 2, 2], (0.0, 0.0)),  # one level alone: all of it, the cuts below
        ([1.0, 2.0, 3.0, 4.0], [2, 0, 2, 2], (2.5, 2.5)),  # balanced: the one negative weighs as much as three positives
    ],
)
def test_cuts_agree_with_most_pairs_of_every_level_and_lie_in_the_widest_gap(
    scores: list[float], labels: list[int], cuts: tuple[float, float]
) -> None:
    assert best_cuts(scores, labels) == cuts


def test_a_cut_says_how_it_agrees_with_and_without_each_pair() -> None:
    cut = find_cut([-2.0, -1.5, 0.0, 0.2, 3.0, 3.5], [0, 0, 1, 1, 2, 2])
    assert (cut.low, cut.high) == (-0.75, 1.6)
    assert (cut.agreement_ratio, cut.balanced_ratio, cut.left_out_ratio) == (1.0, 1.0, 1.0)
    assert [LEVELS[cut.place(score)] for score in (-0.76, -0.75, 1.59, 1.6)] == ["negative", "neutral", "neutral", "positive"]
    noise = find_cut([1.0, 2.0, 3.0, 4.0], [0, 2, 0, 2])
    assert noise.balanced_ratio == 0.75  # something is always found
    assert noise.left_out_ratio == 0.5  # and does not hold for a pair it was not found on


def test_the_commonest_level_alone_is_no_merit() -> None:
    cut = find_cut([5.0] * 8 + [4.0, 4.5], [2] * 8 + [0, 2])
    assert [cut.place(score) for score in (4.0, 5.0)] == [0, 2]


def test_cutoffs_are_written_and_read_and_belong_to_one_model(tmp_path: Path) -> None:
    cutoffs = flat_cutoffs()
    path = cutoffs_file(tmp_path, model="/models/judge", model_hash="0123456789abcdef")
    assert path.name == "judge-0123456789ab.yaml"
    write_cutoffs(path, cutoffs, build="fake 1")
    assert read_cutoffs(path) == cutoffs
    assert load_cutoffs(model="fake", model_hash="hash", directories=(tmp_path,)).digest == cutoffs.digest
    with pytest.raises(ConfigError, match=r"model other .* has no cut-offs; run `recgpt judges calibrate`"):
        load_cutoffs(model="other", model_hash="other", directories=(tmp_path,))
    path.write_text(path.read_text().replace(basis_digest(), "0" * 64))
    with pytest.raises(ConfigError, match="made with other labeled pairs, templates or rubrics; run `recgpt judges calibrate`"):
        load_cutoffs(model="fake", model_hash="hash", directories=(tmp_path,))
    path.write_text("cuts: [")
    with pytest.raises(ConfigError, match="holds no cut-offs"):
        read_cutoffs(path)


def test_the_first_folder_with_cutoffs_of_today_counts(tmp_path: Path) -> None:
    for folder, low in (("own", -2.0), ("shipped", -1.0)):
        write_cutoffs(tmp_path / folder / "fake.yaml", flat_cutoffs(low=low), build="fake 1")
    directories = (tmp_path / "own", tmp_path / "nothing", tmp_path / "shipped")
    assert load_cutoffs(model="fake", model_hash="hash", directories=directories).of("tag", "relevance").low == -2.0


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_cutoffs_were_made_with_today_s_pairs_templates_and_rubrics(path: Path) -> None:
    assert read_cutoffs(path).basis == basis_digest(), "run `recgpt judges calibrate --into` on it again"


def test_cutoffs_are_shipped_for_the_fake_engine_and_the_model_of_the_demo() -> None:
    assert {path.stem for path in SHIPPED.glob("*.yaml")} == {"fake", "smollm2-135m-instruct"}


def test_calibrating_scores_every_pair_in_every_dimension_and_its_twin_once(make_judge: Callable[..., Judge]) -> None:
    engine = FakeEngine()
    judge = make_judge(engine)
    cutoffs = asyncio.run(calibrate(judge, engine.identity))
    assert len(engine.calls) == 20 * (4 + 1) + 20 * (7 + 1) + 5 + 8
    assert {kind: list(cuts) for kind, cuts in cutoffs.cuts.items()} == {
        kind: [*(dimension.name for dimension in DIMENSIONS[kind]), OVERALL] for kind in KINDS
    }
    assert all(request.label_ids for request in engine.calls)
