from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa
import pyarrow.dataset as pads
import pytest

from recgpt_ops.delta import checks
from recgpt_ops.delta.check_columns import CheckColumns, contract_checks
from recgpt_ops.delta.checks import evaluate, python_pattern, run_checks
from recgpt_ops.delta.violations import MAX_ROWS, Violation, find_violation, violation_message
from recgpt_ops.errors import ContractError
from recgpt_ops.tables import Check, Contract, load_contract

TAGS, EVENTS, ITEMS = load_contract("intent_tags"), load_contract("behavior_events"), load_contract("items")


def violations_of(contract: Contract, table: pa.Table) -> list[Violation]:
    columns = CheckColumns(contract_checks(contract))
    for batch in table.to_batches(max_chunksize=2):  # several batches, as from files
        columns.add(pa.Table.from_batches([batch]))
    return run_checks(contract, columns, pads.dataset(table))


def with_checks(contract: Contract, *extra: Check) -> Contract:
    return replace(contract, checks=extra)


def test_rows_that_keep_every_rule_have_no_violation(rows):
    assert violations_of(EVENTS, rows("behavior_events", {"event_id": "e1"}, {"event_id": "e2"}, {"event_id": "e3"})) == []


def test_no_rows_keep_every_rule(rows):
    assert violations_of(TAGS, rows("intent_tags")) == []


def test_case_077_a_null_user_id_fails(rows):
    found = violations_of(TAGS, rows("intent_tags", {"user_id": "u1"}, {"user_id": None}))
    assert [(violation.rule, violation.columns, violation.row_count) for violation in found] == [("not_null", ("user_id",), 1)]


def test_case_077_a_rule_that_was_left_out_is_an_error_not_a_success(rows, monkeypatch):
    run = checks.run_suite
    monkeypatch.setattr(checks, "run_suite", lambda frame, numbered: dict(list(run(frame, numbered).items())[1:]))
    with pytest.raises(ContractError, match=r"\d+ rules were defined, \d+ evaluated"):
        violations_of(TAGS, rows("intent_tags", {}))


def test_case_077_rows_that_were_not_seen_are_an_error(rows):
    rules = contract_checks(TAGS)
    columns = CheckColumns(rules)
    columns.add(rows("intent_tags", {}, {"user_id": "u2"}))
    frame = columns.rows_frame
    columns.rows_frame = lambda: frame().head(1)  # type: ignore[method-assign]  # an engine that loses a row
    with pytest.raises(ContractError, match="not_null of ds saw 1 of 2"):
        evaluate(rules, columns)


def test_case_078_the_keys_of_all_rows_that_broke_a_rule_come_back(rows):
    built = rows(
        "intent_tags", {"user_id": "u1", "rank": 0}, {"user_id": "u2"}, {"user_id": "u3", "rank": -1}, {"user_id": "u4", "rank": 0}
    )
    (violation,) = violations_of(TAGS, built)
    assert violation.row_count == 3
    assert [key.split(", ")[3] for key, _ in violation.rows] == ["user_id=u1", "user_id=u3", "user_id=u4"]


def test_the_message_names_the_first_key_and_no_value(rows):
    (violation,) = violations_of(TAGS, rows("intent_tags", {"tag": "a secret " * 20, "tag_id": "t"}))
    assert violation_message(violation) == (
        "tag breaks length_between in 1 row, the first is ds=2017-10-30, scenario=default, method=v2, user_id=u1, tag_id=t"
    )
    assert "secret" in violation.rows[0][1]  # the row itself is for quarantine


def test_a_key_that_stands_there_twice_shows_every_row_of_it(rows):
    (violation,) = violations_of(TAGS, rows("intent_tags", {"user_id": "u1"}, {"user_id": "u2"}, {"user_id": "u1"}))
    assert (violation.rule, violation.columns, violation.row_count) == ("unique", TAGS.key, 2)


def test_a_key_of_one_column_must_be_unique_too(rows):
    (violation,) = violations_of(EVENTS, rows("behavior_events", {"event_id": "e1"}, {"event_id": "e1"}))
    assert (violation.rule, violation.row_count) == ("unique", 2)


def test_case_081_a_null_in_a_nullable_column_passes_every_rule_about_values(rows):
    contract = with_checks(
        ITEMS,
        Check("in_set", ("brand",), "fail", {"values": ["a", "b"]}),
        Check("matches", ("brand",), "fail", {"pattern": "^[ab]$"}),
        Check("length_between", ("brand",), "fail", {"min": 1, "max": 1}),
        Check("between", ("price",), "fail", {"min": 0}),
    )
    assert violations_of(contract, rows("items", {"item_id": "x", "brand": None, "price": None}, {"item_id": "y", "brand": "a"})) == []


