"""The actor around an engine: outcomes are told as plain tuples, a failed load too, and an idle one ends itself."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from recgpt_ops.errors import EngineError, RowError
from recgpt_ops.llm import engine_actor
from recgpt_ops.llm.engine_actor import EngineActor, engine_environment
from recgpt_ops.llm.fake import FakeEngine
from recgpt_ops.llm.requests import Answer, Request, Sampling
from recgpt_ops.settings import load_settings

SETTINGS = replace(load_settings({}).engine, idle_timeout_seconds=0.05)
REQUEST = Request("expert", "p", (), (1, 2), Sampling(8), choice=("a", "b"))


@pytest.fixture
def exits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Exit codes that the actor asked for; the tests' process stays."""
    exits: list[int] = []
    monkeypatch.setattr(engine_actor, "os", SimpleNamespace(_exit=exits.append))
    return exits


def load_with(engine: Any, failure: str | None = None) -> Callable[[EngineActor, asyncio.AbstractEventLoop], None]:
    """In place of importing and loading vLLM."""

    def load(self: EngineActor, event_loop: asyncio.AbstractEventLoop) -> None:
        self.engine, self.failure = engine, failure
        event_loop.call_soon_threadsafe(self.is_loaded.set)

    return load


def stub(faults: Any = None) -> Any:
    engine: Any = FakeEngine(faults=faults)
    engine.load_seconds = 1.5

    async def check_health() -> None:
        if engine.is_dead:
            raise EngineError("poisoned")

    engine.check_health = check_health
    return engine


def test_outcomes_are_plain_tuples_under_the_request_s_id(monkeypatch: pytest.MonkeyPatch, exits: list[int]) -> None:
    faults = {1: "row_error", 2: "engine_death"}
    monkeypatch.setattr(EngineActor, "load", load_with(stub(lambda request, nth: faults.get(nth))))

    async def run() -> list[Any]:
        actor = EngineActor(SETTINGS, "m", "folder")
        load_id, identity, failure, seconds = await actor.ready()
        assert (len(load_id), identity.model if identity else None, failure, seconds) == (32, "fake", None, 1.5)
        assert await actor.health() is None
        outcomes = [await actor.answer(f"r{n}", REQUEST) for n in range(3)]
        assert await actor.health() == "poisoned"
        return outcomes

    outcomes = asyncio.run(run())
    assert [(each[0], each[1]) for each in outcomes] == [("answer", "r0"), ("row_error", "r1"), ("engine_error", "r2")]
    assert isinstance(outcomes[0][2], Answer)
    assert outcomes[1][2] == "engine_refused"


def test_a_load_that_failed_is_told_to_everybody_who_waits(monkeypatch: pytest.MonkeyPatch, exits: list[int]) -> None:
    monkeypatch.setattr(EngineActor, "load", load_with(None, "no room for the weights"))

    async def run() -> tuple[Any, Any, Any]:
        actor = EngineActor(SETTINGS, "m", "folder")
        return (await actor.ready())[2], await actor.health(), await actor.answer("r0", REQUEST)

    assert asyncio.run(run()) == ("no room for the weights", "no room for the weights", ("engine_error", "r0", "no room for the weights"))


def test_an_engine_that_nobody_asks_ends_itself_and_a_busy_one_does_not(monkeypatch: pytest.MonkeyPatch, exits: list[int]) -> None:
    monkeypatch.setattr(EngineActor, "load", load_with(stub(lambda request, nth: "slow")))  # 0.2 s, four times the idle limit

    async def run() -> None:
        actor = EngineActor(SETTINGS, "m", "folder")
        await actor.answer("r0", REQUEST)
        assert exits == []
        await asyncio.sleep(0.3)
        actor.idle_watch.cancel()

    asyncio.run(run())
    assert exits[:1] == [0]


def test_a_suspect_has_the_engine_for_itself(monkeypatch: pytest.MonkeyPatch, exits: list[int]) -> None:
    engine = stub(lambda request, nth: "slow")
    monkeypatch.setattr(EngineActor, "load", load_with(engine))
    order: list[str] = []

    async def run() -> None:
        actor = EngineActor(SETTINGS, "m", "folder")
        actor.idle_watch.cancel()

        async def ask(name: str) -> None:
            await actor.answer(name, REQUEST)
            order.append(name)

        async def ask_alone() -> None:
            await actor.clear("suspect")
            order.append("cleared")
            await ask("suspect")

        before = asyncio.create_task(ask("before"))
        await asyncio.sleep(0.05)
        alone = asyncio.create_task(ask_alone())
        await asyncio.sleep(0.05)
        await asyncio.gather(before, alone, ask("after"))
        actor.turn_watch.cancel()

    asyncio.run(run())
    assert order == ["before", "cleared", "suspect", "after"]


def test_a_turn_that_nobody_takes_is_over(monkeypatch: pytest.MonkeyPatch, exits: list[int]) -> None:
    monkeypatch.setattr(EngineActor, "load", load_with(stub()))
    monkeypatch.setattr(engine_actor, "TURN_SECONDS", 0.05)

    async def run() -> Any:
        actor = EngineActor(SETTINGS, "m", "folder")
        actor.idle_watch.cancel()
        await actor.clear("gone")
        return await asyncio.wait_for(actor.answer("r0", REQUEST), 5.0)

    assert asyncio.run(run())[0] == "answer"


def test_an_error_of_a_row_crosses_processes_whole() -> None:
    import pickle

    error = pickle.loads(pickle.dumps(RowError("prompt_too_long", "9 tokens")))
    assert (error.reason, error.detail, str(error)) == ("prompt_too_long", "9 tokens", "prompt_too_long: 9 tokens")


def test_the_engine_s_process_is_offline_and_steps_in_itself() -> None:
    environment = engine_environment(replace(SETTINGS, kv_cache_gb=3, threads=2))
    assert environment["VLLM_CPU_KVCACHE_SPACE"] == "3"
    assert (environment["OMP_NUM_THREADS"], environment["OMP_WAIT_POLICY"]) == ("2", "PASSIVE")
    assert environment["VLLM_ENABLE_V1_MULTIPROCESSING"] == "0"
    assert environment["HF_HUB_OFFLINE"] == environment["DO_NOT_TRACK"] == environment["VLLM_NO_USAGE_STATS"] == "1"


def test_the_engine_takes_all_cores_it_may_use_unless_told() -> None:
    assert engine_environment(replace(SETTINGS, threads=None))["OMP_NUM_THREADS"] == str(len(os.sched_getaffinity(0)))
