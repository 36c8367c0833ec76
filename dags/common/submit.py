"""Tasks that run our jobs as child processes: `spark_task`, `publish_task` and `upkeep_task`. What runs on Ray is in ray_jobs.py.

A task takes its job for done only when the job said so itself: exit code 0 **and** the line `RECGPT-MANIFEST {...}` that the job
prints after its row `done` stands in `nights`. Afterwards the task tells the assets of the job's tables, keyed by ds.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import deque
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from dags.common.arguments import RunIdentity, absolute, audience_arguments, job_arguments, run_identity
from dags.common.assets import table_asset, tables_of
from dags.common.lineage import lineage_of
from recgpt_ops.errors import UsageError
from recgpt_ops.settings import load_settings
from recgpt_ops.tables import ROOT, load_contract

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

MANIFEST = "RECGPT-MANIFEST "
FIRST_TABLE = "night_users"
CLOCK = "scheduled"  # Airflow's name for a run that neither a person, nor a backfill, nor an asset started
TAIL_LINES = 20  # of the output, kept for the reason of a failure


def module_of(job: str) -> str:
    """`jobs/spark/user_contexts.py` -> `jobs.spark.user_contexts`."""
    return job.removesuffix(".py").replace("/", ".")


def find_manifest(output: str) -> dict[str, Any] | None:
    """The job's own last word, or None when it did not get that far."""
    for line in reversed(output.splitlines()):
        _, is_found, text = line.partition(MANIFEST)  # not at the start only: stderr without a line break may stand before it
        if is_found:
            manifest: dict[str, Any] = json.loads(text)
            return manifest
    return None


def require_manifest(job: str, output: str) -> dict[str, Any]:
    """The manifest; a job that ended well without one was removed half-way, whatever its status says."""
    manifest = find_manifest(output)
    if manifest is None or manifest["state"] != "done":
        raise AirflowException(f"{job}: ended without its manifest, so nothing says that its table landed; it is tried again")
    return manifest


def reason_of(lines: list[str]) -> str:
    """The last thing that a job said; of one that failed its reason, which it tells on stderr (`user_contexts: ...`)."""
    told = [line for line in lines if line.strip()]
    return told[-1] if told else "it said nothing"


class JobOperator(BaseOperator):
    """Runs one job of a night. `job` is the path that contracts name as producer; `is_head`: the DAG starts a night."""

    def __init__(self, *, job: str, is_head: bool = False, **arguments: Any) -> None:
        super().__init__(outlets=[table_asset(table) for table in tables_of(job)], **arguments)
        self.job, self.is_head = job, is_head
        self.ds: str | None = None  # this and the next two are known once the run is identified: for the failure callback and lineage
        self.warehouse: str | None = None
        self.exit_code: int | None = None
        self.is_killed = False

    def identify(self, context: Mapping[str, Any]) -> RunIdentity:
        """The run's identity; a run that names no day can only fail, so it is not retried.

        A run that the clock started is skipped where nights are only asked for: a start date or an end date of the DAG, Airflow's own
        means, would also keep tasks from runs that people start with a logical date.
        """
        if self.is_head and getattr(context.get("dag_run"), "run_type", None) == CLOCK and not load_settings().night.is_scheduled:
            raise AirflowSkipException("setting night.is_scheduled is false: nights are asked for here, the clock starts none")
        try:
            identity = run_identity(context, is_head=self.is_head)
        except UsageError as error:
            self.exit_code = error.exit_code
            raise AirflowFailException(str(error)) from error
        self.ds, self.warehouse = identity.ds, identity.warehouse
        return identity

    def command(self, context: Mapping[str, Any], identity: RunIdentity, *, python: str = sys.executable) -> list[str]:
        """The job's command line."""
        is_first = self.job == load_contract(FIRST_TABLE).producer
        extra = audience_arguments(context.get("params") or {}) if is_first else []
        return [python, "-m", module_of(self.job), *job_arguments(identity), *extra]

    def fail(self, code: int | None, lines: list[str]) -> None:
        """Raises why the job failed; wrong use (exit 2) and a task that somebody ended are not tried again."""
        self.exit_code = code
        if self.is_killed:
            raise AirflowFailException(f"{self.job}: was ended from outside; its job is stopped")
        if code == UsageError.exit_code:
            raise AirflowFailException(reason_of(lines))
        raise AirflowException(f"{reason_of(lines)} (exit code {code})")

    def tell_assets(self, context: Mapping[str, Any], identity: RunIdentity) -> None:
        """Adds the events that start what comes next: the key is the business date, the generation travels along."""
        for asset in self.outlets:
            event = context["outlet_events"][asset]
            event.add_partitions(identity.ds)
            event.extra = {"publish_id": identity.publish_id, "warehouse": identity.warehouse}

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorLineage[Any, Any] | None:
        """The tables in and out, asked for by Airflow's OpenLineage provider when the task has ended; None before a run is known."""
        return None if self.warehouse is None else lineage_of(self.job, self.warehouse)


