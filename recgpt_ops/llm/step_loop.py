"""Drives a stepping engine (vLLM's LLMEngine) from one thread, and gives each request the answer that carries its id.

The engine is not safe to touch from two threads, so everything goes through a queue. Two kinds of failure are kept apart:
what `add_request` refuses costs that request (002); what goes wrong inside `step` means that the engine is dead, for
everyone, for good (vLLM leaves requests behind after such an error, and the next step may hang).
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

from recgpt_ops.errors import EngineError, RowError


class StepEngine(Protocol):
    """The part of vLLM's LLMEngine that is used here."""

    def add_request(self, request_id: str, prompt: Any, params: Any) -> str:
        """Checks a request and takes it in."""

    def step(self) -> Sequence[Any]:
        """One forward pass; outputs have `request_id`, `finished` and `outputs`."""

    def has_unfinished_requests(self) -> bool:
        """Whether another step is needed."""

    def abort_request(self, request_ids: list[str]) -> None:
        """Forgets requests that nobody waits for any more."""


class Submission(NamedTuple):
    """A request on its way to the engine."""

    request_id: str
    prompt: Any
    params: Any
    future: Future[Any]


class StepLoop:
    """One engine and its thread. `dead` says why it can answer no more; None while it can."""

    def __init__(self, engine: StepEngine, *, request_errors: tuple[type[Exception], ...]) -> None:
        """`request_errors`: what `add_request` raises when it refuses one request."""
        self.engine, self.request_errors = engine, request_errors
        self.submissions: queue.Queue[Submission | None] = queue.Queue()
        self.pending: dict[str, Future[Any]] = {}
        self.dead: str | None = None
        self.numbers = itertools.count()
        self.thread = threading.Thread(target=self.run, name="engine-steps", daemon=True)
        self.thread.start()

    def submit(self, prompt: Any, params: Any) -> Future[Any]:
        """The finished output to come; its exception is RowError or EngineError. Cancel it to give the request up."""
        future: Future[Any] = Future()
        self.submissions.put(Submission(f"r{next(self.numbers)}", prompt, params, future))
        if self.dead is not None:  # nobody empties the queue any more; looked at after the put, so that no request slips in between
            self.refuse_submissions(self.dead)
        return future

    def stop(self) -> None:
        """Ends the thread; what still waits gets an EngineError."""
        self.submissions.put(None)
        self.thread.join(timeout=30)

    def run(self) -> None:
        """The thread: takes in what waits, steps, delivers; until stopped or dead."""
        try:
            while self.take_in():
                self.give_up_canceled()
                if self.engine.has_unfinished_requests():
                    self.deliver(self.engine.step())
                elif self.pending:
                    raise EngineError(f"{len(self.pending)} requests got no answer, though the engine has none left; rows would be lost")
            self.end("the engine was stopped")
        except Exception as error:  # an edge: whatever comes out of a step means the same, a dead engine
            self.end(f"engine died in a step: {type(error).__name__}: {error}")

    def take_in(self) -> bool:
        """Adds what was submitted; waits for something when there is nothing to step for. False: stop."""
        is_idle = not self.pending
        while True:
            try:
                submission = self.submissions.get(block=is_idle)
            except queue.Empty:
                return True
            if submission is None:
                return False
            is_idle = False
            self.add(submission)

    def add(self, submission: Submission) -> None:
        """Puts one request to the engine, which may refuse it."""
        if submission.future.cancelled():
            return
        self.pending[submission.request_id] = submission.future  # before anything can go wrong, so that nobody waits for ever
        try:
            self.engine.add_request(submission.request_id, submission.prompt, submission.params)
        except self.request_errors as error:
            del self.pending[submission.request_id]
            fail(submission.future, RowError("engine_refused", f"{type(error).__name__}: {str(error)[:500]}"))

    def give_up_canceled(self) -> None:
        """Takes out of the engine what nobody waits for any more."""
        canceled = [request_id for request_id, future in self.pending.items() if future.cancelled()]
        if canceled:
            self.engine.abort_request(canceled)
            for request_id in canceled:
                del self.pending[request_id]

    def deliver(self, outputs: Sequence[Any]) -> None:
        """Joins finished outputs with their requests by id; an id that nobody waits for is an error of the engine (003)."""
        for output in outputs:
            if not output.finished:
                continue
            if output.request_id not in self.pending:
                raise EngineError(f"an answer came for {output.request_id!r}, which waits for none; answers no longer fit their requests")
            if len(output.outputs) != 1:
                raise EngineError(f"{len(output.outputs)} answers came for {output.request_id!r}, expected 1")
            future = self.pending.pop(output.request_id)
            if future.set_running_or_notify_cancel():
                future.set_result(output)

    def end(self, reason: str) -> None:
        """Marks the engine dead and tells everyone who waits."""
        self.dead = reason
        for future in self.pending.values():
            fail(future, EngineError(reason))
        self.pending.clear()
        self.refuse_submissions(reason)

    def refuse_submissions(self, reason: str) -> None:
        """Empties the queue of a dead engine."""
        while True:
            try:
                submission = self.submissions.get_nowait()
            except queue.Empty:
                return
            if submission is not None:
                fail(submission.future, EngineError(reason))


def fail(future: Future[Any], error: Exception) -> None:
    """Sets the error, unless nobody waits any more."""
    if future.set_running_or_notify_cancel():
        future.set_exception(error)
