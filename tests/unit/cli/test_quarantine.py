"""Rows in quarantine: counted, each attempt readable, and run again as a night of exactly their users."""

from __future__ import annotations

import json

import pytest

from recgpt_ops.commands import replaying
from recgpt_ops.commands.quarantine_rows import Filter, counted, history, read_quarantine
from recgpt_ops.commands.replaying import open_users, replay_orders
from recgpt_ops.delta.quarantine import QuarantineRow, quarantine_rows
from recgpt_ops.errors import UsageError
from tests.unit.cli.conftest import DS, add_audience, add_events, add_tags, begin, publish, write
from tests.unit.cli.test_cli import told

BASE = {"ds": DS, "scenario": "default", "method": "v2"}


def failure(user_id: str, reason: str, attempt: int, *, stage: str = "intents", key: str | None = None, **more: str) -> QuarantineRow:
    names = {"table_name": stage, "row_key": key or user_id, "stage": stage, "detail": f"{reason} in attempt {attempt}", "raw": "context"}
    return QuarantineRow(**{**BASE, **names, "reason": reason, "user_id": user_id, "attempt": attempt, **more})


@pytest.fixture
def degraded(warehouse, settings):
    """A night of four users: u1 computed, u2 failed, u3 was in quarantine once and has a result by now, u4 lacks a text."""
    begin(warehouse, settings, "p1")
    add_audience(warehouse, "p1", u1="computed", u2="computed", u3="computed", u4="computed")
    add_tags(warehouse, "p1", "u1", "u3", "u4")
    assignments = [
        {
            **BASE, "publish_id": "p1", "user_id": user_id, "item_id": "i1", "explanation_id": "e1", "rank": 1, "status": status,
            "explanation_made_by": None if status == "failed" else "p1",
        }
        for user_id, status in (("u1", "written"), ("u4", "failed"))
    ]  # fmt: skip
    write(warehouse, "explanation_assignments", assignments)
    publish(warehouse, settings, "p1")
    quarantine_rows(warehouse, [failure("u2", "timeout", 1), failure("u3", "poison", 1)])
    quarantine_rows(warehouse, [failure("", "claims", 1, stage="explanations", key="e1")._replace(user_id=None)])
    return warehouse


def test_case_022_a_row_that_failed_three_ways_on_three_attempts_tells_all_three(warehouse):
    for attempt, reason in enumerate(("prompt_too_long", "timeout", "poison"), start=1):
        quarantine_rows(warehouse, [failure("u2", reason, attempt)])
        assert quarantine_rows(warehouse, [failure("u2", reason, attempt)]) == 0  # a job that is run again
    rows = history(read_quarantine(warehouse, Filter()), "u2")
    assert [(row["attempt"], row["reason"]) for row in rows] == [(1, "prompt_too_long"), (2, "timeout"), (3, "poison")]
    assert quarantine_rows(warehouse, [failure("u2", "poison", 4)]) == 1  # the same fault of another attempt


def test_rows_are_counted_by_stage_and_reason_with_the_newest_example(warehouse):
    quarantine_rows(warehouse, [failure("u1", "timeout", 1), failure("u2", "timeout", 1), failure("u3", "poison", 1)])
    quarantine_rows(warehouse, [failure("u2", "timeout", 2)])
    rows = {row["reason"]: row for row in counted(read_quarantine(warehouse, Filter(ds=DS)))}
    assert {reason: (row["rows"], row["keys"], row["attempts"]) for reason, row in rows.items()} == {
        "timeout": (3, 2, 2),
        "poison": (1, 1, 1),
    }
    assert (rows["timeout"]["newest_key"], rows["timeout"]["newest_detail"]) == ("u2", "timeout in attempt 2")


@pytest.mark.parametrize(
    ("chosen", "count"),
    [(Filter(), 3), (Filter(ds="2017-10-29"), 0), (Filter(stage="explanations"), 1), (Filter(reason="poison"), 1),
     (Filter(methods=("v1",)), 0), (Filter(user_ids=("u2", "u3")), 2), (Filter(ds=DS, stage="intents", user_ids=("u2",)), 1)],
)  # fmt: skip
def test_options_leave_out_the_other_rows(degraded, chosen, count):
    assert len(read_quarantine(degraded, chosen)) == count


def test_only_users_who_still_lack_a_result_are_replayed(degraded):
    rows = read_quarantine(degraded, Filter(ds=DS))
    assert open_users(degraded, rows, ds=DS, scenario="default") == {"v2": {"u2", "u4"}}
    poisoned = read_quarantine(degraded, Filter(ds=DS, reason="poison"))
    assert open_users(degraded, poisoned, ds=DS, scenario="default") == {}


