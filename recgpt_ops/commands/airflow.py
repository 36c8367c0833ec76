"""`recgpt airflow`: Airflow with our DAGs and a Ray head beside it, on this machine, until Ctrl-C.

Airflow's own files stand below the warehouse, in `_airflow/console`; those of `recgpt night` stand apart from them, because a
scheduler would take up the runs of a night that another process is at.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import psutil
import typer

from recgpt_ops.commands.options import WarehouseOption, existing_warehouse, settings_for
from recgpt_ops.errors import NightError, UsageError
from recgpt_ops.progress import LIVE_SECONDS, ProgressLine, clock
from recgpt_ops.settings import Settings
from recgpt_ops.tables import ROOT

if TYPE_CHECKING:
    from recgpt_ops.commands.airflow_health import AirflowApi

EXAMPLE = "Example: recgpt airflow --port 8080"
HOST = "127.0.0.1"
START_SECONDS = 600.0  # a minute on a quiet machine
STOP_SECONDS = 45.0  # 4 seconds on a quiet machine, 20 on a busy one
TAIL_LINES = 5


def airflow(
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port of Airflow's pages.")] = 8080,
    warehouse: WarehouseOption = None,
) -> None:
    """Starts a Ray head and Airflow with our DAGs, tells address and login, and stops both on Ctrl-C."""
    settings = settings_for(warehouse)
    existing_warehouse(settings)
    from recgpt_ops.commands.night_run import interruptible
    from recgpt_ops.llm.cluster import local_head

    home = Path(settings.warehouse) / "_airflow" / "console"
    home.mkdir(parents=True, exist_ok=True)
    with the_only_one(home), interruptible():
        refuse_busy_port(port)
        tell("Starting the Ray head: 10 to 40 seconds")
        try:
            with local_head(settings) as head:
                tell(f"Ray head {'started' if head.started_here else 'was there already'}: {head.job_address}")
                serve(settings, home, port)
        except KeyboardInterrupt:
            tell("Stopped: Airflow, and the Ray head unless somebody else uses it")


def tell(line: str) -> None:
    """One line on stderr; stdout is for address and login."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


@contextmanager
def the_only_one(home: Path) -> Iterator[None]:
    """Refuses a second Airflow on the same files. The system frees the lock when its holder dies, however that happens."""
    from filelock import FileLock, Timeout

    lock = FileLock(home / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise UsageError(f"an Airflow of this warehouse runs already ({home}); use it, or stop it by Ctrl-C where it runs") from None
    with lock:
        yield


def refuse_busy_port(port: int) -> None:
    """UsageError for a port that somebody listens on; nothing was started yet."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise UsageError(f"port {port} is busy; stop what listens there, or choose another by --port") from error


def serve(settings: Settings, home: Path, port: int) -> None:
    """Airflow from its start to its end; a start that fails, or an interruption, leaves nothing running."""
    from recgpt_ops.commands.airflow_health import AirflowApi

    log, started = home / "airflow.log", time.monotonic()
    with log.open("w") as output:
        child = start(settings, home, port, output)
        try:
            api = AirflowApi(f"http://{HOST}:{port}", home)
            wait_until_ready(child, api, log)
            tell(f"Ready after {clock(time.monotonic() - started)} minutes")
            sys.stdout.write(welcome(api, settings, home, log))
            sys.stdout.flush()
            raise NightError(f"Airflow ended by itself with exit code {child.wait()}; read {log}")
        finally:
            stop(child)


def start(settings: Settings, home: Path, port: int, output: TextIO) -> subprocess.Popen[bytes]:
    """Starts Airflow below a guard that ends it also when we are killed; in a session of its own, so that Ctrl-C reaches us alone."""
    from recgpt_ops.commands.night_run import night_environment

    command = ["dags.common.console", "--warehouse", settings.warehouse, "--home", str(home), "--port", str(port)]
    return subprocess.Popen(
        [sys.executable, "-m", "dags.common.guard", sys.executable, "-m", *command],
        cwd=ROOT,
        env=night_environment(),
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def wait_until_ready(child: subprocess.Popen[bytes], api: AirflowApi, log: Path) -> None:
    """Returns when every part of Airflow is healthy, knows all our DAGs, and they are unpaused; shows what is waited for."""
    line, started = ProgressLine(), time.monotonic()
    try:
        while waits_for := api.waits_for():
            gone = time.monotonic() - started
            line.show(f"Starting Airflow · {clock(gone)} gone, about a minute in all · waiting for {waits_for}", stage=waits_for)
            if child.poll() is not None or gone > START_SECONDS:
                said = log.read_text(errors="replace").strip().splitlines()[-TAIL_LINES:]
                raise NightError(f"Airflow did not start ({waits_for} is missing): {' / '.join(said) or 'it said nothing'}; read {log}")
            time.sleep(LIVE_SECONDS)
    finally:
        line.close()
    api.unpause()


def stop(child: subprocess.Popen[bytes]) -> None:
    """Stops Airflow with all its parts: SIGINT to its parent process alone, which ends them in order; the guard ends what is left.

    SIGTERM to the parent would leave scheduler and api server behind.
    """
    tell("Stopping Airflow: up to 20 seconds")
    family: list[psutil.Process] = []
    if child.poll() is None:
        guard = psutil.Process(child.pid)
        family = guard.children(recursive=True)
        with suppress(psutil.Error, IndexError):  # it ends just now
            guard.children()[0].send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            child.wait(timeout=STOP_SECONDS)
    assert child.stdin is not None
    child.stdin.close()  # the guard's sign to end its whole group
    child.wait()
    _, alive = psutil.wait_procs(family, timeout=5)
    for process in alive:  # tasks run in groups of their own
        with suppress(psutil.Error):
            process.kill()


def welcome(api: AirflowApi, settings: Settings, home: Path, log: Path) -> str:
    """Address, login, and what to do first."""
    return f"""
Airflow is up, with Ray beside it. Ctrl-C here stops both.

  address    {api.address}
  login      {api.user}
  password   {api.password}
  warehouse  {settings.warehouse}
  log        {log}

A night by hand: Dags, contexts_daily, Trigger. Under "Advanced" give the business date as partition key, such as 2017-10-30, and
choose `users`; the other three follow by their assets, each with the same date. In a terminal of your own:

  source {home}/environment.sh
  airflow dags trigger contexts_daily --conf '{{"ds": "2017-10-30", "users": 2}}'
  airflow backfill create --dag-id contexts_daily --from-date 2017-10-28 --to-date 2017-10-30 --max-active-runs 1

What each DAG is for, and what to do when one fails, stands in its Docs, at the top of its page.
"""