@pytest.mark.parametrize("allowed", [["a", None], ["a"], [None, "a", None]])
def test_case_081_a_null_among_allowed_values_says_nothing_in_both_engines(rows, allowed):
    contract = with_checks(ITEMS, Check("in_set", ("brand",), "fail", {"values": allowed}))
    built = rows("items", {"item_id": "x", "brand": None}, {"item_id": "y", "brand": "a"}, {"item_id": "z", "brand": "b"})
    (violation,) = violations_of(contract, built)
    assert (violation.row_count, violation.rows[0][0]) == (1, "item_id=z, valid_from_ds=0001-01-01")


def test_case_081_a_null_in_a_column_that_may_hold_none_breaks_not_null_only(rows):
    found = violations_of(EVENTS, rows("behavior_events", {"action": None}))
    assert [violation.rule for violation in found] == ["not_null"]


@pytest.mark.parametrize("amount", [float("nan"), float("inf"), float("-inf"), -0.01])
def test_a_number_that_is_not_finite_breaks_its_range(rows, amount):
    (violation,) = violations_of(EVENTS, rows("behavior_events", {"amount": amount}, {"event_id": "e2", "amount": 1.0}))
    assert (violation.rule, violation.columns, violation.row_count) == ("between", ("amount",), 1)


@pytest.mark.parametrize("ds", ["2017-10-30\n", "２０１７-10-30", "2017-10-3", "x2017-10-30"])
def test_both_engines_read_a_pattern_alike(rows, ds):
    (violation,) = violations_of(EVENTS, rows("behavior_events", {"event_ds": ds}, {"event_id": "e2"}))
    assert (violation.rule, violation.columns, violation.row_count) == ("matches", ("event_ds",), 1)


def test_a_dollar_in_a_pattern_stays_when_it_is_meant():
    assert python_pattern(r"^\$") == r"(?a)^\$"


@pytest.mark.parametrize(("low", "high", "holds"), [(1, None, True), (3, None, False), (None, 1, False), (2, 2, True)])
def test_the_number_of_rows_can_be_a_rule(rows, low, high, holds):
    contract = with_checks(ITEMS, Check("row_count_between", (), "fail", {"min": low, "max": high}))
    found = violations_of(contract, rows("items", {"item_id": "x"}, {"item_id": "y"}))
    assert found == ([] if holds else [Violation("row_count_between", (), "fail", 2, ())])


def test_case_080_all_rules_read_the_rows_once(rows):
    built = rows("behavior_events", *({"event_id": f"e{number}"} for number in range(6)))

    class CountedDataset:
        """Stands for the files on the disk: says how often somebody came back to them."""

        reads = 0

        def __getattr__(self, name):
            CountedDataset.reads += 1
            raise AssertionError(f"{name}: the rows were read again")

    rules = contract_checks(EVENTS)
    columns = CheckColumns(rules)
    for batch in built.to_batches():
        columns.add(pa.Table.from_batches([batch]))
    assert len(rules) >= 20
    assert run_checks(EVENTS, columns, CountedDataset()) == []
    assert CountedDataset.reads == 0


def test_case_080_columns_without_a_rule_are_not_held():
    columns = CheckColumns(contract_checks(load_contract("user_contexts")))
    assert "text" not in columns.values
    assert "text" not in columns.keys
    held = {*columns.values, *columns.keys}
    assert not held & {"text", "lines", "groups", "signals", "attributes"}


def test_rows_kept_for_quarantine_are_bounded_and_their_count_is_not(rows):
    built = rows("intent_tags", *({"user_id": f"u{number}", "rank": 0} for number in range(MAX_ROWS + 5)))
    violation = find_violation(TAGS, Check("between", ("rank",), "fail", {"min": 1}), pads.dataset(built))
    assert (violation.row_count, len(violation.rows)) == (MAX_ROWS + 5, MAX_ROWS)


def test_threads_that_check_at_once_see_every_rule(rows):
    tables = [rows("intent_tags", {"user_id": f"u{number}"}, {"user_id": f"v{number}"}) for number in range(24)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda table: violations_of(TAGS, table), tables)) == [[]] * len(tables)
