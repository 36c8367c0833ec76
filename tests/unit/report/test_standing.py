"""What is said of a night that cannot be shown: one line, and an exit code."""

from __future__ import annotations

import pytest

from recgpt_ops.cli import run
from recgpt_ops.delta.records import append_records
from recgpt_ops.delta.warehouse import fix_identity, open_warehouse
from recgpt_ops.report.standing import newer_attempt
from tests.unit.report.nights import DS, stage_rows


@pytest.fixture
def empty(tmp_path):
    warehouse = open_warehouse(str(tmp_path / "warehouse"), create=True)
    fix_identity(warehouse, zone="America/New_York", locale="en-US")
    return warehouse


@pytest.fixture
def ask(tmp_path, capsys):
    """ask(warehouse): exit code, standard error, and whether anything was written."""

    def call(root: str, ds: str = DS, out: str = "reports") -> tuple[int, str, bool]:
        folder = tmp_path / out
        code = run(["report", "--ds", ds, "--warehouse", root, "--out", str(folder)])
        return code, capsys.readouterr().err, (folder / ds).exists()

    return call


def test_a_night_that_failed_half_way_is_told_with_its_stage_and_reason(empty, ask):
    append_records(empty, "nights", stage_rows(DS, "p1", ["v1", "v2"], 10.0, failed="explanations"))
    code, told, is_written = ask(empty.root)
    assert (code, is_written) == (1, False)
    assert told == (
        "recgpt: report: attempt 1 at the night of 2017-10-30 failed at explanations: explanations, ds=2017-10-30: 3 of 8 could not be "
        "computed (too_long 3); nothing of it is visible. Mend it and run `recgpt night --ds 2017-10-30` again\n"
    )


def test_of_several_attempts_the_newest_is_told(empty, ask):
    append_records(empty, "nights", stage_rows(DS, "p1", ["v2"], 10.0, failed="intents"))
    append_records(empty, "nights", stage_rows(DS, "p2", ["v2"], 10.0, attempt=2)[:4])
    code, told, _ = ask(empty.root)
    assert code == 1
    assert "attempt 2 at the night of 2017-10-30 has come to user_contexts (done) and runs still, or was killed" in told


def test_a_warehouse_without_a_night_says_how_to_start_one(empty, ask):
    code, told, is_written = ask(empty.root)
    assert (code, is_written) == (2, False)
    assert told == "recgpt: report: no night has run in this warehouse; start one by `recgpt night --ds 2017-10-30 --users 8`\n"


def test_another_day_names_the_nights_there_are(nights, ask):
    code, told, _ = ask(nights.root, ds="2017-11-01")
    assert code == 2
    assert "no night of 2017-11-01 has run; visible are 2017-10-29, 2017-10-30" in told


def test_no_warehouse_and_no_date_are_refused_in_one_line(tmp_path, ask):
    assert ask(str(tmp_path / "nowhere"))[0] == 2
    code, told, _ = ask(str(tmp_path), ds="2017-02-30")
    assert (code, told.count("\n")) == (2, 1)


def test_a_file_where_the_folder_should_be_is_told(nights, ask, tmp_path):
    (tmp_path / "taken").write_text("")
    code, told, _ = ask(nights.root, out="taken")
    assert (code, "is no folder; name another with --out" in told) == (2, True)


def test_a_newer_attempt_that_failed_is_told_beside_the_one_that_is_shown():
    rows = [*stage_rows(DS, "p1", ["v2"], 1.0), *stage_rows(DS, "p2", ["v2"], 1.0, attempt=2, failed="intents")]
    assert "attempt 2 at the night of 2017-10-30 failed at intents" in (newer_attempt(rows, shown=1, ds=DS) or "")
    assert newer_attempt(rows, shown=2, ds=DS) is None
