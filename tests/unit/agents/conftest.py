"""A small tokenizer, a small embedder and users for the agents' tests; no model is loaded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from recgpt_ops.agents.crew import PROMPTS, Crew
from recgpt_ops.agents.rows import Context, Group, Signal
from recgpt_ops.agents.vocabulary import build_vocabulary
from recgpt_ops.ledger.recorder import CallRecorder
from recgpt_ops.llm.fake import FakeEngine
from recgpt_ops.llm.tokenizer import PromptTokenizer, load_tokenizer
from recgpt_ops.recipes import Recipe, load_recipe

CONTROLS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
WORDS = (
    "cheddar", "string cheese", "cream cheese", "goat cheese", "blue cheese", "milk", "oat milk", "yogurt", "butter", "eggs",
    "dog food", "dog treats", "cat food", "cat litter", "candy corn", "chocolate bar", "gummy bears", "pumpkin", "apple cider",
    "frozen pizza", "ice cream", "bagels", "rye bread", "coffee", "green tea", "sparkling water",
)  # fmt: skip

SIGNALS = (
    Signal("season", "autumn", "Season: autumn"),
    Signal("holiday", "Halloween", "Holiday: Halloween (today)"),
    Signal("holiday", "Veterans Day", "Holiday: Veterans Day (in 11 days)"),
    Signal("trend", "candy corn", "Selling more than usual: candy corn (4.0 times the rate of the four weeks before)"),
    Signal("trend", "pumpkin", "Selling more than usual: pumpkin (3.0 times the rate of the four weeks before)"),
)
WEATHER = Signal("weather", "rain", "Weather: rain all day")


class LetterEmbedder:
    """Vectors made of the letter pairs of a text: equal texts are equal, alike texts are near. `asked` notes every text."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        return self.embed(texts)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.asked += texts
        rows = np.zeros((len(texts), 97), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for pair in zip(f" {text}", f"{text} ", strict=True):
                row[int.from_bytes(hashlib.sha256("".join(pair).encode()).digest()[:4], "big") % 97] += 1
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> PromptTokenizer:
    """Byte-level pairs learned from our own prompts, with ChatML's control tokens: counts like a real one, made in a moment."""
    built = Tokenizer(models.BPE())
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=3000, special_tokens=CONTROLS, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    built.train_from_iterator([path.read_text() for path in PROMPTS.glob("*.jinja")] + list(WORDS) * 3, trainer)
    directory = tmp_path_factory.mktemp("tokenizer")
    (directory / "tokenizer.json").write_text(json.dumps(json.loads(built.to_str())))
    return load_tokenizer(directory)


@pytest.fixture
def embedder() -> LetterEmbedder:
    return LetterEmbedder()


def make_context(user_id: str = "u1", *, locale: str = "en-US", **changes: Any) -> Context:
    """A user of four groups and three lines."""
    values: dict[str, Any] = {
        "ds": "2017-10-30",
        "scenario": "default",
        "method": "v2",
        "user_id": user_id,
        "locale": locale,
        "text": (
            f"Today: Tuesday\nAbout the user: age 35-44\n1. Oct 28 bought | cheddar; milk [{user_id}]\n2. Oct 20 bought | dog food\n"
            "3. Aug 2017 bought | candy corn"
        ),
        "line_ids": (1, 2, 3),
        "attributes": (("age", "35-44"), ("household", "2 adults")),
        "signals": tuple(signal.text for signal in SIGNALS),
        "groups": (
            Group("cheese", 12, ("cheddar", "cream cheese"), (1,)),
            Group("pets", 5, ("dog food",), (2,)),
            Group("sweets", 4, ("candy corn",), (3,)),
            Group("drinks", 1, ("coffee",), (1,)),
        ),
        "recent_item_types": ("Cheddar", "dog food"),
        "line_titles": ((1, "cheddar"), (2, "dog food"), (3, "candy corn")),
    }
    return Context(**(values | changes))


@pytest.fixture
def make_crew(tmp_path: Path, tokenizer: PromptTokenizer, embedder: LetterEmbedder) -> Callable[..., Crew]:
    """A crew around a fake engine: make_crew(engine, recipe="v2" or a recipe)."""

    def make(engine: FakeEngine, recipe: str | Recipe = "v2", *, max_in_flight: int = 16) -> Crew:
        chosen = load_recipe(recipe) if isinstance(recipe, str) else recipe
        recorder = CallRecorder(
            engine, ledger_root=tmp_path / "ledger", ds="2017-10-30", scenario="default", method=chosen.name, stage="intents",
            shard="0000-1023", attempt=1, max_in_flight=max_in_flight, flush_count=64, flush_seconds=2.0,
        )  # fmt: skip
        vocabulary = build_vocabulary(WORDS, embedder) if chosen.vocabulary == "closed" else None
        known = {(locale, signal.text): signal for locale in ("en-US", "zh-CN") for signal in (*SIGNALS, WEATHER)}
        return Crew(chosen, tokenizer, embedder, recorder, vocabulary, signals=known)

    return make
