"""The contract's rules as a Great Expectations suite over the staged bytes. The only module that imports Great Expectations.

    not_null for every column that may hold no null, unique for the key, and the rules that the contract lists, each over every row

The suite runs on pandas over the columns that some rule reads: strings as categories, keys as numbers, a column that only must not be
null as a mark. Wide texts and arrays are never held. A million events take a few seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import great_expectations as gx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
from great_expectations.core import ExpectationSuite
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

from recgpt_ops.delta.violations import Violation, allowed_values, find_violation
from recgpt_ops.errors import ContractError
from recgpt_ops.tables import Check, Contract

VALUE_RULES = frozenset({"in_set", "between", "matches", "length_between"})


def contract_checks(contract: Contract) -> list[Check]:
    """Every rule of a contract, with one column each where it is about values."""
    checks = [Check("not_null", (column.name,), "fail", {}) for column in contract.columns if not column.nullable]
    checks.append(Check("unique", contract.key, "fail", {}))
    for check in contract.checks:
        checks += [check._replace(columns=(name,)) for name in check.columns] if check.rule in VALUE_RULES else [check]
    return checks


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


class CheckColumns:
    """Collects, batch by batch, what the suite reads of each column, in the smallest form that does."""

    def __init__(self, contract: Contract) -> None:
        self.row_count = 0
        self.rules: dict[str, list[Check]] = {}
        for check in contract_checks(contract):
            for name in check.columns:
                self.rules.setdefault(name, []).append(check)
        self.pieces: dict[str, list[pa.Array[Any]]] = {name: [] for name in self.rules}

    def add(self, rows: pa.Table) -> None:
        """Takes one batch; columns without a rule may be there."""
        self.row_count += rows.num_rows
        for name, pieces in self.pieces.items():
            column = rows[name].combine_chunks()
            if all(check.rule == "not_null" for check in self.rules[name]):
                column = pc.is_valid(column)
            elif pa.types.is_string(column.type) and any(check.rule in VALUE_RULES for check in self.rules[name]):
                column = column.dictionary_encode()
            pieces.append(column)

    def frame(self) -> pd.DataFrame:
        """All batches as one frame, a null as NaN."""
        return pd.DataFrame({name: self.series(name) for name in self.pieces}, index=pd.RangeIndex(self.row_count), copy=False)

    def series(self, name: str) -> pd.Series[Any]:
        """One column: a category, a number, or a mark that is NaN where the column is null."""
        if not self.pieces[name]:
            return pd.Series([], dtype="float64")
        column = pa.chunked_array(self.pieces[name])
        if pa.types.is_boolean(column.type) and all(check.rule == "not_null" for check in self.rules[name]):
            valid = column.to_numpy()
            return pd.Series(np.where(valid, np.float32(1), np.float32(np.nan)))
        if pa.types.is_dictionary(column.type):
            return column.unify_dictionaries().to_pandas()
        if pa.types.is_string(column.type):  # a key: its number does for telling it from others
            return column.combine_chunks().dictionary_encode().indices.to_pandas()
        if pa.types.is_floating(column.type):
            return self.finite(name, column)
        return column.to_pandas()

    def finite(self, name: str, column: pa.ChunkedArray[Any]) -> pd.Series[Any]:
        """A double with NaN and infinities turned into a value that breaks its range, because pandas would take NaN for a null."""
        broken = [
            float(str(check.arguments[bound])) + step
            for check in self.rules[name]
            for bound, step in (("min", -1.0), ("max", 1.0))
            if check.arguments.get(bound) is not None
        ]
        if not broken:
            return column.to_pandas()
        finite: pd.Series[Any] = pc.if_else(pc.is_finite(column), column, pa.scalar(broken[0])).to_pandas()
        return finite


def run_suite(checks: Sequence[Check], frame: pd.DataFrame) -> list[ExpectationValidationResult]:
    """One result per rule, in order; fewer results than rules, or fewer rows than the frame has, is an error, never a success."""
    context = gx.get_context(
        project_config=DataContextConfig(
            store_backend_defaults=InMemoryStoreBackendDefaults(), progress_bars=ProgressBarsConfig(globally=False)
        ),
        mode="ephemeral",
    )
    asset = context.data_sources.add_pandas("staged").add_dataframe_asset("rows")
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": frame})
    suite = ExpectationSuite(name="contract", expectations=[expectation(check, number=number) for number, check in enumerate(checks)])
    results = batch.validate(suite, result_format={"result_format": "BASIC", "partial_unexpected_count": 0}).results
    by_number = {int((result.expectation_config.meta or {})["number"]): result for result in results if result.expectation_config}
    if len(results) != len(checks) or sorted(by_number) != list(range(len(checks))):
        raise ContractError(f"{len(checks)} rules were defined, {len(by_number)} evaluated; nothing is taken for checked")
    return [by_number[number] for number in range(len(checks))]


def run_checks(contract: Contract, columns: CheckColumns, dataset: pads.Dataset) -> list[Violation]:
    """Every rule that does not hold, with the rows that break it. `dataset` is read again only to find those rows."""
    checks = contract_checks(contract)
    violations = []
    for check, result in zip(checks, run_suite(checks, columns.frame()), strict=True):
        rule = f"{contract.table_id}: {check.rule} of {', '.join(check.columns) or 'the table'}"
        if any(info.get("raised_exception") for info in exception_infos(result)):
            raise ContractError(f"{rule} could not be evaluated; nothing was published")
        if check.rule != "row_count_between" and result.result.get("element_count") != columns.row_count:
            raise ContractError(f"{rule} saw {result.result.get('element_count')} of {columns.row_count} rows; nothing was published")
        if not result.success:
            violation = find_violation(contract, check, dataset)
            expected = result.result.get("unexpected_count", violation.row_count)
            if violation.row_count != expected:
                raise ContractError(
                    f"{rule} is broken by {expected} rows in one engine and {violation.row_count} in the other; mend the rule"
                )
            violations.append(violation)
    return violations


def exception_infos(result: ExpectationValidationResult) -> list[dict[str, object]]:
    """GX writes one record, or one per metric under its id; both as a list."""
    info = result.exception_info
    return [info] if "raised_exception" in info else list(info.values())