class ProcessJobOperator(JobOperator):
    """A job as a child process of the task, its output live in the task's log; ended with the task (see guard.py)."""

    child: subprocess.Popen[str] | None = None

    def execute(self, context: Any) -> dict[str, Any]:
        """Runs the job to its end and returns its manifest."""
        identity = self.identify(context)
        lines = self.run_child(self.command(context, identity))
        manifest = require_manifest(self.job, "\n".join(lines))
        self.tell_assets(context, identity)
        return manifest

    def run_child(self, command: list[str]) -> list[str]:
        """Runs a command to its end and returns its last lines; raises why it failed."""
        guarded = [sys.executable, "-m", "dags.common.guard", *command]
        lines: deque[str] = deque(maxlen=TAIL_LINES)
        self.child = subprocess.Popen(
            guarded, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
        with self.child as child:  # an exception (such as the time limit) closes the pipe, and so ends the job
            assert child.stdout is not None
            try:
                for line in child.stdout:
                    sys.stdout.write(line)
                    lines.append(line.rstrip())
            except BaseException:
                self.end_child()
                raise
            code = child.wait()
        if code != 0 or self.is_killed:
            self.fail(code, list(lines))
        return list(lines)

    def on_kill(self) -> None:
        """Ends the job when somebody ends the task."""
        self.is_killed = True
        self.end_child()

    def end_child(self) -> None:
        """Closes the pipe that the guard watches."""
        if self.child is not None and self.child.stdin is not None:
            self.child.stdin.close()


class UpkeepOperator(ProcessJobOperator):
    """A job that belongs to no night: it has no day, leaves no manifest and tells no asset."""

    def execute(self, context: Any) -> dict[str, Any]:
        """Runs the job to its end and returns its last line."""
        params = context.get("params") or {}
        self.warehouse = absolute(params.get("warehouse") or load_settings().warehouse)
        lines = self.run_child([sys.executable, "-m", module_of(self.job), "--warehouse", self.warehouse])
        return {"told": reason_of(lines)}


def spark_task(table: str, *, limit: timedelta, is_head: bool = False) -> ProcessJobOperator:
    """The task that makes one table with Spark: embedded Sail or a Spark Connect address, by setting, in the job's own process."""
    job = load_contract(table).producer
    if not job.startswith("jobs/spark/"):
        raise UsageError(f"{table}: its contract names {job} as producer, which is no Spark job; use ray_task")
    return ProcessJobOperator(task_id=table, job=job, is_head=is_head, execution_timeout=limit)


def publish_task(*, limit: timedelta) -> ProcessJobOperator:
    """The task that moves the pointer."""
    job = load_contract("publications").producer
    return ProcessJobOperator(task_id=Path(job).stem, job=job, execution_timeout=limit)


def upkeep_task(job: str, *, limit: timedelta, trigger_rule: str = "all_success") -> UpkeepOperator:
    """A task of maintenance_daily."""
    return UpkeepOperator(task_id=Path(job).stem, job=job, execution_timeout=limit, trigger_rule=trigger_rule)
