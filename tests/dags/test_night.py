"""The real DAG files by dag test, with stand-ins for the jobs: order, identity, conf, and what happens after a failure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dags.common.night import DAGS, night_environment, parse_arguments, run_conf
from recgpt_ops.ids import publish_id_of
from recgpt_ops.tables import ROOT

# Runs a night in a process of its own, since Airflow holds its database for the life of a process. Each job appends its command
# line to a file; the job named in argv[3] fails.
SCRIPT = """
import json, os, sys
from pathlib import Path
from dags.common import night

warehouse, record, failing = sys.argv[1:4]
home = Path(warehouse) / "_airflow"
home.mkdir(parents=True)
os.environ.update(night.night_environment(home))  # before anything imports Airflow
from dags.common import ray_jobs, submit
from dags.common.defaults import DEFAULT_ARGS
DEFAULT_ARGS["retry_delay"] = 0.0
MANIFEST = 'RECGPT-MANIFEST {"state": "done"}'
command = submit.JobOperator.command

def stand_in(self, context, identity, python=sys.executable):
    line = json.dumps(command(self, context, identity)[2:])
    done = "sys.exit(2)" if self.task_id == failing else f"print({MANIFEST!r})"
    return [sys.executable, "-c", f"import sys; open({record!r}, 'a').write({line!r} + chr(10)); sys.stderr.write('no room'); {done}"]

class Cluster:
    logs = {}
    def list_jobs(self):
        return []
    def submit_job(self, *, submission_id, entrypoint, runtime_env):
        import shlex, subprocess
        self.logs[submission_id] = subprocess.run(shlex.split(entrypoint), capture_output=True, text=True).stdout
    def get_job_status(self, name):
        return "SUCCEEDED"
    def get_job_logs(self, name):
        return self.logs[name]

submit.JobOperator.command = stand_in
ray_jobs.RayJobOperator.client = lambda self: Cluster()
arguments = night.parse_arguments(["--warehouse", warehouse, "--ds", "2017-10-30", "--run-id", "r1", "--users", "8"])
sys.exit(night.run_night(night.run_conf(arguments)))
"""
STAGES = ["night_users", "behavior_days", "behavior_months", "behavior_years", "environment_signals", "user_contexts"]
LATER = [
    "jobs.ray.intents", "jobs.ray.candidate_items", "jobs.ray.explanations", "jobs.ray.tag_verdicts", "jobs.ray.explanation_verdicts",
    "jobs.publish_night",
]  # fmt: skip


def run_night(tmp_path: Path, failing: str) -> tuple[int, list[list[str]], str]:
    record = tmp_path / "jobs.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "warehouse"), str(record), failing],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert record.exists(), done.stdout + done.stderr
    return done.returncode, [json.loads(line) for line in record.read_text().splitlines()], done.stdout + done.stderr


@pytest.mark.slow
def test_a_night_runs_every_job_once_in_order_under_one_publish_id(tmp_path):
    code, commands, output = run_night(tmp_path, failing="")
    assert code == 0, output
    jobs = [command[0] for command in commands]
    assert jobs[0] == "jobs.spark.night_users"
    assert sorted(jobs[1:5]) == sorted(f"jobs.spark.{stage}" for stage in STAGES[1:5])
    assert jobs[5:] == ["jobs.spark.user_contexts", *LATER]
    assert {command[command.index("--publish-id") + 1] for command in commands} == {publish_id_of("r1")}
    assert commands[0][-4:] == ["--users", "8", "--why", "night"]
    assert not any("--users" in command for command in commands[1:])


@pytest.mark.slow
def test_a_failed_stage_ends_the_night_and_says_table_day_reason_and_next_step(tmp_path):
    code, commands, output = run_night(tmp_path, failing="user_contexts")
    assert code == 1
    assert [command[0] for command in commands][-1] == "jobs.spark.user_contexts"  # wrong use is not tried again, nothing comes after
    [line] = [line for line in output.splitlines() if line.startswith("FAILED ")]
    assert line.startswith("FAILED table=user_contexts ds=2017-10-30 exit=2 reason=no room next=mend the reason, then clear the task")


def test_conf_is_always_given_whole():
    """A DAG object keeps the parameters of its last test run, so leaving one out would take the old one."""
    conf = run_conf(parse_arguments(["--warehouse", "/shop", "--ds", "2017-10-30", "--run-id", "r1"]))
    assert conf["contexts_daily"] == {
        "ds": "2017-10-30", "warehouse": "/shop", "run_id": "r1", "scenario": None, "methods": [], "users": None, "user_ids": [],
        "why": "night",
    }  # fmt: skip
    following = {"ds": "2017-10-30", "warehouse": "/shop", "publish_id": publish_id_of("r1")}
    assert list(conf) == list(DAGS)
    assert all(conf[dag_id] == following for dag_id in ("intents_daily", "explanations_daily", "judging_daily"))


def test_airflow_keeps_its_own_files_below_the_warehouse(tmp_path):
    environment = night_environment(tmp_path / "_airflow")
    assert environment["AIRFLOW_HOME"] == str(tmp_path / "_airflow")
    assert environment["AIRFLOW__CORE__DAGS_FOLDER"] == str(ROOT / "dags")
