"""What the checks read of the staged rows, collected in one pass and in the smallest form that decides every rule.

    rows             not_null and unique      every row: a key column as numbers, any other column as a mark that is NaN for null
    distinct values  rules about values       each value of a column once, because such a rule gives equal values equal answers

Wide texts and arrays that no rule asks for are never held, and a million dates are checked as the few hundred that they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recgpt_ops.tables import Check, Contract

VALUE_RULES = frozenset({"in_set", "between", "matches", "length_between"})


def contract_checks(contract: Contract) -> list[Check]:
    """Every rule of a contract, with one column each where it is about values."""
    checks = [Check("not_null", (column.name,), "fail", {}) for column in contract.columns if not column.nullable]
    checks.append(Check("unique", contract.key, "fail", {}))
    for check in contract.checks:
        checks += [check._replace(columns=(name,)) for name in check.columns] if check.rule in VALUE_RULES else [check]
    return checks


class CheckColumns:
    """Takes batches and gives the two frames that the suite runs on."""

    def __init__(self, checks: list[Check]) -> None:
        self.row_count = 0
        self.keys: dict[str, list[pa.Array[Any]]] = {}
        self.marks: dict[str, list[pa.Array[Any]]] = {}
        self.values: dict[str, list[pa.Array[Any]]] = {}
        self.bounds: dict[str, list[float]] = {}
        for check in checks:
            kind = self.values if check.rule in VALUE_RULES else self.keys if check.rule == "unique" else self.marks
            for name in check.columns:
                kind.setdefault(name, [])
                self.bounds.setdefault(name, []).extend(outside_bounds(check))
        self.marks = {name: pieces for name, pieces in self.marks.items() if name not in self.keys}

    def add(self, rows: pa.Table) -> None:
        """Takes one batch; columns without a rule may be there."""
        self.row_count += rows.num_rows
        for name, pieces in self.keys.items():
            pieces.append(rows[name].combine_chunks())
        for name, pieces in self.marks.items():
            pieces.append(rows[name].combine_chunks().is_valid())
        for name, pieces in self.values.items():
            pieces.append(rows[name].combine_chunks().unique())

    def rows_frame(self) -> pd.DataFrame:
        """One line per row, null as NaN."""
        columns = {name: key_numbers(pieces) for name, pieces in self.keys.items()}
        for name, pieces in self.marks.items():
            valid = np.concatenate([piece.to_numpy(zero_copy_only=False) for piece in pieces] or [np.empty(0, dtype=bool)])
            columns[name] = np.where(valid, np.float32(1), np.float32(np.nan))
        return pd.DataFrame(columns, index=pd.RangeIndex(self.row_count), copy=False)

    def value_columns(self) -> dict[str, pd.Series[Any]]:
        """Per column its distinct values, without null."""
        return {name: self.distinct(name, pieces) for name, pieces in self.values.items()}

    def distinct(self, name: str, pieces: list[pa.Array[Any]]) -> pd.Series[Any]:
        """One column's distinct values. NaN and infinities become a value outside the bounds: pandas would take NaN for a null."""
        if not pieces:
            return pd.Series([], dtype="object")
        values = pa.chunked_array(pieces).unique().drop_null()
        if pa.types.is_floating(values.type) and self.bounds[name]:
            values = pc.if_else(pc.is_finite(values), values, pa.scalar(self.bounds[name][0]))
        series: pd.Series[Any] = values.to_pandas()
        return series


def outside_bounds(check: Check) -> list[float]:
    """A number below the least and one above the greatest that a `between` allows."""
    steps = {"min": -1.0, "max": 1.0} if check.rule == "between" else {}
    return [float(str(check.arguments[name])) + step for name, step in steps.items() if check.arguments.get(name) is not None]


def key_numbers(pieces: list[pa.Array[Any]]) -> np.ndarray[Any, Any]:
    """A key column as numbers, equal where the values are equal and NaN where they are null: enough to tell rows apart."""
    if not pieces:
        return np.empty(0)
    column = pa.chunked_array(pieces).combine_chunks()
    encoded = column if pa.types.is_integer(column.type) else column.dictionary_encode().indices
    numbers: np.ndarray[Any, Any] = encoded.to_numpy(zero_copy_only=False)
    return numbers
