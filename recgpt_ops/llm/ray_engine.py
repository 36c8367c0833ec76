"""One engine per model and night, shared by everything that runs on the Ray cluster.

The engine lives in a named, detached actor, so the jobs of a night find the one that is loaded already. Its name carries the
model's hash and all engine settings, its namespace the warehouse and the run. An engine that dies is replaced
once for everybody: the requests that were in flight are asked again, each alone in the engine whoever else uses it, so the one that
kills engines is found (`poison`, a row's error) and the others get their answers. A call that never comes back is ended by its own
watchdog (`timeout`, a row's error too).
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import logging
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError

from recgpt_ops.errors import EngineError, RowError
from recgpt_ops.llm.engine_actor import EngineActor, engine_environment
from recgpt_ops.llm.identity import vllm_identity
from recgpt_ops.llm.models import model_directory
from recgpt_ops.llm.requests import Answer, EngineIdentity, Request, check_request
from recgpt_ops.settings import Engine as EngineSettings
from recgpt_ops.settings import Ray as RaySettings

NAME_PREFIX = "recgpt-engine-"
NAMESPACE_PREFIX = "recgpt-"
MOST_LOADS = 5  # of one process without an answer in between; an engine that needs more is not worth waiting for
MOST_START_TRIES = 2
HEALTH_SECONDS = 120.0
MOST_WAITS = 6  # times engine.call_timeout_seconds; a slow machine reads a dozen long prompts together before the first answer comes


def engine_namespace(warehouse_root: str, run: str) -> str:
    """The Ray namespace of one warehouse and run, so that two nights on one cluster share no engine."""
    return f"{NAMESPACE_PREFIX}{hashlib.sha256(str(Path(warehouse_root).resolve()).encode()).hexdigest()[:10]}-{run}"


def engine_name(settings: EngineSettings, identity: EngineIdentity) -> str:
    """The actor's name: model content, build and all engine settings, so that changed settings mean another engine."""
    digest = hashlib.sha256(repr((identity.model_hash, identity.build, sorted(asdict(settings).items()))).encode()).hexdigest()
    return f"{NAME_PREFIX}{digest[:16]}"


