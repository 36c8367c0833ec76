"""How a job lives with an engine that dies. The engine and Ray are stubs here; the real ones are in flow/test_real_engine.py."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ray.exceptions import ActorDiedError

from recgpt_ops.errors import EngineError, RowError
from recgpt_ops.llm import ray_engine
from recgpt_ops.llm.fake import FakeEngine
from recgpt_ops.llm.ray_engine import RayEngine, engine_name, engine_namespace
from recgpt_ops.llm.requests import Request, Sampling
from recgpt_ops.settings import load_settings

SETTINGS = replace(load_settings({}).engine, call_timeout_seconds=0.1)


class StubActor:
    """Stands for the actor's handle: `answer.remote(id, request)` gives a coroutine, as an ObjectRef can be awaited."""

    def __init__(
        self, *, poison: int | None = None, ends_process: bool = False, wrong_id: bool = False, slow_seconds: float = 0.0,
        slow: int | None = None, dies_before_turn: bool = False,
    ) -> None:  # fmt: skip
        self.engine = FakeEngine()
        self.poison, self.ends_process, self.wrong_id = poison, ends_process, wrong_id
        self.slow_seconds, self.slow, self.dies_before_turn = slow_seconds, slow, dies_before_turn
        self.is_dead = False
        self.most_at_once = self.at_once = 0
        self.answer = SimpleNamespace(remote=self.answer_one)
        self.health = SimpleNamespace(remote=self.tell_health)
        self.clear = SimpleNamespace(remote=self.clear_for)

    async def answer_one(self, request_id: str, request: Request) -> tuple[Any, ...]:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(0.01)
            if request.token_ids[0] == self.poison:
                self.is_dead = True
            if self.is_dead and self.ends_process:
                raise ActorDiedError()
            if self.is_dead:
                return ("engine_error", request_id, "died in a step")
            if self.slow in (None, request.token_ids[0]):
                await asyncio.sleep(self.slow_seconds)
            if request.token_ids[0] == 13:
                return ("row_error", request_id, "engine_refused", "unlucky")
            return ("answer", "r-other" if self.wrong_id else request_id, await self.engine.answer(request))
        finally:
            self.at_once -= 1

    async def clear_for(self, request_id: str) -> None:
        if self.dies_before_turn:
            raise ActorDiedError()

    async def tell_health(self) -> str | None:
        return "died in a step" if self.is_dead else None


def request(n: int) -> Request:
    return Request("expert", "p", (), (n, n), Sampling(8), choice=("a", "b"))


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    killed: list[Any] = []
    monkeypatch.setattr(ray_engine.ray, "kill", killed.append)
    return killed


def connected(*actors: StubActor) -> RayEngine:
    """An engine on the first actor; each replacement takes the next."""
    engine = RayEngine(SETTINGS, namespace="ns", name="n", identity=FakeEngine().identity, folder=Path())
    rest = list(actors)

    def start(**_: Any) -> None:
        if not rest:
            raise EngineError("did not start")
        engine.actor = rest.pop(0)
        engine.generation += 1
        engine.loads += 1

    engine.start = start  # type: ignore[method-assign]  # Ray itself is in flow/test_real_engine.py
    return engine


def ask(engine: RayEngine, *numbers: int) -> list[Any]:
    async def run() -> list[Any]:
        return await asyncio.gather(*(engine.answer(request(n)) for n in numbers), return_exceptions=True)

    return asyncio.run(run())


def texts(*numbers: int) -> list[str]:
    return [asyncio.run(FakeEngine().answer(request(n))).text for n in numbers]


@pytest.mark.parametrize("ends_process", [False, True])
def test_case_004_an_engine_that_dies_once_is_replaced_and_everybody_gets_an_answer(killed: list[Any], ends_process: bool) -> None:
    first, second = StubActor(poison=5, ends_process=ends_process), StubActor()
    engine = connected(first, second)
    engine.start()
    outcome = ask(engine, *range(1, 9))
    assert [each.text for each in outcome] == texts(*range(1, 9))
    assert engine.loads == 2
    assert killed == [first]
    assert second.most_at_once == 1  # the suspects go one at a time


def test_the_request_that_kills_engines_is_that_row_s_error_and_the_others_get_answers(killed: list[Any]) -> None:
    engine = connected(StubActor(poison=5), StubActor(poison=5), StubActor(poison=5))
    outcome = ask(engine, *range(1, 9))
    assert [type(each) for each in outcome].count(RowError) == 1
    assert outcome[4].reason == "poison"
    assert engine.loads == 3
    assert len(killed) == 2


