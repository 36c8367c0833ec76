"""The local Ray head: started, found and stopped by us alone, beside any other Ray on the machine.

    recgpt engine up        start_head      all ports on 127.0.0.1 only
    recgpt engine status    head_status
    recgpt engine down      stop_head

`ray start --block` keeps all processes of the head below one that we started and remember, so that stopping touches no
other. With `ray.address` in the settings there is a cluster already, and nothing is started or stopped here.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from filelock import FileLock

from recgpt_ops.errors import UsageError
from recgpt_ops.settings import PREFIX, Settings
from recgpt_ops.settings import Ray as RaySettings
from recgpt_ops.tables import ROOT

HOST = "127.0.0.1"
START_SECONDS = 120.0
MOST_STARTS = 2  # Ray gives its own node 30 s, which a busy machine may miss
STOP_SECONDS = 20.0
# What both sides of the local head need to hear; read by Ray when it is imported.
LOCAL_ENVIRONMENT = {
    "RAY_AUTH_MODE": "disabled",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # else Ray puts the machine's address in place of 127.0.0.1 and listens on every interface
}
USES, KEPT = "uses", "kept"  # below the head's folder: marks of processes that use it; whether it stays without any
LONGEST_TEMP = 40  # Ray's socket paths below it must stay under 107 characters


class Head(NamedTuple):
    """A head that can be used. `started_here`: this call started it, so whoever called should stop it again."""

    job_address: str
    started_here: bool


class HeadStatus(NamedTuple):
    """What `engine status` tells. `pid` None: not started by us, or not running."""

    is_up: bool
    job_address: str
    pid: int | None
    detail: str


def job_address(settings: RaySettings) -> str:
    """Address of the job API: the cluster's, or the local head's."""
    return settings.address or f"http://{HOST}:{settings.dashboard_port}"


@contextmanager
def local_head(settings: Settings) -> Iterator[Head]:
    """A head for the time of the block. The last who uses it stops it, unless `engine up` asked for it to stay."""
    head = start_head(settings)
    try:
        yield head
    finally:
        if not settings.ray.address:
            home = head_directory(settings.ray)
            with FileLock(home / "lock"):
                use_file(home, os.getpid()).unlink(missing_ok=True)
                if not users_of(home) and not (home / KEPT).exists():
                    end_process(home)


def start_head(settings: Settings, *, keep: bool = False) -> Head:
    """Starts the local head, or finds the one that runs. UsageError for a busy port.

    `keep`: it stays until `stop_head`; else this process is written down as one that uses it.
    """
    ray = settings.ray
    if ray.address:
        return Head(ray.address, started_here=False)
    home = head_directory(ray)
    (home / USES).mkdir(mode=0o700, parents=True, exist_ok=True)
    with FileLock(home / "lock"):
        started_here = not (running_process(home) is not None and answers(ray))
        if started_here:
            start_process(ray, home)
        if keep:
            (home / KEPT).touch()
        else:
            use_file(home, os.getpid()).touch()
        return Head(job_address(ray), started_here=started_here)


def start_process(ray: RaySettings, home: Path) -> None:
    """Starts the head and waits until it can run something; UsageError, and nothing left running, when it does not come up."""
    end_process(home)  # a head that runs but does not answer is of no use
    refuse_busy_ports(ray)
    for _ in range(MOST_STARTS):
        is_up = False
        try:
            is_up = wait_until_up(ray, launch(ray, home))
        finally:  # also when Ctrl-C comes meanwhile: nobody else would end it
            if not is_up:
                end_process(home)
        if is_up:
            return
    said = (home / "head.log").read_text(errors="replace").strip().splitlines()
    raise UsageError(f"the local Ray head did not start: {said[-1] if said else 'it said nothing'}; see {home / 'head.log'}")


def use_file(home: Path, pid: int) -> Path:
    """The mark of one process that uses the head; the start time tells it from a later process with the same number."""
    return home / USES / f"{pid}-{psutil.Process(pid).create_time():.0f}"


def users_of(home: Path) -> list[int]:
    """The processes that use the head and still run; marks of those that died are removed."""
    running = []
    for mark in sorted((home / USES).glob("*-*")):
        pid = int(mark.name.partition("-")[0])
        try:
            is_alive = use_file(home, pid) == mark
        except psutil.Error:
            is_alive = False
        if is_alive:
            running.append(pid)
        else:
            mark.unlink(missing_ok=True)
    return running


def launch(ray: RaySettings, home: Path) -> subprocess.Popen[bytes]:
    """Starts the head's process, in a session of its own so that Ctrl-C at our terminal leaves its end to us."""
    with (home / "head.log").open("w") as log:
        process = subprocess.Popen(
            head_command(ray, home),
            env=head_environment(),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    remember(home, process.pid)
    return process


def stop_head(settings: Settings, *, force: bool = False) -> bool:
    """Stops the head that we started; False when there was none. UsageError while a night uses it, unless `force`."""
    if settings.ray.address:
        return False
    home = head_directory(settings.ray)
    if not home.is_dir():
        return False
    with FileLock(home / "lock"):
        users = users_of(home)
        if users and not force and running_process(home) is not None:
            raise UsageError(
                f"process {', '.join(map(str, users))} uses the local Ray head, such as a night that runs; "
                "wait for its end, or stop both with --force"
            )
        return end_process(home)


def head_status(settings: Settings) -> HeadStatus:
    """Whether a head can take jobs, and whose it is."""
    ray = settings.ray
    address = job_address(ray)
    is_up = answers(ray)
    if ray.address:
        return HeadStatus(
            is_up, address, None, "the cluster of ray.address" if is_up else "ray.address does not answer; check it, and the network"
        )
    process = running_process(head_directory(ray))
    pid = process.pid if process else None
    if is_up and process:
        return HeadStatus(True, address, pid, f"local head, running for {time.time() - process.create_time():.0f} s")
    if is_up:
        return HeadStatus(False, address, None, f"port {ray.dashboard_port} belongs to another Ray; set ray.dashboard_port and ray.port")
    return HeadStatus(False, address, pid, "starting, or hanging" if process else "not running; `recgpt engine up` starts it")


def head_command(ray: RaySettings, home: Path) -> list[str]:
    """The command line of the head. Ports that we do not need to know are picked here, as their defaults may be another Ray's."""
    agent_port, client_port = free_ports(2)
    return [
        sys.executable,
        *("-c", "import sys; from ray.scripts.scripts import main; sys.exit(main())"),
        *("start", "--head", "--block", "--disable-usage-stats"),
        f"--node-ip-address={HOST}",
        f"--port={ray.port}",
        f"--dashboard-host={HOST}",
        f"--dashboard-port={ray.dashboard_port}",
        "--include-dashboard=true",
        f"--dashboard-agent-listen-port={agent_port}",
        f"--ray-client-server-port={client_port}",
        f"--num-cpus={ray.num_cpus}",
        f"--object-store-memory={ray.object_store_mb << 20}",
        f"--temp-dir={home / 's'}",
    ]


def head_environment() -> dict[str, str]:
    """Ours without RECGPT_* (a job brings its own), and with what Ray needs to hear."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    return {
        **kept,
        **LOCAL_ENVIRONMENT,
        "RAY_USAGE_STATS_ENABLED": "0",
        "PYTHONPATH": str(ROOT),
        "RAY_py_gcs_connect_timeout_s": "60",
    }


def head_directory(ray: RaySettings) -> Path:
    """Where the head of this user and port keeps its session; short, because unix socket paths are limited."""
    base = tempfile.gettempdir()
    return Path(base if len(base) <= LONGEST_TEMP else "/tmp") / f"recgpt-ray-{os.getuid()}-{ray.port}"


def refuse_busy_ports(ray: RaySettings) -> None:
    """UsageError that names the first port somebody else listens on, and its setting."""
    for setting, port in (("ray.port", ray.port), ("ray.dashboard_port", ray.dashboard_port)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError as error:
                variable = f"{PREFIX}{setting.upper().replace('.', '__')}"
                raise UsageError(f"port {port} ({setting}) is busy; stop what listens there, or set {variable} to another") from error


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind((HOST, 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def answers(ray: RaySettings) -> bool:
    """Whether a job API answers at the address."""
    return "ray_version" in ask(ray, "/api/version")


def node_is_alive(ray: RaySettings) -> bool:
    """Whether the head counts at least one node that can run something."""
    result = (ask(ray, "/api/v0/nodes").get("data") or {}).get("result") or {}
    return any(node.get("state") == "ALIVE" for node in result.get("result") or ())


def ask(ray: RaySettings, path: str) -> dict[str, Any]:
    """A reply of the dashboard; empty when there is none, or none that can be read."""
    try:
        with urllib.request.urlopen(f"{job_address(ray)}{path}", timeout=10) as reply:
            body = json.load(reply)
    except (OSError, ValueError):
        return {}
    return body if isinstance(body, dict) else {}


def wait_until_up(ray: RaySettings, process: subprocess.Popen[bytes]) -> bool:
    """True once a node is alive: the job API answers long before that, and a job submitted then may find no cluster."""
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if node_is_alive(ray):
            return True
        time.sleep(0.3)
    return False


def remember(home: Path, pid: int) -> None:
    """Writes which process is ours; its start time tells it from a later one with the same number."""
    (home / "head.json").write_text(json.dumps({"pid": pid, "created": psutil.Process(pid).create_time()}))


def running_process(home: Path) -> psutil.Process | None:
    """The head's process if it still runs."""
    try:
        known = json.loads((home / "head.json").read_text())
        process = psutil.Process(known["pid"])
        is_ours = abs(process.create_time() - known["created"]) < 1 and process.status() != psutil.STATUS_ZOMBIE
    except (OSError, ValueError, KeyError, psutil.Error):
        return None
    return process if is_ours else None


def end_process(home: Path) -> bool:
    """Ends the head and everything below it: first asked, then killed."""
    process = running_process(home)
    if process is None:
        return False
    family = [*process.children(recursive=True), process]
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGTERM)
    _, alive = psutil.wait_procs(family, timeout=STOP_SECONDS)
    for member in alive:
        with suppress(psutil.NoSuchProcess):
            member.kill()
    psutil.wait_procs(alive, timeout=5)
    for name in ("head.json", KEPT):
        (home / name).unlink(missing_ok=True)
    return True
