"""Record tables: append-only lists that any job writes and that are visible at commit. One row per key, whoever writes first.

Two jobs may append at the same time. Each reads the keys that are there and commits under one application id on the very handle it
read them from, so the later one is refused by the commit, reads again and leaves out what the other wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError

from recgpt_ops.delta.commits import append_rows
from recgpt_ops.delta.reading import read_arrow, read_files, read_rows, table_files
from recgpt_ops.delta.schemas import arrow_schema
from recgpt_ops.delta.warehouse import Warehouse, create_table
from recgpt_ops.errors import ContractError, NightError
from recgpt_ops.tables import Contract, load_contract

__all__ = ["append_records", "read_arrow", "read_rows"]

APPENDER = "records"
MAX_TRIES = 50  # a try is some 20 ms; a table that is contended for longer than that has another fault


def append_records(warehouse: Warehouse, table: str, rows: Sequence[Mapping[str, object]]) -> int:
    """Appends the rows whose key is not there yet and returns how many; creates the table when it is missing.

    A key that comes twice in `rows` is written once, the first one. ContractError names the column of a row that does not fit.
    """
    if not rows:
        return 0
    contract = load_contract(table)
    fresh = first_of_each_key(contract, rows)
    create_table(warehouse, table)
    for _ in range(MAX_TRIES):
        delta = warehouse.open(table)
        present = present_keys(delta, contract, fresh)
        missing = {key: row for key, row in fresh.items() if key not in present}
        if not missing:
            return 0
        if append_once(warehouse, delta, contract, list(missing.values())):
            return len(missing)
    raise NightError(f"{table}: other jobs kept appending for {MAX_TRIES} tries; run it again when fewer run at once")


def first_of_each_key(contract: Contract, rows: Sequence[Mapping[str, object]]) -> dict[tuple[object, ...], Mapping[str, object]]:
    """Rows by key; ContractError when a row lacks a column, has one too many, or has none where the contract wants one."""
    found: dict[tuple[object, ...], Mapping[str, object]] = {}
    names = set(contract.column_names)
    for row in rows:
        faults = [f"no column {name}" for name in contract.column_names if name not in row]
        faults += [f"column {name}, which stands in no contract" for name in row if name not in names]
        faults += [f"none in {column.name}" for column in contract.columns if not column.nullable and row.get(column.name) is None]
        faults += [f"an empty {name}, which is a partition" for name in contract.partition_by if row.get(name) == ""]
        if faults:
            key = ", ".join(f"{name}={row.get(name)!r}" for name in contract.key)
            raise ContractError(f"{contract.table_id}, {key}: the row has {'; '.join(faults)}; mend the job that makes it")
        found.setdefault(tuple(row[name] for name in contract.key), row)
    return found


def present_keys(delta: DeltaTable, contract: Contract, wanted: Mapping[tuple[object, ...], object]) -> set[tuple[object, ...]]:
    """Which of the wanted keys the table holds; only files of their partitions and rows with their first key column are read."""
    positions = {name: contract.key.index(name) for name in contract.partition_by if name in contract.key}
    files = [
        file
        for file in table_files(delta, contract)
        if all(file.partition[name] in {key[position] for key in wanted} for name, position in positions.items())
    ]
    firsts = pa.array({key[0] for key in wanted}, type=arrow_schema(contract).field(contract.key[0]).type)
    terms: list[pc.Expression] = [pads.field(contract.key[0]).isin(firsts)]
    rows = read_files(contract, files, columns=contract.key, where=reduce(lambda left, right: left & right, terms))
    return set(zip(*(column.to_pylist() for column in rows.columns), strict=True)) if rows.num_rows else set()


def append_once(warehouse: Warehouse, delta: DeltaTable, contract: Contract, rows: Sequence[Mapping[str, object]]) -> bool:
    """One commit on this handle; False when another job appended since it was opened."""
    try:
        table = pa.Table.from_pylist([dict(row) for row in rows], schema=arrow_schema(contract))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        raise ContractError(f"{contract.table_id}: {type_fault(contract, rows)}; mend the job that makes it") from None
    properties = CommitProperties(app_transactions=[Transaction(APPENDER, delta.version() + 1)])
    try:
        append_rows(warehouse, contract, delta, table, properties=properties)
    except CommitFailedError:
        return False
    return True


def type_fault(contract: Contract, rows: Sequence[Mapping[str, object]]) -> str:
    """Which column holds a value of another type than the contract's, without the value."""
    for field in arrow_schema(contract):
        for row in rows:
            try:
                pa.array([row[field.name]], type=field.type)
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
                return f"column {field.name} holds a {type(row[field.name]).__name__}, the contract says {contract.column(field.name).type}"
    return "a value does not fit its column"
