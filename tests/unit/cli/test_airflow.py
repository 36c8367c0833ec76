"""Starting and stopping Airflow, with a stand-in that behaves as Airflow does where it matters."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import psutil
import pytest

from recgpt_ops.commands.airflow import refuse_busy_port, stop, the_only_one, wait_until_ready
from recgpt_ops.commands.airflow_health import PARTS, PASSWORDS, AirflowApi, our_dags
from recgpt_ops.errors import NightError, UsageError
from recgpt_ops.tables import ROOT

# SIGINT ends the parent's child in order; SIGTERM to the parent would leave it, as with Airflow. The grandchild is a task in a group
# of its own, which nobody ends.
STAND_IN = """
import os, signal, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
task = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
try:
    print(os.getpid(), child.pid, task.pid, flush=True)  # who reads it may interrupt at once
    time.sleep(600)
except KeyboardInterrupt:
    child.terminate()
    child.wait()
    print("in order", flush=True)
"""


def start_stand_in(program: str = STAND_IN) -> tuple[subprocess.Popen, list[int]]:
    child = subprocess.Popen(
        [sys.executable, "-m", "dags.common.guard", sys.executable, "-c", program],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    return child, [int(pid) for pid in child.stdout.readline().split()]


def are_gone(pids: list[int]) -> bool:
    deadline = time.monotonic() + 5
    while any(psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_stopping_ends_the_parts_in_order_and_leaves_no_task_behind():
    child, pids = start_stand_in()
    stop(child)
    assert child.stdout.read() == b"in order\n"
    assert are_gone(pids)


def test_stopping_what_has_ended_already_is_fine():
    child, pids = start_stand_in("import os; print(os.getpid(), flush=True)")
    child.wait()
    stop(child)
    assert are_gone(pids)


def test_airflow_ends_with_us_also_when_we_are_killed():
    child, pids = start_stand_in()
    child.stdin.close()  # what the system does to a process that is killed
    child.wait()
    assert are_gone(pids[:2])
    psutil.Process(pids[2]).kill()  # a real task ends when its supervisor is gone


def test_a_busy_port_is_told_by_its_number():
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port} is busy; .* choose another by --port"):
            refuse_busy_port(port)
    refuse_busy_port(port)


def test_a_second_airflow_of_the_same_warehouse_is_refused_until_the_first_is_gone(tmp_path):
    code = f"""
import time
from pathlib import Path
from recgpt_ops.commands.airflow import the_only_one
with the_only_one(Path({str(tmp_path)!r})):
    print("held", flush=True)
    time.sleep(600)
"""
    holder = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(UsageError, match="runs already"), the_only_one(tmp_path):
        pass
    holder.kill()
    holder.wait()
    with the_only_one(tmp_path):
        pass


class Pages(BaseHTTPRequestHandler):
    """Airflow's REST interface as far as it is asked; `state` is the test's."""

    state: dict

    def reply(self, body):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def do_GET(self):
        if "health" in self.path:
            return self.reply({part: {"status": self.state.get(part, "healthy")} for part in PARTS})
        assert self.headers["Authorization"] == "Bearer t"
        if "importErrors" in self.path:
            return self.reply({"import_errors": self.state["errors"]})
        return self.reply({"dags": [{"dag_id": dag_id} for dag_id in self.state["dags"]]})

    def do_POST(self):
        assert json.loads(self.rfile.read(int(self.headers["Content-Length"]))) == {"username": "admin", "password": "secret"}
        self.reply({"access_token": "t"})

    def do_PATCH(self):
        self.state["unpaused"].append(self.path.split("/")[-1].partition("?")[0])
        self.reply({})

    def log_message(self, *_):
        return


@contextmanager
def serving(state):
    server = HTTPServer(("127.0.0.1", 0), type("These", (Pages,), {"state": state}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def home(tmp_path):
    (tmp_path / PASSWORDS).write_text('{"admin": "secret"}')
    return tmp_path


def test_what_is_missing_is_told_until_everything_is_there(home):
    state = {"scheduler": "unhealthy", "dag_processor": None, "dags": [], "errors": [], "unpaused": []}
    with serving(state) as address:
        api = AirflowApi(address, home)
        assert api.waits_for() == "scheduler, dag processor"
        state |= {"scheduler": "healthy", "dag_processor": "healthy", "dags": sorted(our_dags())[1:]}
        assert api.waits_for() == "contexts_daily"
        state["dags"] = ["somebody_elses", *our_dags()]
        assert api.waits_for() == ""
        assert state["unpaused"] == []
        api.unpause()
        assert state["unpaused"] == ["contexts_daily", "explanations_daily", "intents_daily", "judging_daily", "maintenance_daily"]
    assert AirflowApi(address, home).waits_for() == "api server"


def test_a_dag_that_cannot_be_loaded_is_told_at_once(home):
    state = {"dags": [], "errors": [{"filename": "intents_daily.py", "stack_trace": "Traceback\n  ...\nSyntaxError: what"}]}
    with serving(state) as address, pytest.raises(NightError, match=r"cannot load intents_daily\.py: SyntaxError: what"):
        AirflowApi(address, home).waits_for()


def test_an_airflow_that_dies_while_starting_is_told_with_its_last_words(home):
    (home / "airflow.log").write_text("standalone | Starting\nno room\n")
    child, _ = start_stand_in("import os; print(os.getpid(), flush=True)")
    child.wait()
    with pytest.raises(NightError, match=r"did not start \(api server is missing\): .*no room"):
        wait_until_ready(child, AirflowApi("http://127.0.0.1:1", home), home / "airflow.log")
