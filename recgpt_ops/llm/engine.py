"""The engine that the settings name, ready to answer. Heavy imports happen only for the kind that is wanted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from recgpt_ops.llm.fake import FakeEngine
from recgpt_ops.llm.http_engine import HttpEngine
from recgpt_ops.llm.models import model_directory, models_root
from recgpt_ops.llm.requests import Engine
from recgpt_ops.llm.tokenizer import PromptTokenizer, load_tokenizer
from recgpt_ops.settings import Settings, read_secret


def connect_engine(
    settings: Settings, warehouse_root: str, *, run: str = "night", preload: bool = False, progress: Callable[[float], None] | None = None
) -> Engine:
    """The engine of `settings.engine`; for vllm the one of this warehouse and `run`, loaded for the first request if nobody has loaded it.

    Called in a process that is connected to Ray where the kind is vllm. `run` is the publish_id of the night, so that all of
    its jobs share one engine. `preload` lets the load begin now, beside what else has to be loaded, where calls are sure to come
    (`ledger.has_answers` is False). `progress` is told the seconds waited, about once a second, while a model is loaded.
    """
    chosen = settings.engine
    if chosen.kind == "fake":
        return FakeEngine()
    if chosen.kind == "openai":
        http = HttpEngine(
            chosen, tokenizer_hash=engine_tokenizer(settings, warehouse_root).tokenizer_hash, api_key=read_secret(chosen.api_key_variable)
        )
        http.start()
        return http
    from recgpt_ops.llm.ray_engine import connect_ray_engine, engine_namespace

    namespace = engine_namespace(warehouse_root, run)
    engine = connect_ray_engine(chosen, models_root=models_root(warehouse_root), namespace=namespace, progress=progress)
    if preload:
        engine.preload()
    return engine


def tokenizer_directory(settings: Settings, warehouse_root: str) -> Path:
    """The folder whose tokenizer.json counts and encodes prompts: `engine.tokenizer`, else the model's own."""
    return model_directory(settings.engine.tokenizer or settings.engine.model, models_root=models_root(warehouse_root))


def engine_tokenizer(settings: Settings, warehouse_root: str) -> PromptTokenizer:
    """The tokenizer that encodes prompts for the engine of the settings."""
    return load_tokenizer(tokenizer_directory(settings, warehouse_root))
