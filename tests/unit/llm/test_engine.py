"""The settings choose the engine; the key comes from the variable that they name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from recgpt_ops.llm.engine import connect_engine, engine_tokenizer
from recgpt_ops.llm.fake import FakeEngine
from recgpt_ops.llm.http_engine import HttpEngine
from recgpt_ops.settings import Settings, load_settings


def settings(**engine: Any) -> Settings:
    known = load_settings({})
    return replace(known, engine=replace(known.engine, **engine))


def tokenizer_folder(root: Path) -> Path:
    tokens = [{"id": n, "content": token, "special": True} for n, token in enumerate(("<|im_start|>", "<|im_end|>"))]
    model = {"type": "BPE", "vocab": {"<|im_start|>": 0, "<|im_end|>": 1}, "merges": []}
    (root / "tokenizer.json").write_text(json.dumps({"version": "1.0", "added_tokens": tokens, "model": model}))
    (root / "config.json").write_text("{}")
    (root / "model.safetensors").write_text("")
    return root


def test_the_fake_engine_needs_no_model(tmp_path: Path) -> None:
    assert isinstance(connect_engine(settings(kind="fake"), str(tmp_path)), FakeEngine)


def test_an_address_is_asked_once_with_the_key_of_the_named_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, dict[str, str]]] = []

    def get(url: str, *, headers: dict[str, str], timeout: float) -> httpx.Response:
        asked.append((url, headers))
        return httpx.Response(200, json={"data": [{"id": "served-name", "owned_by": "vllm"}]})

    monkeypatch.setattr(httpx, "get", get)
    monkeypatch.setenv("MY_KEY", "sk-1")
    chosen = settings(
        kind="openai",
        model="served-name",
        tokenizer=str(tokenizer_folder(tmp_path)),
        base_url="http://llm:8000/v1/",
        api_key_variable="MY_KEY",
    )
    engine = connect_engine(chosen, str(tmp_path))
    assert isinstance(engine, HttpEngine)
    assert asked == [("http://llm:8000/v1/models", {"Authorization": "Bearer sk-1"})]
    assert engine.takes_token_ids
    assert engine.identity.tokenizer_hash == engine_tokenizer(chosen, str(tmp_path)).tokenizer_hash
    assert "sk-1" not in repr(engine.identity)
