from __future__ import annotations

from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from dags.common import ray_jobs
from dags.common.ray_jobs import RayJobOperator, definite_status
from recgpt_ops.ids import publish_id_of
from tests.dags.doubles import Events

MANIFEST = 'RECGPT-MANIFEST {"stage": "intents", "state": "done"}\n'
FIRST = f"{publish_id_of('head')}-intents-1"
SECOND = f"{publish_id_of('head')}-intents-2"


class Cluster:
    """Ray's job API as the operator uses it. `script` is what each status call of a job answers, the last answer for ever."""

    def __init__(self, jobs=None, logs=MANIFEST, script=("RUNNING", "SUCCEEDED"), exit_code=1):
        self.statuses = {name: [status] for name, status in (jobs or {}).items()}
        self.logs, self.script, self.exit_code = logs, script, exit_code
        self.submitted, self.stopped = [], []

    def list_jobs(self):
        return [SimpleNamespace(submission_id=name) for name in self.statuses]

    def submit_job(self, *, submission_id, entrypoint, runtime_env):
        assert submission_id not in self.statuses, "Ray refuses an id that exists"
        self.submitted.append((submission_id, entrypoint, runtime_env))
        self.statuses[submission_id] = list(self.script)

    def get_job_status(self, name):
        answers = self.statuses[name]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def get_job_logs(self, name):
        return self.logs

    def get_job_info(self, name):
        return SimpleNamespace(driver_exit_code=self.exit_code)

    def stop_job(self, name):
        self.stopped.append(name)


class Store(dict):
    def set(self, key, value):
        self[key] = value


@pytest.fixture
def run_task(monkeypatch):
    monkeypatch.setattr(ray_jobs, "POLL_SECONDS", 0.0)

    def run(cluster, store=None):
        task = RayJobOperator(task_id="intents", job="jobs/ray/intents.py")
        monkeypatch.setattr(task, "client", lambda: cluster)
        params = {"ds": "2017-10-30", "warehouse": "/shop", "publish_id": publish_id_of("head")}
        context = {"params": params, "run_id": "r2", "outlet_events": Events(), "task_state_store": Store() if store is None else store}
        manifest = task.execute(context)
        return manifest, context

    return run


def test_a_job_is_submitted_once_and_its_three_tables_are_told(run_task):
    cluster = Cluster()
    manifest, context = run_task(cluster)
    [(name, entrypoint, runtime)] = cluster.submitted
    assert name == FIRST
    assert "-m jobs.ray.intents --warehouse /shop --ds 2017-10-30 --publish-id" in entrypoint
    assert runtime["env_vars"]["PYTHONPATH"]
    assert manifest["state"] == "done"
    assert [asset.name for asset in context["outlet_events"]] == ["intent_plans_v1", "intent_tags_v1", "tag_proposals_v1"]


@pytest.mark.parametrize("status", ["PENDING", "RUNNING", "SUCCEEDED"])
@pytest.mark.parametrize("store", [Store(ray_submission_id=FIRST), Store()], ids=["id stored", "worker died right after submitting"])
def test_case_090_a_retry_finds_the_job_of_the_first_try(run_task, status, store):
    cluster = Cluster(jobs={FIRST: status})
    if status != "SUCCEEDED":
        cluster.statuses[FIRST] = [status, status, "SUCCEEDED"]
    run_task(cluster, store)
    assert cluster.submitted == []


@pytest.mark.parametrize("status", ["FAILED", "STOPPED"])
def test_case_090_only_a_job_that_ended_badly_is_started_again(run_task, status):
    cluster = Cluster(jobs={FIRST: status})
    run_task(cluster, Store(ray_submission_id=FIRST))
    assert [name for name, _, _ in cluster.submitted] == [SECOND]


@pytest.mark.parametrize("junk", ["", "<html>502</html>", RuntimeError("HTTP 500"), ConnectionError("reset"), ValueError("no JSON")])
def test_case_092_an_unreadable_status_is_asked_again_and_starts_nothing(run_task, junk):
    cluster = Cluster(script=("RUNNING", junk, "RUNNING", "SUCCEEDED"))
    run_task(cluster)
    assert len(cluster.submitted) == 1


def test_case_092_a_head_that_answers_nothing_for_long_ends_the_try():
    with pytest.raises(AirflowException, match="no readable status for 0 seconds, last 'soon'"):
        definite_status(lambda: "soon", patience=0, pause=0)


@pytest.mark.parametrize("logs", ["", "almost\n", 'RECGPT-MANIFEST {"state": "failed"}\n'])
def test_case_093_success_needs_the_jobs_own_manifest(run_task, logs):
    with pytest.raises(AirflowException, match="without its manifest"):
        run_task(Cluster(logs=logs))


@pytest.mark.parametrize(("exit_code", "kind"), [(1, AirflowException), (2, AirflowFailException), (None, AirflowException)])
def test_a_failed_job_tells_its_last_line(run_task, exit_code, kind):
    cluster = Cluster(logs="loading\nintents: no such model\n", script=("FAILED",), exit_code=exit_code)
    with pytest.raises(kind, match="intents: no such model"):
        run_task(cluster)


def test_case_094_a_job_is_stopped_when_its_task_runs_out_of_time(run_task):
    cluster = Cluster(script=("RUNNING", KeyboardInterrupt()))
    cluster.statuses = {}
    original = cluster.get_job_status

    def interrupted(name):
        if len(cluster.statuses[name]) == 1:
            raise KeyboardInterrupt
        return original(name)

    cluster.get_job_status = interrupted
    with pytest.raises(KeyboardInterrupt):
        run_task(cluster)
    assert cluster.stopped == [FIRST]


def test_a_head_that_dies_under_a_job_is_what_the_task_says_not_that_the_job_could_not_be_stopped(run_task, monkeypatch):
    monkeypatch.setattr(ray_jobs, "LOCAL_UNREADABLE_SECONDS", 0.0)
    cluster = Cluster(script=("RUNNING", ConnectionError("refused")))

    def refuse(name):
        raise ConnectionError("refused")

    cluster.stop_job = refuse
    with pytest.raises(AirflowException, match="no readable status for 0 seconds, last 'ConnectionError: refused'"):
        run_task(cluster)


def test_case_095_a_second_end_of_the_same_try_submits_nothing(run_task):
    """Two sweeps clear one dead task twice: both tries find the one job."""
    cluster = Cluster()
    run_task(cluster)
    run_task(cluster)
    assert len(cluster.submitted) == 1
