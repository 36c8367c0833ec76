"""Runs a night as a process of its own and shows how far it is; whatever was started here is ended here."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, TextIO

from recgpt_ops.commands.memory_watch import MemoryWatch
from recgpt_ops.delta.records import read_rows
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.errors import NightError, UsageError
from recgpt_ops.ids import publish_id_of
from recgpt_ops.llm.cluster import LOCAL_ENVIRONMENT, head_status, local_head
from recgpt_ops.progress import LIVE_SECONDS, STAGES, NightProgress, ProgressLine, read_steps
from recgpt_ops.runs import progress_path
from recgpt_ops.settings import Settings
from recgpt_ops.tables import ROOT


@dataclass(frozen=True)
class NightOrder:
    """What is asked of one night."""

    ds: str
    scenario: str
    methods: tuple[str, ...]
    users: int | None
    user_ids: tuple[str, ...]
    why: str


class NightResult(NamedTuple):
    """A night that succeeded. `peak_mb`: most memory of all its processes together, by stage; empty where nothing was seen."""

    publish_id: str
    peak_mb: dict[str, float]


def run_night(warehouse: Warehouse, settings: Settings, order: NightOrder) -> NightResult:
    """Runs the DAGs of one night to their end; NightError or UsageError says why it failed."""
    run_id = f"recgpt__{order.ds}__{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    publish_id = publish_id_of(run_id)
    log = Path(warehouse.root) / "_airflow" / "nights" / f"{publish_id}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    progress = NightProgress(started=time.time(), seconds=seconds_of_nights(warehouse))
    line = ProgressLine()
    sys.stderr.write(f"Night of {order.ds}, {order.why}: generation {publish_id}, log {log}\n")
    with log.open("w") as output, interruptible(), contextlib.ExitStack() as stack:
        with shown_meanwhile(line, progress, "starting Ray"):
            head = stack.enter_context(local_head(settings))
        if not head.started_here:
            stack.callback(end_engines, settings, warehouse.root, publish_id)
        memory = MemoryWatch(head_status(settings).pid)
        child = start(warehouse, order, run_id, output)
        code = watch(child, progress, line, memory, reports=progress_path(warehouse.root, publish_id))
    if code != 0:
        raise failure(order.ds, code, log)
    return NightResult(publish_id, memory.peak_mb)


@contextlib.contextmanager
def shown_meanwhile(line: ProgressLine, progress: NightProgress, before: str) -> Iterator[None]:
    """Shows progress beside something that blocks, such as the 10 to 40 seconds that a Ray head takes to start."""
    is_over = threading.Event()

    def show() -> None:
        while not is_over.wait(LIVE_SECONDS):
            line.show(progress.line(time.time(), before=before), stage=before)

    thread = threading.Thread(target=show)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def end_engines(settings: Settings, warehouse_root: str, run: str) -> None:
    """Ends the engines that this night loaded on a head that stays; one that cannot be reached any more has ended or ends when idle."""
    if settings.ray.address or settings.engine.kind != "vllm":
        return
    os.environ.update(LOCAL_ENVIRONMENT)
    from recgpt_ops.llm.ray_engine import release_engines  # Ray takes seconds to import

    with contextlib.suppress(ConnectionError, RuntimeError):
        release_engines(settings.ray, warehouse_root=warehouse_root, run=run)


def start(warehouse: Warehouse, order: NightOrder, run_id: str, output: TextIO) -> subprocess.Popen[bytes]:
    """Starts the night; it ends with us, because the guard watches the pipe that we hold."""
    command = ["dags.common.night", "--warehouse", warehouse.root, "--ds", order.ds, "--run-id", run_id, "--why", order.why]
    command += ["--scenario", order.scenario, "--methods", ",".join(order.methods)]
    command += [] if order.users is None else ["--users", str(order.users)]
    command += [f"--user={user_id}" for user_id in order.user_ids]
    guarded = [sys.executable, "-m", "dags.common.guard", sys.executable, "-m", *command]
    # a session of its own: the terminal's Ctrl-C reaches us alone, and we end everything in order
    return subprocess.Popen(
        guarded, cwd=ROOT, env=night_environment(), stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
    )


def night_environment() -> dict[str, str]:
    """Our environment, with compiled modules kept: without them every job would take seven seconds more to start."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment.setdefault("PYTHONPYCACHEPREFIX", str(ROOT / ".cache" / "pyc"))
    return environment


def watch(child: subprocess.Popen[bytes], progress: NightProgress, line: ProgressLine, memory: MemoryWatch, *, reports: Path) -> int:
    """Shows the night's progress until it ends; returns its exit code. An interruption ends the night first."""
    offset = 0
    try:
        while True:
            code = child.poll()
            steps, offset = read_steps(reports, offset)
            progress.add(steps)
            memory.look(progress.stage)
            line.show(progress.line(time.time(), before="starting Airflow"), stage=progress.stage or "airflow")
            if code is not None:
                return code
            time.sleep(LIVE_SECONDS)
    finally:
        line.close()
        assert child.stdin is not None
        child.stdin.close()  # the guard's sign to end what still runs
        child.wait()


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C (also where a shell made it be ignored), SIGTERM and a closed terminal end a night with everything that it started."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def seconds_of_nights(warehouse: Warehouse) -> dict[str, float]:
    """How long each stage took in the newest night that did it."""
    rows: list[dict[str, Any]] = read_rows(warehouse, "nights", columns=["stage", "state", "seconds", "recorded_at"])
    rows = [row for row in rows if row["state"] == "done" and row["stage"] in STAGES]
    return {row["stage"]: row["seconds"] for row in sorted(rows, key=lambda row: row["recorded_at"])}


def failure(ds: str, code: int, log: Path) -> NightError | UsageError:
    """Why the night failed, by the last line that its DAGs wrote about it."""
    text = log.read_text(errors="replace")
    told = [line for line in text.splitlines() if line.startswith("FAILED ")]
    if not told:
        return NightError(f"the night of {ds} ended with exit code {code} and without a word; read {log}")
    kind = UsageError if " exit=2 " in told[-1] else NightError
    return kind(f"the night of {ds} failed, readers see no change. {told[-1].removeprefix('FAILED ')} log={log}")
