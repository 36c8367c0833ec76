from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from dags.common.arguments import audience_arguments, job_arguments, run_identity
from dags.common.defaults import failure_line
from recgpt_ops.errors import UsageError
from recgpt_ops.ids import publish_id_of
from recgpt_ops.tables import ROOT


def event(publish_id: str, minute: int):
    return SimpleNamespace(extra={"publish_id": publish_id, "warehouse": "/shop"}, timestamp=datetime(2026, 1, 1, 0, minute, tzinfo=UTC))


def test_the_head_makes_its_publish_id_of_its_run():
    context = {"params": {"warehouse": "/shop"}, "partition_key": "2017-10-30", "run_id": "scheduled__1"}
    identity = run_identity(context, is_head=True)
    assert identity == ("/shop", "2017-10-30", publish_id_of("scheduled__1"), "scheduled__1")
    assert run_identity(context, is_head=True) == identity  # a retry writes the same generation


def test_the_next_dag_finishes_the_generation_that_started_it():
    context = {"params": {}, "partition_key": "2017-10-30", "run_id": "asset__2",
               "triggering_asset_events": {"user_contexts": [event("p-new", 5), event("p-old", 1)]}}  # fmt: skip
    assert run_identity(context, is_head=False)[:3] == ("/shop", "2017-10-30", "p-new")
    context["params"] = {"publish_id": "p-told"}
    assert run_identity(context, is_head=False).publish_id == "p-told"


def test_a_later_dag_without_a_publish_id_asks_for_one():
    with pytest.raises(UsageError, match="told no publish_id"):
        run_identity({"params": {"ds": "2017-10-30"}, "run_id": "manual__1"}, is_head=False)


def test_a_relative_warehouse_starts_at_the_project():
    context = {"params": {"ds": "2017-10-30", "warehouse": "warehouse"}, "run_id": "r"}
    assert run_identity(context, is_head=True).warehouse == str(ROOT / "warehouse")


def test_jobs_get_their_identity_and_the_first_one_the_audience():
    identity = run_identity({"params": {"ds": "2017-10-30", "warehouse": "/shop"}, "run_id": "r"}, is_head=True)
    assert job_arguments(identity) == ["--warehouse", "/shop", "--ds", "2017-10-30", "--publish-id", publish_id_of("r"), "--run-id", "r"]
    told = {"users": 8, "user_ids": ["-7"], "methods": ["v1", "v2"], "scenario": None, "why": "rebuild"}
    assert audience_arguments(told) == [
        "--scenario", "default", "--methods", "v1,v2", "--users", "8", "--user=-7", "--why", "rebuild",
    ]  # fmt: skip
    assert audience_arguments({}) == ["--scenario", "default", "--why", "night"]  # the policy decides


def test_a_failure_names_table_ds_reason_and_next_step():
    task = SimpleNamespace(job="jobs/ray/intents.py", task_id="intents", dag_id="intents_daily", ds="2017-10-30", exit_code=2)
    line = failure_line({"task": task, "exception": ValueError("no model\nanywhere")})
    assert line.startswith("FAILED table=intent_plans,intent_tags,tag_proposals ds=2017-10-30 exit=2 reason=no model anywhere next=")
    assert "clear the task intents_daily.intents" in line
    assert "infra/docs/runbooks/intents_daily.md" in line
