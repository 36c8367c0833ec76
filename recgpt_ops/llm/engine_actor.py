"""The Ray actor that holds one engine, and the environment it runs in.

Errors are returned as plain tuples and not raised: what Ray makes of a raised exception cannot be told apart from the death
of the actor, and that difference is the whole point.

    ("answer", request_id, Answer)   ("row_error", request_id, reason, detail)   ("engine_error", request_id, message)
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recgpt_ops.errors import EngineError, RecgptError, RowError
from recgpt_ops.llm.requests import EngineIdentity, Request
from recgpt_ops.settings import Engine as EngineSettings

if TYPE_CHECKING:
    from recgpt_ops.llm.vllm_engine import VllmEngine

Outcome = tuple[Any, ...]
IDLE_EXIT_CODE = 0
TURN_SECONDS = 30.0  # that a turn waits for its request; whoever asked for it may have died


def engine_environment(settings: EngineSettings) -> dict[str, str]:
    """The variables of the engine's own process; nobody else's."""
    return {
        "VLLM_CPU_KVCACHE_SPACE": str(settings.kv_cache_gb),
        "OMP_NUM_THREADS": str(settings.threads or len(os.sched_getaffinity(0))),  # else Ray sets 1
        "OMP_WAIT_POLICY": "PASSIVE",  # a waiting thread leaves its core to whoever else has work
        # Each layer of a prompt allocates and frees large arrays. By default they go back to the system and are mapped again, page by
        # page: a tenth of a CPU's time. Read by glibc when a process starts, so these do nothing for an engine in its caller's process.
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": str(16 * 2**30),
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the engine steps in this process
        "VLLM_USE_V2_MODEL_RUNNER": "0",  # the V2 runner takes another kind of logits processor
        "VLLM_LOGGING_LEVEL": "WARNING",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }


class EngineActor:
    """One loaded engine. Every method is a coroutine, so any number of calls wait at the same time."""

    def __init__(self, settings: EngineSettings, name: str, folder: str) -> None:
        """Returns at once; the engine is loaded in a thread, and `ready` waits for it."""
        self.settings, self.name, self.folder = settings, name, folder
        self.load_id = uuid.uuid4().hex
        self.engine: VllmEngine | None = None
        self.failure: str | None = None
        self.is_loaded = asyncio.Event()
        self.last_asked = time.monotonic()
        self.running = 0
        self.turn: str | None = None  # the request that has the engine for itself
        self.moved = asyncio.Condition()  # told when `running` or `turn` changes
        event_loop = asyncio.get_event_loop()
        threading.Thread(target=self.load, args=(event_loop,), name="engine-load", daemon=True).start()
        self.idle_watch = event_loop.create_task(self.end_when_idle())

    def load(self, event_loop: asyncio.AbstractEventLoop) -> None:
        """Imports and loads the engine, some 40 to 60 s on a CPU."""
        try:
            from recgpt_ops.llm.vllm_engine import VllmEngine  # 25 s of imports, only where an engine is loaded

            self.engine = VllmEngine(self.settings, name=self.name, folder=Path(self.folder))
        except Exception as error:  # an edge: whatever stops the load is told to whoever waits for it
            self.failure = str(error) if isinstance(error, RecgptError) else f"{type(error).__name__}: {error}"
        event_loop.call_soon_threadsafe(self.is_loaded.set)

    async def ready(self) -> tuple[str, EngineIdentity | None, str | None, float]:
        """Waits for the load: its id, the engine's identity, or why it failed, and the seconds it took."""
        await self.is_loaded.wait()
        if self.engine is None:
            return self.load_id, None, self.failure, 0.0
        return self.load_id, self.engine.identity, None, self.engine.load_seconds

    async def health(self) -> str | None:
        """None when the canary prompt gives what it gave after loading, else what is wrong."""
        await self.is_loaded.wait()
        if self.engine is None:
            return self.failure
        try:
            await self.engine.check_health()
        except EngineError as error:
            return str(error)
        return None

    async def answer(self, request_id: str, request: Request) -> Outcome:
        """The outcome of one request, under its id."""
        await self.is_loaded.wait()
        if self.engine is None:
            return ("engine_error", request_id, self.failure)
        self.last_asked = time.monotonic()
        async with self.moved:
            await self.moved.wait_for(lambda: self.turn in (None, request_id))
            self.running += 1
        try:
            return ("answer", request_id, await self.engine.answer(request))
        except RowError as error:
            return ("row_error", request_id, error.reason, error.detail)
        except EngineError as error:
            return ("engine_error", request_id, str(error))
        finally:
            self.last_asked = time.monotonic()
            async with self.moved:
                self.running -= 1
                self.turn = None if self.turn == request_id else self.turn
                self.moved.notify_all()

    async def clear(self, request_id: str) -> None:
        """Returns when nothing is in the engine; until the request of that id is answered, nothing else gets in.

        A request that may have killed an engine is asked in its own turn: if this one dies too, no other request can be the reason.
        """
        async with self.moved:
            await self.moved.wait_for(lambda: self.turn is None)
            self.turn = request_id
            try:
                await self.moved.wait_for(lambda: self.running == 0)
            except asyncio.CancelledError:
                self.turn = None
                self.moved.notify_all()
                raise
        self.turn_watch = asyncio.get_running_loop().create_task(self.end_unused_turn(request_id))

    async def end_unused_turn(self, request_id: str) -> None:
        """Takes a turn back that its request did not use in time."""
        await asyncio.sleep(TURN_SECONDS)
        async with self.moved:
            if self.turn == request_id and not self.running:
                self.turn = None
                self.moved.notify_all()

    async def end_when_idle(self) -> None:
        """Ends the process when nobody has asked for `idle_timeout_seconds`; memory is dearer than the next load."""
        limit = self.settings.idle_timeout_seconds
        while True:
            await asyncio.sleep(min(limit, 10.0))
            if not self.running and self.is_loaded.is_set() and time.monotonic() - self.last_asked > limit:
                os._exit(IDLE_EXIT_CODE)
