"""`recgpt evaluate` as people call it, and its figures as they read them."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest

from recgpt_ops.cli import run
from recgpt_ops.commands.evaluation_tables import as_markdown, as_text, cell, credits, number, sections
from recgpt_ops.commands.night import read_user_ids
from recgpt_ops.errors import UsageError
from tests.unit.evaluation.conftest import DS, AxisEmbedder, add_night, make_shop


def row(metric: str, arm: str, value: float | None, lo: float | None = None, hi: float | None = None, n: int = 3) -> dict:
    return {
        "metric": metric, "arm": arm, "value": value, "lo": lo, "hi": hi, "n": n, "unit": "ratio", "evaluation_id": "e" * 64,
        "data_set": "shop", "ds": DS, "split": "known to 2021-10-31", "seed": 0,
    }  # fmt: skip


ROWS = [
    row("hr_next1@6", "v1", 0.5, 0.1, 0.9),
    row("hr_next1@6", "v2", 0.75, 0.4, 1.0),
    row("hr_next1@6", "own_repeats", 0.25, 0.0, 0.6),
    row("hr_next1@6", "most_bought_types", 0.6, 0.3, 0.9),
    row("hr_next1@6 - most_bought_types", "v1", -0.1, -0.5, -0.05),
    row("hr_next1@6 - own_repeats", "v1", 0.25, 0.1, 0.5),
    row("hr_next1@6 - v1", "v2", 0.25, 0.1, 0.4),
    row("hr_next1@6 - most_bought_types", "v2", 0.15, -0.1, 0.4),
    row("hr_next1@6 - own_repeats", "v2", 0.5, 0.2, 0.8),
    row("prompt_tokens_computed", "v1", 12345.6, 12000.0, 13000.0),
    row("prompt_tokens_computed", "v2", 6000.0, 5900.0, 6100.0),
    row("prompt_tokens_computed / v1", "v2", 0.486, 0.47, 0.5),
    row("tags.panel.S", "v2", None),
    row("tags.panel.relevance.positive", "v2", 0.5),
    row("labelled_users", "all", 2.0),
]


def test_a_method_is_credited_only_above_the_best_list_without_a_model() -> None:
    assert credits(ROWS) == [
        "hr_next1@6, v1: -0.100 [-0.500, -0.050] against most_bought_types, the best list without a model: worse, no credit",
        "hr_next1@6, v2: 0.150 [-0.100, 0.400] against most_bought_types, the best list without a model: "
        "no difference that these users show",
    ]


def test_what_lies_above_every_list_is_credited() -> None:
    some = [line for line in ROWS if "most_bought_types" not in (line["arm"], line["metric"].rpartition(" - ")[2])]
    assert all(told.endswith("credited to the method") for told in credits(some))


def test_tables_have_arms_as_columns_and_levels_of_single_dimensions_stay_in_the_rows() -> None:
    by_heading = {section.heading: section for section in sections(ROWS)}
    cost = by_heading["What a user costs until the list of tags"]
    assert cost.columns == ("metric", "v1", "v2")
    assert cost.rows == [
        {"metric": "prompt_tokens_computed", "v1": "12,346 [12,000, 13,000]", "v2": "6,000 [5,900, 6,100]"},
        {"metric": "prompt_tokens_computed / v1", "v1": "", "v2": "0.486 [0.470, 0.500]"},
    ]
    assert by_heading["Explanations and judges"].rows == [{"metric": "tags.panel.S", "v2": "-"}]
    assert "relevance" not in as_text(ROWS)


def test_every_figure_for_people_stands_in_exactly_one_table() -> None:
    told = [line["metric"] for section in sections(ROWS) for line in section.rows]
    assert sorted(told) == sorted({line["metric"] for line in ROWS} - {"tags.panel.relevance.positive", "labelled_users"})


@pytest.mark.parametrize(("value", "text"), [(0.12345, "0.123"), (-0.5, "-0.500"), (12.345, "12.3"), (12345.6, "12,346"), (0, "0.000")])
def test_a_number_has_the_digits_that_people_read(value, text) -> None:
    assert number(value) == text


def test_a_figure_without_an_interval_stands_alone() -> None:
    assert cell(row("calls", "v1", 4.0)) == "4.000"


def test_markdown_has_one_table_a_question() -> None:
    text = as_markdown(ROWS)
    assert (
        "| metric | v1 | v2 |\n| --- | ---: | ---: |\n| prompt_tokens_computed | 12,346 [12,000, 13,000] | 6,000 [5,900, 6,100] |" in text
    )
    assert "### Hit rate" in text
    assert "2 of 3 users have labels" in text


@pytest.fixture
def shop(tmp_path, monkeypatch) -> str:
    """A warehouse with nights of v1 and v2, evaluated without a real embedder."""
    warehouse = make_shop(str(tmp_path / "shop"))
    for method in ("v1", "v2"):
        add_night(warehouse, method)
    without_torch = SimpleNamespace(load_embedder=lambda *_, **__: AxisEmbedder())
    monkeypatch.setitem(sys.modules, "recgpt_ops.llm.embedder", without_torch)
    return warehouse.root


def test_methods_are_evaluated_once_and_shown_again(shop, capsys) -> None:
    arguments = ["evaluate", "methods", "--ds", DS, "--methods", "v1,v2", "--warehouse", shop]
    assert run([*arguments, "--format", "json"]) == 0
    told = capsys.readouterr()
    rows = json.loads(told.out)
    assert {line["arm"] for line in rows} == {"v1", "v2", "own_repeats", "most_bought_types", "closed_list_order", "all"}
    assert f"{len(rows)} rows were written to evaluations" in told.err
    assert run(arguments) == 0
    again = capsys.readouterr()
    assert "these nights were evaluated on" in again.err
    assert "nothing new is written" in again.err
    assert "the best list without a model" not in again.out  # without calls nothing is known as a method's cost


def test_users_are_printed_one_a_line_for_a_night_to_read(shop, capsys, tmp_path) -> None:
    assert run(["evaluate", "users", "--ds", DS, "--min-before", "1", "--warehouse", shop]) == 0
    told = capsys.readouterr()
    assert sorted(told.out.splitlines()) == ["u1", "u2"]
    assert "2 users of 2 that qualify" in told.err
    (tmp_path / "users.txt").write_text(told.out + "\n")
    assert sorted(read_user_ids(tmp_path / "users.txt")) == ["u1", "u2"]


@pytest.mark.parametrize("content", [None, b"", b"\n \n", b"\xff\xfe\x00"])
def test_a_file_of_users_that_is_missing_empty_or_no_text_is_refused(tmp_path, content) -> None:
    path = tmp_path / "users.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match="--users-file"):
        read_user_ids(path)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--methods", "v1,v1"], "each once"),
        (["--methods", "v1,,v2"], "expected names of methods"),
        (["--methods", "v3"], "no such method"),
        (["--methods", "v1", "--label-days", "0"], "greater than or equal to 1"),
        (["--methods", "v1", "--resamples", "10"], "greater than or equal to 1000"),
        (["--methods", "v1", "--markdown", "--format", "json"], "give one of the two"),
    ],
)
def test_a_wrong_request_is_refused_in_one_line(tmp_path, capsys, options, said) -> None:
    assert run(["evaluate", "methods", "--ds", DS, *options, "--warehouse", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
