from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from recgpt_ops.cli import run
from recgpt_ops.runs import StageCounts, record_state
from tests.unit.cli.conftest import DS, add_events, begin, night_run

COMMANDS = [
    "import complete-journey", "import open-ecommerce", "import online-retail", "import events", "import items", "import profiles",
    "night", "plan", "quarantine list", "quarantine show", "quarantine replay",
    "status", "query", "engine up", "engine down", "engine status", "doctor",
]  # fmt: skip


def told(capsys, command: str, *more: str) -> tuple[int, str, str]:
    code = run([*command.split(), *more])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example_and_the_warehouse_option(capsys, command):
    code, out, err = told(capsys, command, "--help")
    assert (code, err) == (0, "")
    assert f"Example: recgpt {command}" in " ".join(out.split())
    assert "--warehouse" in out


def test_without_arguments_help_is_shown(capsys):
    code, out, _ = told(capsys, "")
    assert code == 0
    assert all(command.split()[0] in out for command in COMMANDS)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("night", "Missing option '--ds'"),
        ("nigth", "No such command 'nigth'. Did you mean 'night'?"),
        ("night --ds 2017-10-30 --users 0", "'--users': Input should be greater than or equal to 1. See"),
        ("night --ds 2017-10-30 --users many", "'--users': Input should be a valid integer"),
        ("status --format xml", "'xml' is not one of 'table', 'csv', 'json'"),
        ("night --ds 2017-10-30 --warehouse nowhere", "nowhere does not exist; run `recgpt import` to make one"),
        ("night --ds 2017-13-01 --warehouse {w}", "--ds: expected a date such as 2017-10-30, got '2017-13-01'"),
        ("night --ds 2017-10-30 --method v3 --warehouse {w}", "no such method; there are v1, "),
        ("night --ds 2018-10-30 --warehouse {w}", "has no data: behavior_events has days from 2017-10-29 to 2017-10-30"),
        ("night --ds 2017-10-30 --user u9 --warehouse {w}", "no profile as of 2017-10-30 for 'u9'"),
        ("import events --mapping none.yaml none.csv --warehouse {w}", "none.yaml"),
        ("import events --mapping none.yaml none.csv --arrived-ds 2017-1-1 --warehouse {w}", "--arrived-ds: expected"),
        ("import complete-journey --arrived-ds banana --warehouse {w}", "--arrived-ds: expected a date such as 2017-10-30, got 'banana'"),
        ("status --ds banana --warehouse {w}", "--ds: expected a date such as 2017-10-30, got 'banana'"),
        ("status --warehouse s3://bucket/shop", "warehouse 's3://bucket/shop' is no folder"),
        ("status --warehouse=", "warehouse '' is no folder"),
        ("status --warehouse ~nobodyatall/w", "warehouse '~nobodyatall/w': Could not determine home directory"),
        ("status --warehouse " + "w" * 300, "does not exist; run `recgpt import` to make one"),
        ("import complete-journey --path nowhere --warehouse {w}", "nowhere"),
    ],
)
def test_what_cannot_run_is_one_line_without_a_stack_trace_and_exit_code_2(capsys, warehouse, command, expected):
    code, out, err = told(capsys, command.format(w=warehouse.root))
    assert (code, out) == (2, "")
    assert err.startswith("recgpt: ")
    assert expected in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "sql", ["select * from intent_tagz", "drop table nights", "select tagg from intent_tags", "selec 1", "select '\udcff'"]
)
def test_a_wrong_query_is_one_line_and_exit_code_2(capsys, done, sql):
    code, out, err = told(capsys, "query", sql, "--warehouse", done.root)
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_a_query_reads_the_visible_night_in_three_formats(capsys, done):
    sql = "select user_id, rank, tag from intent_tags order by user_id"
    assert told(capsys, "query", sql, "--warehouse", done.root, "--format", "csv")[1] == (
        "user_id,rank,tag\nu1,1,red wine\nu2,1,red wine\n"
    )
    assert json.loads(told(capsys, "query", sql, "--warehouse", done.root, "--format", "json")[1])[0]["tag"] == "red wine"
    assert "red wine" in told(capsys, "query", sql, "--warehouse", done.root)[1]


def test_a_done_night_says_so_and_writes_nothing(capsys, done):
    before = sorted(path.stat().st_mtime_ns for path in Path(done.root).rglob("*"))
    code, out, err = told(capsys, f"night --ds {DS} --user u1 --method v2 --warehouse {done.root}")
    assert (code, err) == (0, "")
    assert "The night of 2017-10-30 by v2 is done: generation p1" in out
    assert f"recgpt status --ds {DS} --warehouse {done.root}" in out
    assert before == sorted(path.stat().st_mtime_ns for path in Path(done.root).rglob("*"))


def test_case_015_changed_inputs_are_refused_with_both_digests_and_the_next_step(capsys, done):
    add_events(done, "late", DS)
    code, out, err = told(capsys, f"night --ds {DS} --warehouse {done.root}")
    assert (code, out) == (2, "")
    assert "feed behavior_events changed; made from " in err
    assert f"recgpt night --ds {DS} --rebuild --warehouse {done.root}" in err


def test_status_shows_attempts_and_which_one_readers_see(capsys, done, settings):
    begin(done, settings, "p2", attempt=2)
    rows = json.loads(told(capsys, f"status --warehouse {done.root} --format json")[1])
    assert [(row["attempt"], row["state"], row["visible"], row["publish_id"]) for row in rows] == [
        (1, "running", True, "p1"),  # its publish_night was not recorded: this test called it without the job around it
        (2, "running", False, "p2"),
    ]


def test_status_of_a_night_shows_its_stages_and_their_errors(capsys, done, settings):
    failed = StageCounts(detail={"error": "user_contexts: no room"})
    record_state(night_run(done, settings, "p1", stage="user_contexts"), failed, state="failed", seconds=2.0)
    rows = json.loads(told(capsys, f"status --ds {DS} --warehouse {done.root} --format json")[1])
    assert [(row["stage"], row["state"], row["error"]) for row in rows] == [
        ("night_users", "done", None),
        ("user_contexts", "failed", "user_contexts: no room"),
    ]
    assert "no night of 2017-10-29 has run yet" in told(capsys, f"status --ds 2017-10-29 --warehouse {done.root}")[1]


def test_a_closed_pipe_is_no_error(monkeypatch):
    def broken(*_, **__):
        raise BrokenPipeError

    monkeypatch.setattr("recgpt_ops.cli.app", broken)
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert run(["status"]) == 0


def test_ctrl_c_ends_with_130_and_one_line(monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("recgpt_ops.cli.app", interrupted)
    assert run(["status"]) == 130
    assert capsys.readouterr().err == "recgpt: stopped; what had been published before stays as it was\n"


def test_an_unwritable_warehouse_is_told_in_one_line(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = told(capsys, f"night --ds {DS} --warehouse {tmp_path}/file")
    assert (code, "is a file" in err) == (2, True)
