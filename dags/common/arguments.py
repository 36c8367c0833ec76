"""From a run to the command line of its jobs.

    run of ds=2017-10-30  ->  --warehouse /data/shop --ds 2017-10-30 --publish-id p41c5... --run-id scheduled__...

Only the first job (`night_users`) takes methods and audience from the run's parameters; it writes them to `nights`, where every
later job finds them by the publish_id. So a DAG that was started by an asset needs no parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dags.common.dates import ASK, business_date
from recgpt_ops.errors import UsageError
from recgpt_ops.ids import publish_id_of
from recgpt_ops.settings import load_settings
from recgpt_ops.tables import ROOT


class RunIdentity(NamedTuple):
    """What a run is about: the warehouse, the business date, and the generation it writes."""

    warehouse: str
    ds: str
    publish_id: str
    run_id: str


def run_identity(context: Mapping[str, Any], *, is_head: bool) -> RunIdentity:
    """The identity of a task's run. A head makes a publish_id of its run; the others are told one, by parameter or by event.

    `is_head`: this DAG starts a night (contexts_daily).
    """
    params = context.get("params") or {}
    told = triggering_extra(context)
    settings = load_settings()
    ds = business_date(context, settings.night.cron_time_zone)
    run_id = params.get("run_id") or context["run_id"]
    publish_id = params.get("publish_id") or told.get("publish_id") or (publish_id_of(run_id) if is_head else None)
    if not publish_id:
        raise UsageError(
            f"ds={ds}: this run was told no publish_id, neither by parameter nor by the event that starts it; {ASK} and "
            f"publish_id (`recgpt status --ds {ds}` lists them), or start contexts_daily, which starts this one"
        )
    return RunIdentity(absolute(params.get("warehouse") or told.get("warehouse") or settings.warehouse), ds, publish_id, run_id)


def triggering_extra(context: Mapping[str, Any]) -> dict[str, Any]:
    """What the newest event that started this run carries; empty when a person or a schedule started it."""
    events = [event for group in (context.get("triggering_asset_events") or {}).values() for event in group]
    newest = max(events, key=lambda event: event.timestamp, default=None)
    return dict(newest.extra or {}) if newest is not None else {}


def absolute(warehouse: str) -> str:
    """The warehouse as a path that means the same in every process; relative ones start at the project. Addresses stay."""
    return warehouse if "://" in warehouse else str((ROOT / Path(warehouse)).resolve())


def job_arguments(identity: RunIdentity) -> list[str]:
    """What every job of a night is given."""
    return ["--warehouse", identity.warehouse, "--ds", identity.ds, "--publish-id", identity.publish_id, "--run-id", identity.run_id]


def audience_arguments(params: Mapping[str, Any]) -> list[str]:
    """What the first job is given besides: recipes, users, scenario and why."""
    arguments = ["--scenario", params.get("scenario") or load_settings().night.scenario]
    if methods := params.get("methods"):
        arguments += ["--methods", ",".join(methods)]
    if (users := params.get("users")) is not None:
        arguments += ["--users", str(users)]
    for user_id in params.get("user_ids") or ():
        arguments.append(f"--user={user_id}")  # one word, so that an id may begin with a dash
    return [*arguments, "--why", params.get("why") or "night"]