class RayEngine:
    """The engine as a job sees it; made by `connect_ray_engine`. `loads` counts the engines that this process had loaded.

    It is started by the first request: a stage whose answers are all in the ledger loads nothing.
    """

    def __init__(
        self,
        settings: EngineSettings,
        *,
        namespace: str,
        name: str,
        identity: EngineIdentity,
        folder: Path,
        progress: Callable[[float], None] | None = None,
    ) -> None:
        """Nothing is started yet. `progress` is told the seconds waited for a load, about once a second."""
        self.settings, self.namespace, self.name, self.known, self.folder = settings, namespace, name, identity, folder
        self.progress = progress
        self.loads = 0
        self.loads_since_answer = 0
        self.actor: Any = None
        self.generation = 0
        self.numbers = itertools.count()
        self.prefix = uuid.uuid4().hex[:8]
        self.replacing = asyncio.Lock()
        self.alone = asyncio.Lock()
        self.suspects = 0
        self.no_suspects = asyncio.Condition()

    @property
    def identity(self) -> EngineIdentity:
        """Of the engine that answers, known before it is loaded."""
        return self.known

    def find_actor(self) -> Any:
        """The live actor of this name, or a new one (then a load is counted)."""
        try:
            return ray.get_actor(self.name, namespace=self.namespace)
        except ValueError:
            self.loads += 1
            self.loads_since_answer += 1
        if self.loads_since_answer > MOST_LOADS:
            raise EngineError(
                f"the engine of {self.known.model} was loaded {MOST_LOADS} times and died each time; look at its log, `recgpt doctor`"
            )
        resources = ray.cluster_resources()  # type: ignore[no-untyped-call]  # ray types only a part of itself
        has_gpus = resources.get("GPU", 0) >= self.settings.tensor_parallel_size
        return (
            ray.remote(EngineActor)
            .options(
                name=self.name,
                namespace=self.namespace,
                lifetime="detached",
                get_if_exists=True,
                num_cpus=0,
                num_gpus=self.settings.tensor_parallel_size if has_gpus else 0,
                max_concurrency=100_000,
                runtime_env={"env_vars": engine_environment(self.settings)},
            )
            .remote(self.settings, self.known.model, str(self.folder))
        )

    def preload(self) -> None:
        """Lets the load begin, and does not wait for it: worth it where calls are sure to come."""
        self.find_actor()

    def start(self) -> None:
        """Finds or loads the engine and checks its health."""
        started = time.monotonic()
        for tries in itertools.count(1):
            actor = self.find_actor()
            try:
                problem = self.wait_ready(actor, started)
            except RayActorError as error:
                problem = f"the engine's process ended: {error}"
            if problem is None:
                self.actor = actor  # not before it is ready, so that no request gets ahead of the health call
                self.generation += 1
                return
            ray.kill(actor)
            if time.monotonic() - started > self.settings.start_timeout_seconds or tries >= MOST_START_TRIES:
                raise EngineError(f"the engine of {self.known.model} did not start: {problem}; next: `recgpt doctor`")
            time.sleep(0.5)  # the name is free again a moment after the kill

    def wait_ready(self, actor: Any, started: float) -> str | None:
        """None when the engine is loaded and healthy, else the reason."""
        pending = actor.ready.remote()
        while True:
            try:
                _, identity, failure, _ = ray.get(pending, timeout=1.0)
                break
            except GetTimeoutError:
                waited = time.monotonic() - started
                if self.progress:
                    self.progress(waited)
                if waited > self.settings.start_timeout_seconds:
                    return f"not loaded after {waited:.0f} s (engine.start_timeout_seconds)"
        if identity is None:
            return str(failure)
        if identity != self.known:
            raise EngineError(f"the loaded engine is {identity}, expected {self.known}; jobs and engine need the same packages")
        try:
            problem: str | None = ray.get(actor.health.remote(), timeout=HEALTH_SECONDS)
        except GetTimeoutError:
            return f"the canary prompt was not answered within {HEALTH_SECONDS:.0f} s"
        return problem

    async def answer(self, request: Request) -> Answer:
        """The answer, from whichever engine lives; see the module for what happens when one dies."""
        check_request(request, self.identity)
        if self.actor is None:
            await self.start_once()
        async with self.no_suspects:
            await self.no_suspects.wait_for(lambda: self.suspects == 0)
        death = await self.attempt(request)
        if isinstance(death, Answer):
            return death
        self.suspects += 1
        try:
            async with self.alone:
                again = await self.attempt_alone(request)
        finally:
            self.suspects -= 1
            async with self.no_suspects:
                self.no_suspects.notify_all()
        if isinstance(again, Answer):
            return again
        raise RowError("poison", f"{request.role}: two engines died on this request; the last: {again}")

    async def start_once(self) -> None:
        """Starts the engine for the first request; those that come meanwhile wait for the same start."""
        async with self.replacing:
            if self.actor is None:
                await asyncio.to_thread(self.start)

    async def attempt_alone(self, request: Request) -> Answer | str:
        """`attempt` with nothing else in the engine, so that a death is this request's own doing.

        An engine that dies before the request had its turn died of another one (another shard has suspects too): that counts for nothing.
        """
        while True:
            generation, request_id = self.generation, f"{self.prefix}-{next(self.numbers)}"
            try:
                problem = await self.patient(self.actor.clear.remote(request_id))
            except RayActorError as error:
                problem = f"its process ended ({type(error).__name__})"
            if problem is None:
                return await self.attempt(request, request_id)
            await self.replace(generation, problem)

    async def attempt(self, request: Request, request_id: str | None = None) -> Answer | str:
        """The answer; or, when the engine died meanwhile and was replaced, why it died. `request_id`: the one that has its turn."""
        generation = self.generation
        request_id = request_id or f"{self.prefix}-{next(self.numbers)}"
        try:
            outcome = await self.patient(self.actor.answer.remote(request_id, request))
        except RayActorError as error:
            problem = f"its process ended ({type(error).__name__})"
        else:
            if isinstance(outcome, str):
                await self.replace(generation, outcome)
                return outcome
            if outcome[1] != request_id:
                raise EngineError(f"asked {request_id}, got the answer of {outcome[1]}; answers no longer fit their requests")
            if outcome[0] == "answer":
                answer: Answer = outcome[2]
                self.loads_since_answer = 0
                return answer
            if outcome[0] == "row_error":
                raise RowError(outcome[2], outcome[3])
            problem = str(outcome[2])
        await self.replace(generation, problem)
        return problem

    async def patient(self, waiting: Awaitable[Any]) -> Any:
        """The outcome of a call, however slow, as long as the engine is healthy; a text that says what is wrong with it otherwise.

        Looked at each `call_timeout_seconds`. RowError `timeout` after MOST_WAITS of them: then it is this call that never comes back;
        the engine is told to give it up.
        """
        limit = self.settings.call_timeout_seconds
        outcome = asyncio.ensure_future(waiting)
        try:
            for _ in range(MOST_WAITS):
                done, _ = await asyncio.wait([outcome], timeout=limit)
                if done:
                    return outcome.result()
                if (problem := await self.look_at_slow_engine()) is not None:
                    return problem
        finally:
            outcome.cancel()
        if isinstance(waiting, ray.ObjectRef):
            ray.cancel(waiting)
        raise RowError("timeout", f"no answer within {MOST_WAITS} x {limit:.0f} s (engine.call_timeout_seconds), though the engine lives")

    async def look_at_slow_engine(self) -> str | None:
        """What is wrong with an engine that gave no answer in time; None when it is healthy."""
        limit = self.settings.call_timeout_seconds
        try:
            problem: str | None = await asyncio.wait_for(self.actor.health.remote(), max(HEALTH_SECONDS, limit))
        except TimeoutError:
            return f"it hangs: no answer within {limit:.0f} s, and none to the canary prompt"
        except RayActorError as error:
            return f"its process ended ({type(error).__name__})"
        return problem

    async def replace(self, generation: int, problem: str) -> None:
        """A new engine in place of the one of that generation; done once for all who saw it die."""
        async with self.replacing:
            if generation != self.generation:
                return
            ray.kill(self.actor)
            await asyncio.sleep(0.5)
            try:
                await asyncio.to_thread(self.start)
            except EngineError as error:
                raise EngineError(f"the engine died ({problem}) and could not be replaced: {error}") from error


