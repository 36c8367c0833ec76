"""The demo's model, loaded once in this process for every test that asks it without Ray."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from recgpt_ops.llm.engine_actor import engine_environment
from recgpt_ops.llm.models import model_directory, models_root
from recgpt_ops.llm.tokenizer import PromptTokenizer, load_tokenizer
from recgpt_ops.settings import load_settings


class SmallModel(NamedTuple):
    """A loaded engine and what belongs to it."""

    engine: Any
    tokenizer: PromptTokenizer
    folder: Path


@pytest.fixture(scope="session")
def small_model() -> Iterator[SmallModel]:
    """The model of the settings. One load, half a minute and more, serves all of these tests."""
    known = load_settings()
    settings = replace(known.engine, kv_cache_gb=1)
    folder = model_directory(settings.model, models_root=models_root(known.warehouse))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in engine_environment(settings).items():
            patch.setitem(os.environ, name, value)
        from recgpt_ops.llm.vllm_engine import VllmEngine  # reads these variables when it is imported

        engine = VllmEngine(settings, name=settings.model, folder=folder)
        yield SmallModel(engine, load_tokenizer(folder), folder)
        engine.stop()
