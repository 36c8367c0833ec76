"""The contract's rules as a Great Expectations suite over the staged bytes. The only module that imports Great Expectations.

    not_null for every column that may hold no null, unique for the key, and the rules that the contract lists

It runs on pandas, over what `check_columns` collected: every row for not_null and unique, each distinct value once for the others.
How many rules and how many rows or values were evaluated is held against what was defined; fewer is an error, never a success.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

import great_expectations as gx
import pandas as pd
import pyarrow.dataset as pads
from great_expectations.core import ExpectationSuite
from great_expectations.core.batch_definition import BatchDefinition
from great_expectations.core.expectation_validation_result import ExpectationValidationResult
from great_expectations.data_context.types.base import DataContextConfig, InMemoryStoreBackendDefaults, ProgressBarsConfig
from great_expectations.expectations.core.expect_column_value_lengths_to_be_between import ExpectColumnValueLengthsToBeBetween
from great_expectations.expectations.core.expect_column_values_to_be_between import ExpectColumnValuesToBeBetween
from great_expectations.expectations.core.expect_column_values_to_be_in_set import ExpectColumnValuesToBeInSet
from great_expectations.expectations.core.expect_column_values_to_be_unique import ExpectColumnValuesToBeUnique
from great_expectations.expectations.core.expect_column_values_to_match_regex import ExpectColumnValuesToMatchRegex
from great_expectations.expectations.core.expect_column_values_to_not_be_null import ExpectColumnValuesToNotBeNull
from great_expectations.expectations.core.expect_compound_columns_to_be_unique import ExpectCompoundColumnsToBeUnique
from great_expectations.expectations.core.expect_table_row_count_to_be_between import ExpectTableRowCountToBeBetween
from great_expectations.expectations.expectation import Expectation

from recgpt_ops.delta.check_columns import VALUE_RULES, CheckColumns, contract_checks
from recgpt_ops.delta.violations import Violation, allowed_values, find_violation
from recgpt_ops.errors import ContractError
from recgpt_ops.tables import Check, Contract

ONE_AT_A_TIME = threading.Lock()  # Great Expectations keeps one context a process: beside another validation rules end in an error


def expectation(check: Check, *, number: int) -> Expectation:
    """One rule in the words of Great Expectations, which leaves nulls out of every rule about values, as we do.

    `number` comes back with the result, because results do not come in the order of the rules.
    """
    built = build_expectation(check)
    built.meta = {"number": number}
    return built


def build_expectation(check: Check) -> Expectation:
    """The expectation of one rule."""
    low, high = bound(check, "min"), bound(check, "max")
    if check.rule == "row_count_between":
        return ExpectTableRowCountToBeBetween(min_value=low, max_value=high)
    if check.rule == "unique" and len(check.columns) > 1:
        return ExpectCompoundColumnsToBeUnique(column_list=list(check.columns), ignore_row_if="never")
    (name,) = check.columns
    if check.rule == "unique":
        return ExpectColumnValuesToBeUnique(column=name)
    if check.rule == "not_null":
        return ExpectColumnValuesToNotBeNull(column=name)
    if check.rule == "in_set":
        return ExpectColumnValuesToBeInSet(column=name, value_set=allowed_values(check))
    if check.rule == "between":
        return ExpectColumnValuesToBeBetween(column=name, min_value=low, max_value=high)
    if check.rule == "length_between":
        return ExpectColumnValueLengthsToBeBetween(column=name, min_value=low, max_value=high)
    return ExpectColumnValuesToMatchRegex(column=name, regex=python_pattern(str(check.arguments["pattern"])))


def bound(check: Check, name: Literal["min", "max"]) -> Any:
    """A bound of a rule; None where the contract gives none. Whole numbers stay whole, as lengths and counts need them."""
    return check.arguments.get(name)


def python_pattern(pattern: str) -> str:
    r"""A pattern that means in Python what it means in RE2: digits are ASCII, and `$` is the end, not the line break before it.

    >>> python_pattern(r"^\d{4}$")
    '(?a)^\\d{4}\\Z'
    """
    ends = pattern.endswith("$") and not pattern.endswith(r"\$")
    return "(?a)" + (pattern[:-1] + r"\Z" if ends else pattern)


@cache
def frame_batches() -> BatchDefinition[Any]:
    """What Great Expectations wants to know before it looks at a frame; the same for every frame, and slow to set up."""
    settings = DataContextConfig(
        store_backend_defaults=InMemoryStoreBackendDefaults(), progress_bars=ProgressBarsConfig(globally=False), analytics_enabled=False
    )
    context = gx.get_context(project_config=settings, mode="ephemeral")
    return context.data_sources.add_pandas("staged").add_dataframe_asset("rows").add_batch_definition_whole_dataframe("all")


def run_suite(frame: pd.DataFrame, checks: Sequence[tuple[int, Check]]) -> dict[int, ExpectationValidationResult]:
    """The result of each numbered rule over one frame."""
    with ONE_AT_A_TIME:
        batch = frame_batches().get_batch({"dataframe": frame})
        suite = ExpectationSuite(name="contract", expectations=[expectation(check, number=number) for number, check in checks])
        results = batch.validate(suite, result_format={"result_format": "BASIC", "partial_unexpected_count": 0}).results
    return {int((result.expectation_config.meta or {})["number"]): result for result in results if result.expectation_config}


def evaluate(checks: Sequence[Check], columns: CheckColumns) -> list[bool]:
    """Whether each rule holds; ContractError when one was left out, could not be evaluated or did not see everything."""
    about_rows = [(number, check) for number, check in enumerate(checks) if check.rule not in VALUE_RULES]
    about_values = [(number, check) for number, check in enumerate(checks) if check.rule in VALUE_RULES]
    values = columns.value_columns()
    results = run_suite(columns.rows_frame(), about_rows)
    results |= run_suite(pd.DataFrame(values), about_values) if about_values else {}  # shorter columns are filled up with nulls
    if sorted(results) != list(range(len(checks))):
        raise ContractError(f"{len(checks)} rules were defined, {len(results)} evaluated; nothing is taken for checked")
    for number, check in enumerate(checks):
        wanted = len(values[check.columns[0]]) if check.rule in VALUE_RULES else columns.row_count
        require_evaluated(check, results[number], wanted)
    return [bool(results[number].success) for number in range(len(checks))]


def require_evaluated(check: Check, result: ExpectationValidationResult, wanted: int) -> None:
    """Holds a result to the number of rows or values that it should have seen."""
    rule = f"{check.rule} of {', '.join(check.columns) or 'the table'}"
    info = result.exception_info  # one record, or one per metric under its id
    if any(record.get("raised_exception") for record in ([info] if "raised_exception" in info else info.values())):
        raise ContractError(f"{rule} could not be evaluated; mend the rule in the contract")
    if check.rule == "row_count_between":
        return
    seen = result.result.get("element_count", 0) - (result.result.get("missing_count", 0) if check.rule in VALUE_RULES else 0)
    if seen != wanted:
        raise ContractError(f"{rule} saw {seen} of {wanted}; nothing is taken for checked")


def run_checks(contract: Contract, columns: CheckColumns, dataset: pads.Dataset) -> list[Violation]:
    """Every rule that does not hold, with the rows that break it. `dataset` is read again only to find those rows."""
    checks = contract_checks(contract)
    held = evaluate(checks, columns)
    violations = [find_violation(contract, check, dataset) for check, holds in zip(checks, held, strict=True) if not holds]
    for violation in violations:
        if violation.row_count == 0 and violation.rule != "row_count_between":
            raise ContractError(
                f"{contract.table_id}: {violation.rule} of {', '.join(violation.columns)} does not hold, but no row breaks it in SQL; "
                "the two engines read the rule differently, mend it in the contract"
            )
    return violations
