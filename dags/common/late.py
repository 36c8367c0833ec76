"""Says when a night is late: each DAG of a night has `night.deadline_hours`, counted from when its run was queued.

    LATE dag=intents_daily ds=2017-10-30 due=2026-11-30T07:00:00Z late=0:00:03 next=recgpt status --ds 2017-10-30 ...

Airflow calls `tell_late` once a run, in a process of its own; the run goes on. A run that failed, or that waits in a long backfill, is
told as well: its night is not there. The line stands in the callback's log and in
`_airflow/late.log` below the warehouse, for people, log search and alarms.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.sdk.definitions.callback import SyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

from dags.common.arguments import absolute
from recgpt_ops.settings import load_settings

FILE = "late.log"


def late_alert() -> DeadlineAlert:
    """The alert that every DAG of a night has. Runs of a partition have no logical date, so it counts from the queue."""
    return DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=timedelta(hours=load_settings().night.deadline_hours),
        callback=SyncCallback(tell_late),
    )


def tell_late(*, context: Mapping[str, Any], **_: Any) -> None:
    """The callback: one line to the log and to the warehouse's file. `context` holds the run and when it was due, as plain values."""
    line = late_line(context, now=datetime.now(UTC))
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
    conf = context["dag_run"].get("conf") or {}
    path = Path(absolute(conf.get("warehouse") or load_settings().warehouse)) / "_airflow" / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(line + "\n")


def late_line(context: Mapping[str, Any], *, now: datetime) -> str:
    """The line about one late run."""
    run = context["dag_run"]
    due = moment(context["deadline"]["deadline_time"])
    ds = run.get("partition_key") or (run.get("conf") or {}).get("ds") or "unknown"
    return (
        f"LATE dag={run['dag_id']} ds={ds} run={run.get('dag_run_id') or run.get('run_id')} due={due:%Y-%m-%dT%H:%M:%SZ} "
        f"late={timedelta(seconds=round((now - due).total_seconds()))} "
        f"next=recgpt status --ds {ds} shows the stage it is at; readers see the night before; see infra/docs/runbooks/{run['dag_id']}.md"
    )


def moment(told: datetime | str) -> datetime:
    """A time as Airflow hands it over, also as text."""
    return told if isinstance(told, datetime) else datetime.fromisoformat(told)
