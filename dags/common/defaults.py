"""What every task of ours has unless its DAG file says otherwise, and what is said when one fails."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from airflow.sdk import Param

from dags.common.assets import tables_of

OWNER = "recgpt-ops"
END_OF_GROUP = "::endgroup::"  # Airflow's own mark in a task's log


def tell_failure(context: Mapping[str, Any]) -> None:
    """The failure callback: one line with table, ds, reason and next step.

    Airflow's pages fold what a callback says into the group "Post Execute"; the line must be seen without a click.
    """
    sys.stdout.write(f"{END_OF_GROUP}\n{failure_line(context)}\n")
    sys.stdout.flush()


def failure_line(context: Mapping[str, Any]) -> str:
    """`FAILED table=user_contexts ds=2017-10-30 exit=1 reason=... next=...`, for people, log search and alarms.

    `exit` is the job's exit code (2: it could not run), 1 where the task failed without one.
    """
    task, params = context["task"], context.get("params") or {}
    tables = ",".join(tables_of(getattr(task, "job", ""))) or task.task_id
    ds = getattr(task, "ds", None) or params.get("ds") or context.get("partition_key") or "unknown"
    reason = " ".join(str(context.get("exception") or "the task ended without a word").split())
    return (
        f"FAILED table={tables} ds={ds} exit={getattr(task, 'exit_code', None) or 1} reason={reason} "
        f"next=mend the reason, then clear the task {task.dag_id}.{task.task_id}: finished stages are not done again; "
        f"see infra/docs/runbooks/{task.dag_id}.md"
    )


DEFAULT_ARGS: dict[str, Any] = {
    "owner": OWNER,
    # Twice, because a lost worker, a dead engine or a full queue are gone a minute later. Wrong use (exit 2) is not retried at all.
    "retries": 2,
    "retry_delay": timedelta(minutes=1),
    "on_failure_callback": tell_failure,
}

# What a DAG takes that goes on with a night: everything else it finds in `nights` by the publish_id.
FOLLOWING_PARAMS: dict[str, Param] = {
    "ds": Param(None, type=["null", "string"], format="date", description="Business date; the partition key when empty"),
    "publish_id": Param(None, type=["null", "string"], description="Generation to finish; the event's when empty"),
    "warehouse": Param(None, type=["null", "string"], description="Root of the warehouse; the event's or the setting's when empty"),
}
