"""A small tokenizer, items, wanted texts and a desk around a fake engine; no model is loaded."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from recgpt_ops.explanations.desk import PROMPTS, Desk
from recgpt_ops.explanations.rows import ItemText, Wanted, explanation_id
from recgpt_ops.ids import tag_id, text_hash
from recgpt_ops.ledger.summaries import CallLimits, open_recorder
from recgpt_ops.llm.fake import FakeEngine
from recgpt_ops.llm.tokenizer import PromptTokenizer, load_tokenizer
from recgpt_ops.recipes import Recipe, load_recipe

CONTROLS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
LIMITS = CallLimits(16, 64, 2.0)


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> PromptTokenizer:
    """Byte-level pairs learned from our own prompts, with ChatML's control tokens."""
    built = Tokenizer(models.BPE())
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=2000, special_tokens=CONTROLS, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    built.train_from_iterator([path.read_text() for path in sorted(PROMPTS.glob("*.jinja"))], trainer)
    directory = tmp_path_factory.mktemp("tokenizer")
    (directory / "tokenizer.json").write_text(json.dumps(json.loads(built.to_str())))
    return load_tokenizer(directory)


def make_item(title: str = "Candy bars (multi pack), national brand", **parts: str) -> ItemText:
    """An item of the sweets shelf unless a test says otherwise."""
    return ItemText(text_hash(title), title, **({"category": "Candy - packaged", "item_type": "Candy bars (multi pack)"} | parts))


def make_wanted(tag: str = "Candy bars", item: ItemText | None = None, **changes: Any) -> Wanted:
    """An explanation wanted on Halloween."""
    item = item or make_item()
    locale = changes.get("locale", "en-US")
    values: dict[str, Any] = {
        "explanation_id": explanation_id(tag_id(locale, tag), item.text_hash, "s1", locale), "tag_id": tag_id(locale, tag), "tag": tag,
        "item": item, "situation_id": "s1", "situation": "autumn, Halloween", "season": "autumn", "holiday": "Halloween",
        "month_day": (10, 31), "locale": locale,
    }  # fmt: skip
    return Wanted(**(values | changes))


def make_chinese(title: str = "混合坚果礼盒", tag: str = "坚果零食", **changes: Any) -> Wanted:
    """The same in Chinese."""
    item = make_item(title, category="零食", item_type="坚果")
    return make_wanted(tag, item, **({"locale": "zh-CN", "situation": "秋季，万圣节"} | changes))


@pytest.fixture
def make_desk(tmp_path: Path, tokenizer: PromptTokenizer) -> Callable[..., Desk]:
    """make_desk(engine, recipe="v2", brands=frozenset())."""

    def make(engine: FakeEngine, recipe: str | Recipe = "v2", *, brands: frozenset[str] = frozenset()) -> Desk:
        chosen = load_recipe(recipe) if isinstance(recipe, str) else recipe
        recorder = open_recorder(
            engine, root=tmp_path / "ledger", ds="2017-10-30", scenario="default", method=chosen.name, stage="explanations",
            shard="0000-1023", attempt=1, limits=LIMITS,
        )  # fmt: skip
        return Desk(chosen, tokenizer, recorder, brands=brands)

    return make