def test_all_who_are_shown_a_text_whose_verdict_failed_are_replayed(degraded):
    assignment = {**BASE, "publish_id": "p1", "item_id": "i2", "rank": 2, "status": "written", "explanation_made_by": "p1"}
    write(degraded, "explanation_assignments", [assignment | {"user_id": user_id, "explanation_id": "e2"} for user_id in ("u1", "u3")])
    verdict = {**BASE, "publish_id": "p1", "explanation_id": "e2"}
    verdicts = [("e2", "panel", "failed"), ("e2", "one_shot", "judged"), ("e1", "panel", "judged")]
    write(
        degraded,
        "explanation_verdicts",
        [verdict | {"explanation_id": id_, "judge_method": judge, "status": status} for id_, judge, status in verdicts],
    )
    for key in ("e2 panel", "e1 panel"):  # the second has a verdict by now
        quarantine_rows(degraded, [failure("", "timeout", 1, stage="explanation_verdicts", key=key)._replace(user_id=None)])
    rows = read_quarantine(degraded, Filter(ds=DS, stage="explanation_verdicts"))
    assert open_users(degraded, rows, ds=DS, scenario="default") == {"v2": {"u1", "u3"}}


def test_methods_that_miss_the_same_users_are_one_night():
    orders = replay_orders({"v1": {"u1"}, "v2": {"u2", "u1"}, "v3": {"u1"}}, ds=DS, scenario="default")
    assert [(order.methods, order.user_ids, order.why) for order in orders] == [
        (("v1", "v3"), ("u1",), "replay"),
        (("v2",), ("u1", "u2"), "replay"),
    ]


def test_a_night_that_nobody_sees_is_run_and_not_replayed(warehouse):
    with pytest.raises(UsageError, match="no night of 2017-10-30 is visible"):
        open_users(warehouse, [], ds=DS, scenario="default")


def test_list_and_show_are_read_by_people_and_programs(capsys, degraded):
    code, out, err = told(capsys, f"quarantine list --ds {DS} --warehouse {degraded.root}")
    assert (code, err) == (0, "")
    assert f"recgpt quarantine replay --ds {DS}" in out
    rows = json.loads(told(capsys, f"quarantine list --format json --warehouse {degraded.root}")[1])
    assert sorted((row["stage"], row["reason"], row["rows"]) for row in rows) == [
        ("explanations", "claims", 1), ("intents", "poison", 1), ("intents", "timeout", 1),
    ]  # fmt: skip
    code, out, _ = told(capsys, f"quarantine show u2 --warehouse {degraded.root}")
    assert code == 0
    assert "The row as it came:\ncontext" in out
    assert f"recgpt quarantine replay --ds {DS} --user u2" in out
    code, out, err = told(capsys, f"quarantine show nobody --warehouse {degraded.root}")
    assert (code, out) == (2, "")
    assert "nothing in quarantine has the key 'nobody'" in err
    assert told(capsys, f"quarantine list --reason none --warehouse {degraded.root}")[1].endswith("that these options name\n")


def test_a_row_of_an_import_is_mended_in_its_file(capsys, warehouse):
    imported = QuarantineRow("behavior_events", "events.csv:7", "import", "bad_time", "expected a time", "u1,tomorrow", import_id="i1")
    assert quarantine_rows(warehouse, [imported]) == 1
    assert quarantine_rows(warehouse, [imported]) == 0  # imported again, it is the same row
    out = told(capsys, f"quarantine show events.csv:7 --warehouse {warehouse.root}")[1]
    assert "Mend it in its file (events.csv:7)" in out
    assert "recgpt import" in out


def test_replay_runs_a_night_of_exactly_these_users(capsys, degraded, monkeypatch):
    ordered = []
    monkeypatch.setattr(replaying, "run_night", lambda warehouse, settings, order: ordered.append(order))
    monkeypatch.setattr(replaying, "write_summary", lambda *_, **__: None)
    code, _, err = told(capsys, f"quarantine replay --ds {DS} --stage intents --warehouse {degraded.root}")
    assert (code, [order.user_ids for order in ordered]) == (0, [("u2",)])
    assert f"Replaying 1 user of {DS} by v2" in err
    code, out, _ = told(capsys, f"quarantine replay --ds {DS} --user u3 --warehouse {degraded.root}")
    assert (code, len(ordered)) == (0, 1)
    assert out.startswith("Nothing to replay: of 1 rows in quarantine")


def test_case_015_a_replay_from_other_inputs_is_refused_with_both_digests(capsys, degraded):
    add_events(degraded, "late", DS)
    code, out, err = told(capsys, f"quarantine replay --ds {DS} --stage intents --warehouse {degraded.root}")
    assert (code, out) == (2, "")
    assert "made from other inputs" in err
    assert "--rebuild" in err