def test_after_the_suspects_requests_go_side_by_side_again(killed: list[Any]) -> None:
    second = StubActor()
    engine = connected(StubActor(poison=1), second)

    async def run() -> None:
        await engine.answer(request(1))
        await asyncio.gather(*(engine.answer(request(n)) for n in range(2, 8)))

    asyncio.run(run())
    assert second.most_at_once == 6


def test_an_engine_that_cannot_be_replaced_ends_the_job(killed: list[Any]) -> None:
    engine = connected(StubActor(poison=1))
    engine.start()
    outcome = ask(engine, 1, 2)
    assert [type(each) for each in outcome] == [EngineError, EngineError]
    assert "could not be replaced" in str(outcome[0])


def test_a_row_s_error_stays_a_row_s_error(killed: list[Any]) -> None:
    outcome = ask(connected(StubActor()), 12, 13)
    assert outcome[1].reason == "engine_refused"
    assert killed == []


def test_case_003_an_answer_under_another_id_is_never_taken(killed: list[Any]) -> None:
    outcome = ask(connected(StubActor(wrong_id=True)), 1)
    assert isinstance(outcome[0], EngineError)
    assert "got the answer of r-other" in str(outcome[0])


def test_a_call_without_an_answer_is_the_row_s_error_while_the_engine_is_healthy(killed: list[Any]) -> None:
    outcome = ask(connected(StubActor(slow_seconds=10.0)), 1)
    assert outcome[0].reason == "timeout"
    assert killed == []


def test_a_row_that_hangs_is_ended_by_its_watchdog_while_the_others_go_on(killed: list[Any]) -> None:
    outcome = ask(connected(StubActor(slow=2, slow_seconds=10.0)), 1, 2, 3)
    assert outcome[1].reason == "timeout"
    assert [outcome[0].text, outcome[2].text] == texts(1, 3)
    assert killed == []


def test_an_engine_that_dies_before_a_suspect_has_its_turn_died_of_another_one(killed: list[Any]) -> None:
    """Two shards share an engine: the suspect of one must not be blamed for the death that the other's caused."""
    engine = connected(StubActor(poison=1), StubActor(dies_before_turn=True), StubActor())
    assert ask(engine, 1)[0].text == texts(1)[0]
    assert engine.loads == 3


def test_many_rows_that_kill_engines_are_isolated_one_by_one(killed: list[Any]) -> None:
    class Poisoned(StubActor):
        async def answer_one(self, request_id: str, request: Request) -> tuple[Any, ...]:
            self.poison = request.token_ids[0] if request.token_ids[0] % 2 else None
            return await super().answer_one(request_id, request)

    engine = connected(*(Poisoned() for _ in range(12)))

    async def one_after_the_other() -> list[Any]:
        return [(await asyncio.gather(engine.answer(request(n)), return_exceptions=True))[0] for n in range(1, 7)]

    outcome = asyncio.run(one_after_the_other())
    assert [each.reason for each in outcome[::2]] == ["poison"] * 3
    assert [each.text for each in outcome[1::2]] == texts(2, 4, 6)
    assert engine.loads == 7  # two more a row; answers in between show that the engine is worth it


def test_a_slow_call_is_waited_for_while_the_engine_is_healthy(killed: list[Any]) -> None:
    outcome = ask(connected(StubActor(slow_seconds=0.25)), 1)  # two looks at the engine
    assert outcome[0].text == texts(1)[0]
    assert killed == []


def test_an_engine_is_started_by_its_first_request_once_and_not_before(killed: list[Any]) -> None:
    engine = connected(StubActor())
    assert (engine.loads, engine.identity.model) == (0, "fake")  # the ledger can be asked without an engine
    ask(engine, 1, 2, 3)
    assert engine.loads == 1


def test_names_follow_model_build_settings_warehouse_and_run() -> None:
    identity = FakeEngine().identity
    name = engine_name(SETTINGS, identity)
    assert name == engine_name(SETTINGS, identity)
    assert name != engine_name(replace(SETTINGS, dtype="bfloat16"), identity)
    assert name != engine_name(SETTINGS, replace(identity, model_hash="other weights"))
    assert name != engine_name(SETTINGS, replace(identity, build="vllm 0.33.0"))
    assert len({engine_namespace("a", "p1"), engine_namespace("a", "p2"), engine_namespace("b", "p1")}) == 3
    assert engine_namespace("a", "p1") == engine_namespace("./a/", "p1")
