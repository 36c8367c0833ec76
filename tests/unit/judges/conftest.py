"""A small tokenizer, a judge around a fake engine, a user and a few texts; no model is loaded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from recgpt_ops.judges.cutoffs import Cut, Cutoffs, basis_digest
from recgpt_ops.judges.dimensions import DIMENSIONS, KINDS, LEVELS, OVERALL
from recgpt_ops.judges.judge import PROMPTS, Judge, Subject
from recgpt_ops.judges.subjects import explanation_subject, tag_subject, user_context
from recgpt_ops.judges.verdicts import Verdict, judge_subject
from recgpt_ops.ledger.summaries import CallLimits, open_recorder
from recgpt_ops.llm.fake import FakeEngine
from recgpt_ops.llm.tokenizer import PromptTokenizer, load_tokenizer
from recgpt_ops.settings import Settings, load_settings

CONTROLS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
LIMITS = CallLimits(16, 64, 2.0)
USER: dict[str, Any] = {
    "user_id": "u1",
    "locale": "en-US",
    "attributes": [{"name": "age", "value": "45-54"}, {"name": "household", "value": "2 adults no kids"}],
    "signals": ["Season: autumn", "Holiday: Halloween (today)"],
    "lines": [
        {"line_id": 1, "text": "Oct 30, Oct 16 (bought) | Dry dog food, 15 lb; Dog biscuits, 5 lb"},
        {"line_id": 2, "text": "Oct 24 (bought) | Cheddar cheese, 8 oz"},
    ],
}
TEXT: dict[str, Any] = {
    "explanation_id": "e1",
    "locale": "en-US",
    "tag": "dog treats",
    "item_text": "Dog biscuits, 5 lb",
    "situation": "Season: autumn",
    "text": "Crunchy biscuits your dog will beg for",
}


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> PromptTokenizer:
    """Byte-level pairs learned from our own prompts and rubrics, with ChatML's control tokens."""
    built = Tokenizer(models.BPE())
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=3000, special_tokens=CONTROLS, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    rubrics = [text for kind in KINDS for dimension in DIMENSIONS[kind] for text in (dimension.english, dimension.chinese)]
    labels = [f" {label}" for label in (*LEVELS, "S", "A", "B")]
    built.train_from_iterator([path.read_text() for path in sorted(PROMPTS.glob("*.jinja"))] + rubrics * 3 + labels * 9, trainer)
    directory = tmp_path_factory.mktemp("tokenizer")
    (directory / "tokenizer.json").write_text(json.dumps(json.loads(built.to_str())))
    return load_tokenizer(directory)


@pytest.fixture
def make_judge(tmp_path: Path, tokenizer: PromptTokenizer) -> Callable[..., Judge]:
    """A judge around an engine: make_judge(engine, attempt=1)."""

    def make(engine: FakeEngine, *, attempt: int = 1) -> Judge:
        calls = open_recorder(
            engine, root=tmp_path / "ledger", ds="2017-10-30", scenario="default", method="v2", stage="tag_verdicts",
            shard="0000-1023", attempt=attempt, limits=LIMITS,
        )  # fmt: skip
        return Judge(tokenizer, calls, basis=basis_digest())

    return make


def settings(**variables: str) -> Settings:
    """Local settings; judging's own as keywords: settings(level_from="generation")."""
    return load_settings({f"RECGPT_JUDGING__{name.upper()}": value for name, value in variables.items()})


def flat_cutoffs(low: float = -1.0, high: float = 1.0) -> Cutoffs:
    """The same two cuts everywhere."""
    names = {kind: [*(dimension.name for dimension in DIMENSIONS[kind]), OVERALL] for kind in KINDS}
    cuts = {kind: {name: Cut(low, high, 1.0, 1.0, 1.0) for name in names[kind]} for kind in KINDS}
    return Cutoffs("fake", "hash", basis_digest(), cuts)


def make_tag(judge: Judge, tag: str = "orthopedic dog bed", **changes: Any) -> Subject:
    """A tag of the user."""
    user = USER | changes
    row = {"user_id": user["user_id"], "tag_id": tag, "tag": tag}
    return tag_subject(row, locale=user["locale"], context=user_context(user, judge), judge=judge)


def make_text(judge: Judge, **changes: Any) -> Subject:
    """An explanation."""
    return explanation_subject(TEXT | changes, judge)


def decide(judge: Judge, subject: Subject, method: str = "panel", *, cutoffs: Cutoffs | None = None, **variables: str) -> Verdict:
    """The verdict of one judge method; levels are written where no cut-offs are given."""

    async def run() -> Verdict:
        return await judge_subject(subject, method, judge, judging=settings(**variables).judging, cutoffs=cutoffs)

    return asyncio.run(run())
