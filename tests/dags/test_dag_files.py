from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import AirflowSkipException

from dags.common.assets import table_asset, tables_of
from dags.common.defaults import OWNER
from dags.common.tags import Tag
from dags.contexts_daily import dag as contexts_daily
from dags.explanations_daily import dag as explanations_daily
from dags.intents_daily import dag as intents_daily
from dags.judging_daily import dag as judging_daily
from dags.maintenance_daily import dag as maintenance_daily
from recgpt_ops.settings import load_settings
from recgpt_ops.tables import ROOT, all_contracts

FILES = sorted(path for path in (ROOT / "dags").glob("*.py") if path.stem != "__init__")
DAGS = [contexts_daily, intents_daily, explanations_daily, judging_daily]  # in the order of the night
TASKS = [task for dag in DAGS for task in dag.tasks]
EVERY = [*DAGS, maintenance_daily]


def jobs_before(task) -> set[str]:
    """The jobs of all tasks upstream, in this DAG and in those that its schedule waits for, one after the other."""
    before = {one.job for one in task.get_flat_relatives(upstream=True)}
    return before | {one.job for dag in DAGS[: DAGS.index(task.dag)] for one in dag.tasks}


def test_every_file_is_one_dag_of_the_same_name():
    assert [path.stem for path in FILES] == ["contexts_daily", "explanations_daily", "intents_daily", "judging_daily", "maintenance_daily"]
    assert sorted(dag.dag_id for dag in EVERY) == [path.stem for path in FILES]


@pytest.mark.parametrize("dag", EVERY, ids=lambda dag: dag.dag_id)
def test_a_dag_has_manual_tags_and_runs_one_at_a_time(dag):
    for heading in ("**Delivers**", "**Reads**", "**Starts**", "**By hand**", "**Backfill**", "**When a task fails**", "**Do not**"):
        assert heading in dag.doc_md
    runbook = re.search(r"Runbook: (\S+)", dag.doc_md)[1]
    assert (ROOT / runbook).is_file()
    assert set(dag.tags) <= {str(tag) for tag in Tag}
    assert (dag.catchup, dag.max_active_runs) == (False, 1)


@pytest.mark.parametrize("task", [*TASKS, *maintenance_daily.tasks], ids=lambda task: task.task_id)
def test_a_task_has_owner_retries_time_limit_and_failure_callback(task):
    assert task.owner == OWNER
    assert task.retries == 2
    assert task.execution_timeout is not None
    assert [callback.__name__ for callback in task.on_failure_callback] == ["tell_failure"]


def test_every_parameter_is_described_and_documented_in_the_manual():
    for dag in EVERY:
        for name, param in dag.params.items():
            described = dag.params.get_param(name)
            assert described.description, (dag.dag_id, name)
            assert f"| `{name}` |" in dag.doc_md or name == "run_id", (dag.dag_id, name, param)


def test_every_night_and_state_table_is_made_by_exactly_one_task():
    made = [table for task in TASKS for table in tables_of(task.job)]
    wanted = [name for name, contract in all_contracts().items() if contract.kind in ("night", "state")]
    assert sorted(made) == sorted([*wanted, "publications"])


def test_edges_are_the_readers_that_the_contracts_name():
    producer = {name: contract.producer for name, contract in all_contracts().items()}
    for task in TASKS:
        for name, contract in all_contracts().items():
            reads = any(reader in tables_of(task.job) for reader in contract.readers)
            if reads and contract.kind in ("night", "state") and producer[name] != task.job:
                assert producer[name] in jobs_before(task), f"{task.task_id} reads {name} without waiting for {producer[name]}"


def test_a_task_tells_the_assets_of_its_tables():
    for task in TASKS:
        assert task.outlets == [table_asset(table) for table in tables_of(task.job)]
    assert table_asset("intent_tags").uri == "recgpt://tables/intent_tags_v1"


def test_each_dag_waits_for_the_last_table_of_the_one_before_of_the_same_day():
    waits_for = {dag.dag_id: dag.timetable.asset_condition for dag in DAGS[1:]}
    assert waits_for == {
        "intents_daily": table_asset("user_contexts"),
        "explanations_daily": table_asset("candidate_items"),
        "judging_daily": table_asset("explanations"),
    }
    for before, dag in pairwise(DAGS):
        [last] = before.leaves  # its event comes when the DAG before has nothing left to do
        assert dag.timetable.asset_condition in last.outlets


def test_the_pointer_moves_last_and_nowhere_else():
    assert [task.task_id for task in TASKS if tables_of(task.job) == ("publications",)] == ["publish_night"]
    assert [task.task_id for task in judging_daily.leaves] == ["publish_night"]
    assert [dag.dag_id for dag in DAGS if str(Tag.PUBLISHES) in dag.tags] == ["judging_daily"]


def test_the_clock_starts_nothing_where_days_are_of_the_past():
    assert not load_settings().night.is_scheduled
    assert load_settings({"RECGPT_ENV": "prod"}).night.is_scheduled
    [night_users] = contexts_daily.roots
    for run_type in ("manual", "backfill", "asset_triggered", "scheduled"):
        context = {"params": {"ds": "2017-10-30", "warehouse": "/shop"}, "run_id": "r", "dag_run": SimpleNamespace(run_type=run_type)}
        if run_type == "scheduled":
            with pytest.raises(AirflowSkipException, match="is_scheduled is false"):
                night_users.identify(context)
        else:
            assert night_users.identify(context).ds == "2017-10-30"
    assert (contexts_daily.start_date, contexts_daily.end_date) == (None, None)  # either would empty runs with a logical date


def test_the_head_is_due_when_its_day_is_over():
    assert contexts_daily.timetable.key_format == "%Y-%m-%d"
    assert contexts_daily.timetable.run_offset == -1  # at midnight the day that just ended is due


def test_case_084_no_dag_code_reads_another_runs_success():
    for path in Path(ROOT / "dags").rglob("*.py"):
        assert not re.search(r"prev_|get_previous|data_interval|yesterday_ds|\bds_nodash\b", path.read_text()), path


def test_case_085_queued_days_start_one_at_a_time():
    """Airflow's own limit; the second lock is the fence of the attempt, tested with the pointer."""
    assert [(dag.max_active_runs, dag.catchup) for dag in DAGS] == [(1, False)] * 4


def test_case_087_a_missed_night_is_found_by_its_key():
    """The key is made from the date, so a night that vanished beside a backfill can be run afterwards under its own key."""
    assert contexts_daily.timetable.expression == "0 0 * * *"  # midnight: backfills and hand-started runs meet on the same instant
