"""The judges on the real small model, loaded in this process: labels as the model itself scores them, shipped cut-offs, honest figures."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from recgpt_ops.judges.calibration import load_pairs, pair_scores, pair_subject
from recgpt_ops.judges.cutoffs import SHIPPED, Cutoffs, basis_digest, load_cutoffs
from recgpt_ops.judges.dimensions import DIMENSIONS, KINDS, LEVELS, Kind
from recgpt_ops.judges.judge import PROMPT_TOKENS, Judge
from recgpt_ops.judges.verdicts import judge_subject
from recgpt_ops.ledger.summaries import CallLimits, open_recorder
from recgpt_ops.llm.requests import Request, Sampling
from recgpt_ops.prompts import Message, Segment
from recgpt_ops.settings import load_settings
from tests.flow.conftest import SmallModel

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def cutoffs(small_model: SmallModel) -> Cutoffs:
    """The cut-offs that are shipped for the demo's model."""
    identity = small_model.engine.identity
    return load_cutoffs(model=identity.model, model_hash=identity.model_hash, directories=(SHIPPED,))


def make_judge(small_model: SmallModel, root: Path) -> Judge:
    calls = open_recorder(
        small_model.engine, root=root, ds="2017-10-30", scenario="default", method="v2", stage="judges", shard="shared", attempt=1,
        limits=CallLimits(16, 64, 2.0),
    )  # fmt: skip
    return Judge(small_model.tokenizer, calls, basis=basis_digest())


def test_labels_are_scored_as_the_model_itself_scores_them_beside_other_forms_in_one_batch(small_model: SmallModel) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    messages = (Message("user", (Segment("Is milk good or bad?", False),)), Message("assistant", (Segment("It is", False),)))
    ids = small_model.tokenizer.encode(messages)
    labels = tuple(small_model.tokenizer.encode_data(label)[0] for label in (" good", " bad", " neutral"))
    asked = Request("test", "prompt", messages, ids, Sampling(1), label_ids=labels)
    forced = Request("test", "prompt", messages, ids, Sampling(1), forced_ids=labels[:2])
    plain = Request("test", "prompt", messages, ids, Sampling(4))

    async def run() -> list[Any]:
        return await asyncio.gather(*map(small_model.engine.answer, (asked, forced, plain, replace(asked, label_ids=labels[::-1]))))

    answer, scored, written, turned = asyncio.run(run())
    model = AutoModelForCausalLM.from_pretrained(small_model.folder, dtype=torch.float32)
    with torch.no_grad():
        expected = model(torch.tensor([ids])).logits[0, -1].log_softmax(-1)
    assert answer.logprobs == pytest.approx([float(expected[id_]) for id_ in labels], abs=1e-3)
    assert turned.logprobs == pytest.approx(answer.logprobs[::-1], abs=1e-3)
    assert scored.logprobs[0] == pytest.approx(answer.logprobs[0], abs=1e-3)
    assert (answer.completion_tokens, written.logprobs) == (1, None)


@pytest.mark.parametrize(("kind", "name"), [("tag", "specificity"), ("explanation", "safety")])
def test_the_shipped_cut_offs_come_out_again(small_model: SmallModel, cutoffs: Cutoffs, tmp_path: Path, kind: Kind, name: str) -> None:
    from recgpt_ops.judges.calibration import find_cut

    judge = make_judge(small_model, tmp_path)
    pairs = load_pairs(kind)
    [dimension] = [dimension for dimension in DIMENSIONS[kind] if dimension.name == name]
    scores = asyncio.run(pair_scores([pair_subject(kind, pair, judge) for pair in pairs], dimension, judge))
    found, shipped = find_cut(scores, [LEVELS.index(pair["levels"][name]) for pair in pairs]), cutoffs.of(kind, name)
    assert (found.low, found.high) == pytest.approx((shipped.low, shipped.high), abs=0.01)
    assert found.balanced_ratio == pytest.approx(shipped.balanced_ratio, abs=0.01)
    assert len({shipped.place(score) for score in scores}) > 1  # it does not always say the same


def test_prompts_are_short_mostly_cached_and_the_panel_does_not_always_say_positive(
    small_model: SmallModel, cutoffs: Cutoffs, tmp_path: Path
) -> None:
    judge = make_judge(small_model, tmp_path)
    subjects = [pair_subject(kind, pair, judge) for kind in KINDS for pair in load_pairs(kind)[:8]]
    judging = load_settings({}).judging

    async def run() -> list[Any]:
        return [await judge_subject(subject, "panel", judge, judging=judging, cutoffs=cutoffs) for subject in subjects]

    verdicts = asyncio.run(run())
    rows = list(judge.asker.calls.call_rows)
    assert max(row["prompt_tokens"] for row in rows) <= PROMPT_TOKENS
    assert sum(row["computed_tokens"] for row in rows) / len(rows) <= 130
    levels = [level for verdict in verdicts for level in verdict.levels]
    assert all(math.isfinite(level.score) for level in levels)
    shares = {name: sum(level.level == name for level in levels) / len(levels) for name in LEVELS}
    assert shares["negative"] > 0.05, shares
    assert shares["positive"] > 0.05, shares


def test_in_sample_the_panel_agrees_better_than_chance_and_left_out_the_figures_say_how_weak_it_is(cutoffs: Cutoffs) -> None:
    """A 135M model does not judge; the pipeline around it is what is shown here. A larger model is calibrated by the same command."""
    cuts = [cut for by_name in cutoffs.cuts.values() for cut in by_name.values()]
    in_sample = sum(cut.balanced_ratio for cut in cuts) / len(cuts)
    left_out = sum(cut.left_out_ratio for cut in cuts) / len(cuts)
    assert in_sample > 0.45
    assert left_out < in_sample
