"""The local Ray head: busy ports, and touching nothing that is not ours. Starting one is in flow/test_real_engine.py."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from recgpt_ops.errors import UsageError
from recgpt_ops.llm import cluster
from recgpt_ops.llm.cluster import (
    end_process,
    free_ports,
    head_command,
    head_directory,
    head_environment,
    head_status,
    local_head,
    remember,
)
from recgpt_ops.settings import Settings, load_settings


def settings(**ray: object) -> Settings:
    known = load_settings({})
    return replace(known, ray=replace(known.ray, **ray))  # type: ignore[arg-type]  # fields of the settings by name


@pytest.fixture
def busy_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


@pytest.mark.parametrize("setting", ["port", "dashboard_port"])
def test_a_busy_port_is_one_line_that_names_the_setting(
    busy_port: int, setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "head_directory", lambda ray: tmp_path)
    ports = dict(zip(("port", "dashboard_port"), free_ports(2), strict=True))
    with pytest.raises(UsageError, match=rf"port {busy_port} \(ray\.{setting}\) is busy; .* set RECGPT_RAY__{setting.upper()}") as refused:
        cluster.start_head(settings(**{**ports, setting: busy_port}))
    assert "\n" not in str(refused.value)
    assert refused.value.exit_code == 2


def test_an_existing_cluster_is_used_and_never_started_or_stopped() -> None:
    with local_head(settings(address="http://ray-head:8265")) as head:
        assert head == ("http://ray-head:8265", False)
    assert cluster.stop_head(settings(address="http://ray-head:8265")) is False


def test_status_tells_what_to_do_when_nothing_runs() -> None:
    port, dashboard_port = free_ports(2)
    status = head_status(settings(port=port, dashboard_port=dashboard_port))
    assert (status.is_up, status.pid) == (False, None)
    assert "`recgpt engine up` starts it" in status.detail


def test_only_the_process_that_we_started_is_ended(tmp_path: Path) -> None:
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        (tmp_path / "head.json").write_text(json.dumps({"pid": sleeper.pid, "created": psutil.Process(sleeper.pid).create_time() - 100}))
        assert end_process(tmp_path) is False  # the number was given to somebody else since
        assert sleeper.poll() is None
        remember(tmp_path, sleeper.pid)
        assert end_process(tmp_path) is True
        assert not psutil.pid_exists(sleeper.pid)
        assert end_process(tmp_path) is False
    finally:
        sleeper.kill()


@pytest.fixture
def head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A head's folder whose process is a sleeper that answers like a head."""
    monkeypatch.setattr(cluster, "head_directory", lambda ray: tmp_path)
    monkeypatch.setattr(cluster, "answers", lambda ray: cluster.running_process(tmp_path) is not None)
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    remember(tmp_path, sleeper.pid)
    yield tmp_path
    sleeper.kill()
    sleeper.wait()


def test_the_last_who_uses_a_head_stops_it(head: Path) -> None:
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    with local_head(settings()):
        cluster.use_file(head, other.pid).touch()  # another night finds the same head
    assert cluster.running_process(head) is not None
    other.kill()
    other.wait()
    with local_head(settings()):
        assert cluster.users_of(head) == [os.getpid()]  # a night that was killed uses nothing any more
    assert cluster.running_process(head) is None


def test_a_head_that_was_asked_for_stays_until_it_is_stopped(head: Path) -> None:
    assert cluster.start_head(settings(), keep=True).started_here is False
    with local_head(settings()):
        pass
    assert cluster.running_process(head) is not None
    assert cluster.stop_head(settings()) is True
    assert cluster.running_process(head) is None


def test_a_head_that_a_night_uses_is_not_stopped_unless_forced(head: Path) -> None:
    with local_head(settings()):
        with pytest.raises(UsageError, match=rf"process {os.getpid()} uses the local Ray head"):
            cluster.stop_head(settings())
        assert cluster.running_process(head) is not None
        assert cluster.stop_head(settings(), force=True) is True


def test_the_head_is_ours_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECGPT_WAREHOUSE", "somewhere")
    environment = head_environment()
    assert environment["RAY_AUTH_MODE"] == "disabled"
    assert not [name for name in environment if name.startswith("RECGPT_")]  # a job brings its own
    ray = settings(port=6399).ray
    command = head_command(ray, head_directory(ray))
    assert "--dashboard-host=127.0.0.1" in command
    assert "--port=6399" in command
    longest = f"{head_directory(ray)}/s/session_2026-11-30_19-31-43_123456_1234567/sockets/plasma_store"
    assert len(longest) < 107
    assert str(os.getuid()) in head_directory(ray).name
