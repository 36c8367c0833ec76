from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from dags.common.submit import ProcessJobOperator, spark_task, upkeep_task
from recgpt_ops.delta.warehouse import open_warehouse
from recgpt_ops.errors import UsageError
from recgpt_ops.tables import ROOT
from tests.dags.doubles import Events

DONE = """print('RECGPT-MANIFEST {"stage": "night_users", "state": "done", "counts_out": 8}')"""
JOB = "jobs/spark/night_users.py"


def operator(monkeypatch, script: str) -> ProcessJobOperator:
    made = ProcessJobOperator(task_id="night_users", job=JOB, is_head=True)
    monkeypatch.setattr(made, "command", lambda context, identity: [sys.executable, "-c", script])
    return made


def context() -> dict:
    return {"params": {"ds": "2017-10-30", "warehouse": "/shop"}, "run_id": "r1", "outlet_events": Events()}


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_gone(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not is_alive(pid)


def test_a_job_that_says_it_is_done_tells_its_assets_the_day_and_the_generation(monkeypatch, capsys):
    told = context()
    manifest = operator(monkeypatch, f"print('8 users'); {DONE}").execute(told)
    assert manifest["counts_out"] == 8
    assert "8 users" in capsys.readouterr().out
    [(asset, event)] = told["outlet_events"].items()
    assert (asset.name, event.keys, event.extra["warehouse"]) == ("night_users_v1", ["2017-10-30"], "/shop")


@pytest.mark.parametrize(
    ("script", "kind", "told"),
    [
        ("import sys; sys.stderr.write('night_users: no room on the disk'); sys.exit(2)", AirflowFailException, "no room on the disk"),
        ("import sys; sys.stderr.write('night_users: 3 rows broke'); sys.exit(1)", AirflowException, "3 rows broke"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", AirflowException, r"exit code 137"),
    ],
)
def test_a_failed_job_tells_why_and_wrong_use_is_not_tried_again(monkeypatch, script, kind, told):
    with pytest.raises(kind, match=told) as caught:
        operator(monkeypatch, script).execute(context())
    assert (kind is AirflowFailException) == isinstance(caught.value, AirflowFailException)


@pytest.mark.parametrize("script", ["print('nearly')", """print('RECGPT-MANIFEST {"state": "running"}')"""])
def test_case_093_a_job_that_ends_well_without_its_manifest_is_no_success(monkeypatch, script):
    told = context()
    with pytest.raises(AirflowException, match="without its manifest"):
        operator(monkeypatch, script).execute(told)
    assert not told["outlet_events"]


def test_case_094_the_job_is_gone_when_the_task_is_killed(monkeypatch, tmp_path):
    pid_file = tmp_path / "pid"
    running = operator(monkeypatch, f"import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(60)")

    def kill_when_started():
        while not pid_file.exists() or not pid_file.read_text():
            time.sleep(0.05)
        running.on_kill()

    threading.Thread(target=kill_when_started).start()
    with pytest.raises(AirflowFailException, match="ended from outside"):
        running.execute(context())
    assert wait_gone(int(pid_file.read_text()), 5)


def test_case_094_the_job_is_gone_when_the_worker_is_killed_at_once(tmp_path):
    """SIGKILL leaves the worker no time for anything; the job also ignores the polite request."""
    pid_file = tmp_path / "pid"
    job = (
        f"import os, signal, time; signal.signal(15, signal.SIG_IGN); open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    )
    worker = (
        "import subprocess, sys, time;"
        f"subprocess.Popen([sys.executable, '-m', 'dags.common.guard', sys.executable, '-c', {job!r}], stdin=subprocess.PIPE);"
        "time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", worker], cwd=ROOT)
    while not pid_file.exists() or not pid_file.read_text():
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert wait_gone(int(pid_file.read_text()), 10)


def test_a_run_without_a_date_fails_at_once(monkeypatch):
    with pytest.raises(AirflowFailException, match="no business date"):
        operator(monkeypatch, DONE).execute({"params": {}, "run_id": "r1"})


def test_a_spark_task_of_a_table_that_ray_makes_is_refused():
    with pytest.raises(UsageError, match="no Spark job"):
        spark_task("intent_tags", limit=None)


def test_upkeep_belongs_to_no_day_and_fails_with_what_the_job_told(tmp_path):
    task = upkeep_task("jobs/check_freshness.py", limit=timedelta(minutes=1))
    with pytest.raises(AirflowFailException, match=r"warehouse .* does not exist; run `recgpt import`"):
        task.execute({"params": {"warehouse": str(tmp_path / "none")}})
    assert task.exit_code == UsageError.exit_code
    open_warehouse(str(tmp_path / "shop"), create=True)
    assert task.execute({"params": {"warehouse": str(tmp_path / "shop")}})["told"].startswith("FRESH v2: newest night none")