def connect_ray_engine(
    settings: EngineSettings, *, models_root: Path, namespace: str, progress: Callable[[float], None] | None = None
) -> RayEngine:
    """The night's engine, loaded when the first request comes. Called in a process that is connected to Ray."""
    folder = model_directory(settings.model, models_root=models_root)
    identity = vllm_identity(settings, name=settings.model, folder=folder)
    return RayEngine(
        settings, namespace=namespace, name=engine_name(settings, identity), identity=identity, folder=folder, progress=progress
    )


def stop_engines(namespace: str) -> int:
    """Ends every engine of a namespace; returns how many there were."""
    names = [actor["name"] for actor in ray.util.list_named_actors(all_namespaces=True) if actor["namespace"] == namespace]
    engines = [name for name in names if name.startswith(NAME_PREFIX)]
    for name in engines:
        with suppress(ValueError):  # it was idle and has ended itself since
            ray.kill(ray.get_actor(name, namespace=namespace))
    return len(engines)


def release_engines(settings: RaySettings, *, warehouse_root: str, run: str) -> int:
    """Ends a run's engines on a local head that stays (`engine up`): another run loads its own, and both do not fit a small machine.

    Called by a process that is not connected to Ray.
    """
    ray.init(address=f"127.0.0.1:{settings.port}", log_to_driver=False, logging_level=logging.ERROR)
    try:
        return stop_engines(engine_namespace(warehouse_root, run))
    finally:
        ray.shutdown()
