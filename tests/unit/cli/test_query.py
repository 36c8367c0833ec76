from __future__ import annotations

import io
import threading
import time
from concurrent.futures import Future

import pytest

from recgpt_ops.cli import run
from recgpt_ops.commands import query
from recgpt_ops.commands.query import progress_line, run_watched, tell_progress
from recgpt_ops.tables import all_contracts
from recgpt_ops.views import all_views

ROWS = (["a"], [(1,)])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(query, "TERMINAL_SECONDS", 0.02)
    monkeypatch.setattr(query, "LINE_SECONDS", 0.05)
    monkeypatch.setattr(query, "INTERRUPT_SECONDS", 0.01)


def watched(stream: io.StringIO, seconds: float, percent: float = 40.0) -> str:
    def ask() -> query.Rows:
        time.sleep(seconds)
        return ROWS

    assert run_watched(ask, progress=lambda: percent, interrupt=lambda: None, stream=stream, quiet=0.05) == ROWS
    return stream.getvalue()


def test_a_quick_query_says_nothing():
    assert watched(io.StringIO(), 0.0) == ""
    assert watched(Terminal(), 0.0) == ""


def test_a_long_query_tells_how_far_it_is_line_by_line_where_there_is_no_terminal():
    lines = watched(io.StringIO(), 0.4).splitlines()
    assert len(lines) >= 2
    assert set(lines) == {"query: running for 0 s, 40 % read"}


def test_on_a_terminal_one_line_changes_and_is_gone_in_the_end():
    told = watched(Terminal(), 0.3)
    assert told.count("query: running for") >= 2
    assert "\n" not in told
    assert told.endswith("\r\x1b[K")


def test_where_duckdb_cannot_tell_only_the_time_is_told():
    assert progress_line(75.2, -1.0) == "query: running for 75 s"


def test_ctrl_c_ends_the_query_and_not_only_the_waiting(monkeypatch):
    ended = threading.Event()

    def ask() -> query.Rows:
        assert ended.wait(10)
        return ROWS

    def pressed(answer: Future[query.Rows], **_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(query, "tell_progress", pressed)
    with pytest.raises(KeyboardInterrupt):
        run_watched(ask, progress=lambda: -1.0, interrupt=ended.set, stream=io.StringIO())
    assert ended.is_set()


def test_a_fault_of_the_query_is_raised_as_it_is():
    def ask() -> query.Rows:
        raise ValueError("no such table")

    with pytest.raises(ValueError, match="no such table"):
        run_watched(ask, progress=lambda: -1.0, interrupt=lambda: None, stream=io.StringIO())


def test_an_answer_that_is_there_is_not_waited_for():
    answer: Future[query.Rows] = Future()
    answer.set_result(ROWS)
    tell_progress(answer, progress=lambda: -1.0, stream=io.StringIO(), quiet=100.0)


def test_the_list_names_every_table_and_view_with_what_a_row_is(capsys):
    assert run(["query", "--list", "--format", "csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "name,kind,holds"
    assert "verdicts,view," in "\n".join(lines)
    assert len(lines) == 1 + len(all_contracts()) + len(all_views())


@pytest.mark.parametrize("arguments", [["query"], ["query", "select 1", "--list"]])
def test_neither_or_both_of_query_and_list_is_refused(capsys, arguments):
    assert run(arguments) == 2
    assert "expected one SELECT, or --list alone" in capsys.readouterr().err
