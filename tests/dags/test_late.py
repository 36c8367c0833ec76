from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dags.common.late import late_line, tell_late
from dags.contexts_daily import dag as contexts_daily
from dags.explanations_daily import dag as explanations_daily
from dags.intents_daily import dag as intents_daily
from dags.judging_daily import dag as judging_daily
from recgpt_ops.settings import load_settings

DUE = datetime(2026, 11, 30, 7, 0, tzinfo=UTC)


def told(deadline=DUE, **run):
    plain = {"dag_id": "intents_daily", "dag_run_id": "asset__1", "partition_key": "2017-10-30", "conf": {}}
    return {"dag_run": {**plain, **run}, "deadline": {"id": "d1", "deadline_time": deadline}}


@pytest.mark.parametrize("dag", [contexts_daily, intents_daily, explanations_daily, judging_daily], ids=lambda dag: dag.dag_id)
def test_every_dag_of_a_night_has_its_hours(dag):
    [alert] = dag.deadline if isinstance(dag.deadline, list) else [dag.deadline]
    assert alert.interval == timedelta(hours=load_settings().night.deadline_hours)
    assert alert.callback.path == "dags.common.late.tell_late"


@pytest.mark.parametrize("deadline", [DUE, "2026-11-30T07:00:00+00:00"])
def test_a_late_run_is_told_by_dag_day_delay_and_next_step(deadline):
    line = late_line(told(deadline), now=DUE + timedelta(minutes=1, seconds=3.4))
    assert line.startswith("LATE dag=intents_daily ds=2017-10-30 run=asset__1 due=2026-11-30T07:00:00Z late=0:01:03 next=recgpt status")
    assert "infra/docs/runbooks/intents_daily.md" in line


@pytest.mark.parametrize(
    ("run", "ds"),
    [({"partition_key": None, "conf": {"ds": "2017-10-29"}}, "2017-10-29"), ({"partition_key": None, "conf": None}, "unknown")],
)
def test_the_day_is_that_of_the_key_or_of_the_parameter(run, ds):
    assert f" ds={ds} " in late_line(told(**run), now=DUE)


def test_the_line_is_kept_in_the_warehouse_of_the_run(tmp_path, capsys):
    for _ in range(2):
        tell_late(context=told(conf={"warehouse": str(tmp_path)}), deadline="ignored")
    lines = (tmp_path / "_airflow" / "late.log").read_text().splitlines()
    assert len(lines) == 2
    assert capsys.readouterr().out.splitlines() == lines
