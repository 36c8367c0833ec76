"""The thread that steps an engine joins answers by id, and tells a refused request from a dead engine."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from recgpt_ops.errors import EngineError, RowError
from recgpt_ops.llm.step_loop import StepLoop


class StubEngine:
    """Answers each prompt with itself in capitals, one step later; `spoil` changes what a step gives."""

    def __init__(self, spoil: Any = None) -> None:
        self.waiting: dict[str, str] = {}
        self.aborted: list[str] = []
        self.spoil = spoil or (lambda outputs: outputs)
        self.may_step = threading.Event()
        self.may_step.set()

    def add_request(self, request_id: str, prompt: str, params: Any) -> str:
        if prompt == "bad":
            raise ValueError("a bad prompt")
        if prompt == "crash":
            raise MemoryError("no room")
        self.waiting[request_id] = prompt
        return request_id

    def step(self) -> Sequence[Any]:
        self.may_step.wait(5)
        outputs = [output(id_, prompt.upper()) for id_, prompt in self.waiting.items()]
        self.waiting.clear()
        return self.spoil(outputs)

    def has_unfinished_requests(self) -> bool:
        return bool(self.waiting)

    def abort_request(self, request_ids: list[str]) -> None:
        self.aborted += request_ids
        for id_ in request_ids:
            self.waiting.pop(id_, None)


def output(request_id: str, text: str, *, answers: int = 1, finished: bool = True) -> Any:
    return SimpleNamespace(request_id=request_id, finished=finished, outputs=[SimpleNamespace(text=text)] * answers)


def start(spoil: Any = None) -> tuple[StubEngine, StepLoop]:
    engine = StubEngine(spoil)
    return engine, StepLoop(engine, request_errors=(ValueError,))


def submit_together(engine: StubEngine, loop: StepLoop, *prompts: str) -> list[Any]:
    """Futures of prompts that the engine sees in one step."""
    engine.may_step.clear()
    futures = [loop.submit(prompt, None) for prompt in prompts]
    while not loop.dead and len(engine.waiting) < sum(prompt not in ("bad", "crash") for prompt in prompts):
        threading.Event().wait(0.005)
    engine.may_step.set()
    return futures


def text_of(future: Any) -> str:
    return str(future.result(timeout=5).outputs[0].text)


def test_case_003_answers_out_of_order_reach_the_request_of_their_id() -> None:
    engine, loop = start(lambda outputs: outputs[::-1])
    assert [text_of(future) for future in submit_together(engine, loop, "a", "b", "c")] == ["A", "B", "C"]
    assert loop.dead is None


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda outputs: [*outputs, output("r99", "X")], "'r99', which waits for none"),
        (lambda outputs: [*outputs, outputs[0]], "which waits for none"),
        (lambda outputs: outputs[1:], "1 requests got no answer"),
        (lambda outputs: [output(each.request_id, "X", answers=2) for each in outputs], "2 answers came"),
    ],
)
def test_case_003_one_answer_too_many_or_too_few_ends_the_engine_and_shifts_nothing(spoil: Any, message: str) -> None:
    engine, loop = start(spoil)
    futures = submit_together(engine, loop, "a", "b", "c")
    errors = [future.exception(timeout=5) for future in futures]
    assert any(isinstance(error, EngineError) for error in errors) or loop.dead
    loop.thread.join(5)
    assert message in str(loop.dead)
    for prompt, future in zip("abc", futures, strict=True):
        if future.exception() is None:
            assert text_of(future) == prompt.upper()
    with pytest.raises(EngineError):
        loop.submit("d", None).result(timeout=5)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_case_002_a_refused_request_costs_itself(place: int) -> None:
    engine, loop = start()
    prompts = ["a", "b"]
    prompts.insert(place, "bad")
    futures = submit_together(engine, loop, *prompts)
    for prompt, future in zip(prompts, futures, strict=True):
        if prompt == "bad":
            error = future.exception(timeout=5)
            assert isinstance(error, RowError)
            assert error.reason == "engine_refused"
        else:
            assert text_of(future) == prompt.upper()


def test_an_error_out_of_a_step_is_a_dead_engine_for_everybody() -> None:
    def explode(outputs: Any) -> Any:
        raise RuntimeError("CPU Generator does not use offset")

    engine, loop = start(explode)
    for future in submit_together(engine, loop, "a", "b"):
        with pytest.raises(EngineError, match="RuntimeError: CPU Generator"):
            future.result(timeout=5)
    with pytest.raises(EngineError, match="CPU Generator"):
        loop.submit("c", None).result(timeout=5)


def test_any_other_error_of_taking_in_is_a_dead_engine_too() -> None:
    _, loop = start()
    with pytest.raises(EngineError, match="MemoryError"):
        loop.submit("crash", None).result(timeout=5)


def test_a_request_that_nobody_waits_for_is_taken_out_of_the_engine() -> None:
    engine, loop = start(lambda outputs: [output(each.request_id, "", finished=False) for each in outputs])
    engine.may_step.clear()
    future = loop.submit("a", None)
    while not engine.waiting:
        threading.Event().wait(0.005)
    assert future.cancel()
    engine.spoil = lambda outputs: []
    engine.waiting.setdefault("r0", "a")
    engine.may_step.set()
    for _ in range(200):
        if engine.aborted:
            break
        threading.Event().wait(0.01)
        loop.submissions.put(None)
    loop.thread.join(5)
    assert loop.dead is not None


def test_stopping_tells_those_who_wait() -> None:
    engine, loop = start(lambda outputs: [])
    engine.may_step.clear()
    future = loop.submit("a", None)
    loop.submissions.put(None)
    engine.may_step.set()
    with pytest.raises(EngineError):
        future.result(timeout=5)
