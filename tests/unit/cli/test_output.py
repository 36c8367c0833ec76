from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from recgpt_ops.commands.output import render_rows

ROWS = [
    {"tag": "red wine", "score": 0.25, "at": datetime(2017, 10, 30, 12, tzinfo=UTC), "lines": [{"id": 1}], "why": None},
    {"tag": 'say "cheese", please', "score": 1 / 3, "at": None, "lines": [], "why": "x"},
]
COLUMNS = ("tag", "score", "at", "lines", "why")


def test_csv_quotes_what_needs_it_and_leaves_null_empty():
    assert render_rows(ROWS, COLUMNS, form="csv") == (
        'tag,score,at,lines,why\nred wine,0.25,2017-10-30T12:00:00+00:00,"[{""id"": 1}]",\n'
        '"say ""cheese"", please",0.3333333333333333,,[],x\n'
    )


def test_json_keeps_types_and_null():
    told = json.loads(render_rows(ROWS, COLUMNS, form="json"))
    assert told[0] == {"tag": "red wine", "score": 0.25, "at": "2017-10-30T12:00:00+00:00", "lines": [{"id": 1}], "why": None}


def test_values_that_json_does_not_know_are_written_as_text():
    assert json.loads(render_rows([{"a": Decimal("1.50"), "b": b"\x00"}], ("a", "b"), form="json")) == [{"a": "1.50", "b": "b'\\x00'"}]


def test_a_table_has_a_heading_and_a_line_a_row():
    lines = [line.rstrip() for line in render_rows(ROWS, ("tag", "score"), form="table").splitlines()]
    assert lines[0].split() == ["tag", "score"]
    assert lines[2:] == [" red wine                   0.25", ' say "cheese", please   0.333333']


def test_a_sum_of_money_keeps_its_cents_for_people_and_every_digit_in_csv():
    rows = [{"x": 8057462.349999999, "y": 12345.6}, {"x": float("nan"), "y": float("inf")}]
    assert render_rows(rows, ("x", "y"), form="table").split()[-4:] == ["8057462.35", "12345.6", "nan", "inf"]
    assert render_rows(rows, ("x", "y"), form="csv") == "x,y\n8057462.349999999,12345.6\nnan,inf\n"
    assert json.loads(render_rows(rows, ("x", "y"), form="json"), parse_constant=pytest.fail)[1] == {"x": None, "y": None}


def test_nothing_is_a_heading_alone_or_an_empty_list():
    assert render_rows([], ("a", "b"), form="csv") == "a,b\n"
    assert render_rows([], ("a", "b"), form="json") == "[]\n"


def test_peoples_data_cannot_steer_the_terminal():
    shown = render_rows([{"title": "red\x1b[31m\x07 wine\u202e\n[bold]"}], ("title",), form="table")
    assert "red\\x1b[31m\\x07 wine\\u202e\\n[bold]" in shown
