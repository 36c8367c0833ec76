"""Tasks that run our jobs through Ray's job API: `ray_task`. One path for the local head and for a cluster.

What happens to the task and what happens to the job are two things. The job's id is made of publish_id, job and a count, so that

- a second try finds the job of the first one and waits for it, also when the worker died right after submitting;
- a status that cannot be read is no status: the task asks again, and only FAILED or STOPPED lets a next job be submitted.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from airflow.sdk import ResumableJobMixin
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from dags.common.arguments import RunIdentity
from dags.common.assets import tables_of
from dags.common.submit import TAIL_LINES, JobOperator, require_manifest
from recgpt_ops.errors import UsageError
from recgpt_ops.settings import Ray, load_settings, own_variables
from recgpt_ops.tables import ROOT

ACTIVE = frozenset({"PENDING", "RUNNING"})
ENDED_BADLY = frozenset({"FAILED", "STOPPED"})
SUCCEEDED = "SUCCEEDED"
POLL_SECONDS = 1.0
UNREADABLE_SECONDS = 300.0  # a cluster's head that answers nothing for so long is gone; the next try looks again
LOCAL_UNREADABLE_SECONDS = 60.0  # a head on this machine has no network in between
MAX_SUBMISSIONS = 20  # of one job of one generation; more is a loop


def job_api(settings: Ray) -> str:
    """Address of the job API: the configured one, or that of the local head."""
    return settings.address or f"http://127.0.0.1:{settings.dashboard_port}"


def submission_id(publish_id: str, job: str, count: int) -> str:
    """`p41c5...-intents-1`: the same for every try until a job of that id has ended badly."""
    return f"{publish_id}-{Path(job).stem}-{count}"


def definite_status(read: Callable[[], Any], *, patience: float | None = None, pause: float = POLL_SECONDS) -> str:
    """Asks until the answer is a status that exists. An unreadable reply is no end state (it was once taken for one).

    `patience` None: as long as the place of the head asks for, a cluster's longer than this machine's.
    """
    if patience is None:
        patience = LOCAL_UNREADABLE_SECONDS if load_settings().ray.address is None else UNREADABLE_SECONDS
    deadline = time.monotonic() + patience
    while True:
        try:
            reply = read()
            status = str(getattr(reply, "value", reply))
        except (RuntimeError, ValueError, OSError) as error:  # HTTP 5xx, junk in the body, no connection
            status = f"{type(error).__name__}: {error}"
        if status in ACTIVE | ENDED_BADLY | {SUCCEEDED}:
            return status
        if time.monotonic() > deadline:
            raise AirflowException(f"Ray's job API gave no readable status for {patience:.0f} seconds, last {status[:200]!r}")
        time.sleep(pause)


class RayJobOperator(ResumableJobMixin, JobOperator):
    """A job on Ray. The task only submits, watches, and re-attaches on retry; nothing is computed in the worker."""

    external_id_key = "ray_submission_id"
    identity: RunIdentity
    running_id: str | None = None

    def client(self) -> Any:
        """The job API's client; imported here because it costs seconds, which no parse of a DAG file may cost."""
        settings = load_settings().ray
        if settings.address is None:
            os.environ["RAY_AUTH_MODE"] = "disabled"  # as on the local head; else any token file of this user turns it on, on one side
        from ray.job_submission import JobSubmissionClient

        address = job_api(settings)
        try:
            return JobSubmissionClient(address)
        except ConnectionError as error:
            raise AirflowException(f"no Ray head answers at {address}; start one with `recgpt engine up` or mend ray.address") from error

    def execute(self, context: Any) -> dict[str, Any]:
        """Submits or re-attaches, waits, and returns the job's manifest."""
        self.identity = self.identify(context)
        self.execute_resumable(context)
        assert self.running_id is not None
        manifest = require_manifest(self.job, self.client().get_job_logs(self.running_id))
        self.tell_assets(context, self.identity)
        return manifest

    def submit_job(self, context: Any) -> str:
        """Submits the job, or finds the one that an earlier try submitted and that has not ended badly."""
        client = self.client()
        for count in range(1, MAX_SUBMISSIONS + 1):
            wanted = submission_id(self.identity.publish_id, self.job, count)
            known = {details.submission_id for details in client.list_jobs()}
            if wanted not in known:
                self.submit(client, wanted, self.command(context, self.identity, python=self.python()))
                return wanted
            if definite_status(partial(client.get_job_status, wanted)) not in ENDED_BADLY:
                return wanted
        raise AirflowFailException(f"{self.job}: {MAX_SUBMISSIONS} jobs of {self.identity.publish_id} ended badly; read their logs")

    def submit(self, client: Any, wanted: str, command: list[str]) -> None:
        """One submission; the environment carries our settings, since the cluster's processes were started by somebody else."""
        variables = {**own_variables(), **load_settings().ray.runtime_env}
        if load_settings().ray.address is None:
            variables["PYTHONPATH"] = str(ROOT)
        client.submit_job(submission_id=wanted, entrypoint=shlex.join(command), runtime_env={"env_vars": variables})

    def python(self) -> str:
        """The interpreter of the job: ours on the local head, the image's own on a cluster."""
        return sys.executable if load_settings().ray.address is None else "python"

    def get_job_status(self, external_id: Any, context: Any) -> str:
        """A status that exists; see `definite_status`."""
        client = self.client()
        return definite_status(partial(client.get_job_status, external_id))

    def is_job_active(self, status: str) -> bool:
        """Waiting or running."""
        return status in ACTIVE

    def is_job_succeeded(self, status: str) -> bool:
        """Ended well, by Ray's word; the manifest is still asked for."""
        return status == SUCCEEDED

    def poll_until_complete(self, external_id: Any, context: Any) -> None:
        """Watches the job, its output live in the task's log, and raises why it failed."""
        client, shown = self.client(), 0
        self.running_id = external_id
        status = "PENDING"
        try:
            while status in ACTIVE:
                time.sleep(POLL_SECONDS)
                status = definite_status(partial(client.get_job_status, external_id))
                shown = show_new_output(client, external_id, shown)
        except BaseException:  # the time limit, or a task that somebody ends: the job goes with it
            self.stop(client)
            raise
        if status != SUCCEEDED or self.is_killed:
            output = client.get_job_logs(external_id)
            self.fail(client.get_job_info(external_id).driver_exit_code, output.splitlines()[-TAIL_LINES:])

    def get_job_result(self, external_id: Any, context: Any) -> None:
        """Remembers the job, for its manifest: a retry may find it ended."""
        self.running_id = external_id

    def on_kill(self) -> None:
        """Stops the job when somebody ends the task."""
        self.is_killed = True
        self.stop(self.client())

    def stop(self, client: Any) -> None:
        """Asks Ray to stop the job; one that has ended already is fine."""
        if self.running_id is not None:
            try:
                client.stop_job(self.running_id)
            except (RuntimeError, OSError) as error:  # OSError: no head answers any more, so its job is gone as well
                sys.stdout.write(f"{self.job}: {self.running_id} could not be stopped: {type(error).__name__}\n")


def show_new_output(client: Any, external_id: str, shown: int) -> int:
    """Writes what the job said since the last look; returns how much was shown. Output that cannot be read is shown next time."""
    try:
        output = client.get_job_logs(external_id)
    except (RuntimeError, OSError):
        return shown
    sys.stdout.write(output[shown:])
    sys.stdout.flush()
    return len(output)


def ray_task(job: str, *, limit: timedelta) -> RayJobOperator:
    """The task of one Ray job, such as `jobs/ray/intents.py`, which writes the three tables of one graph."""
    if not job.startswith("jobs/ray/") or not tables_of(job):
        raise UsageError(f"{job}: no contract names it as producer, or it is no Ray job")
    return RayJobOperator(task_id=Path(job).stem, job=job, execution_timeout=limit)
