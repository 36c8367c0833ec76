"""What OpenLineage is told of each task: the contracts' tables, no more and no less, in the warehouse of the run."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from dags.common.arguments import RunIdentity
from dags.common.assets import tables_of
from dags.common.environment import airflow_environment
from dags.common.lineage import namespace_of, tables_read_by
from dags.contexts_daily import dag as contexts_daily
from dags.explanations_daily import dag as explanations_daily
from dags.intents_daily import dag as intents_daily
from dags.judging_daily import dag as judging_daily
from recgpt_ops.tables import all_contracts

TASKS = [task for dag in (contexts_daily, intents_daily, explanations_daily, judging_daily) for task in dag.tasks]


def told_by(task, warehouse: str = "/data/shop"):
    task.warehouse = warehouse
    try:
        return task.get_openlineage_facets_on_complete(None)
    finally:
        task.warehouse = None


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.task_id)
def test_a_task_names_exactly_the_tables_of_its_contracts(task):
    made = {contract.table_id for contract in all_contracts().values() if contract.producer == task.job}
    read = {
        contract.table_id
        for contract in all_contracts().values()
        if set(contract.readers) & {other.name for other in all_contracts().values() if other.producer == task.job}
    } - made
    facets = told_by(task)
    assert {dataset.name for dataset in facets.outputs} == made
    assert {dataset.name for dataset in facets.inputs} == read
    assert {dataset.namespace for dataset in [*facets.inputs, *facets.outputs]} == {"file:///data/shop"}
    assert made
    assert read


def test_the_tables_of_two_jobs_by_hand():
    assert tables_of("jobs/ray/tag_verdicts.py") == ("tag_verdicts",)
    assert set(tables_read_by("jobs/spark/user_contexts.py")) >= {"night_users", "behavior_days", "environment_signals", "user_profiles"}
    assert "tag_proposals" not in tables_read_by("jobs/ray/intents.py")  # made and read inside the one job
    assert {"tag_verdicts", "explanation_verdicts", "night_users"} <= set(tables_read_by("jobs/publish_night.py"))


def test_nothing_is_told_before_the_run_is_known():
    assert TASKS[0].get_openlineage_facets_on_complete(None) is None


def test_identifying_a_run_makes_its_warehouse_known():
    run = SimpleNamespace(run_type="manual")
    context = {"params": {"ds": "2017-10-30", "warehouse": "/data/shop"}, "run_id": "r", "dag_run": run}
    [task] = [task for task in contexts_daily.tasks if task.task_id == "night_users"]
    try:
        assert isinstance(task.identify(context), RunIdentity)
        assert task.warehouse == "/data/shop"
    finally:
        task.ds = task.warehouse = None


@pytest.mark.parametrize(("warehouse", "namespace"), [("/data/a shop", "file:///data/a%20shop"), ("s3://bucket/shop", "s3://bucket/shop")])
def test_a_warehouse_is_named_by_its_address(warehouse, namespace):
    assert namespace_of(warehouse) == namespace


def test_events_are_appended_to_one_file():
    transport = json.loads(airflow_environment(Path("/data/home"), lineage=Path("/data/shop/_airflow"))["AIRFLOW__OPENLINEAGE__TRANSPORT"])
    assert transport == {"type": "file", "log_file_path": "/data/shop/_airflow/lineage.jsonl", "append": True}
