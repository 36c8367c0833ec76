"""Ways to damage a warehouse: rows changed where they lie or through Delta itself, files, the pointer, the ledger."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake
from deltalake.transaction import AddAction

from recgpt_ops.delta.reading import DataFile, generation_files, read_arrow
from recgpt_ops.delta.schemas import arrow_schema
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.ledger.segments import pack, scan
from recgpt_ops.tables import load_contract

Row = dict[str, Any]
Change = Callable[[list[Row]], list[Row]]


def through_delta(warehouse: Warehouse, table: str, change: Change) -> None:
    """Rewrites a table as any job could: the log agrees with the files afterwards."""
    rows = change(read_arrow(warehouse, table).to_pylist())
    write_deltalake(warehouse.path(table), pa.Table.from_pylist(rows, schema=arrow_schema(load_contract(table))), mode="overwrite")


def in_place(file: DataFile, change: Change) -> None:
    """Rewrites one file behind the back of the log."""
    table = pq.read_table(file.path, partitioning=None)
    pq.write_table(pa.Table.from_pylist(change(table.to_pylist()), schema=table.schema), file.path)


def other_value(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, list):
        return value[:-1]
    if isinstance(value, str):
        return f"{value}x"
    return "x" if value is None else value + timedelta(seconds=1)


def swap(one: DataFile, other: DataFile) -> None:
    """Exchanges what two files hold."""
    first, second = Path(one.path).read_bytes(), Path(other.path).read_bytes()
    assert first != second
    Path(one.path).write_bytes(second)
    Path(other.path).write_bytes(first)


def add_copy(warehouse: Warehouse, table: str, file: DataFile, **partition: str) -> None:
    """Commits a copy of a file under another partition, as its own folder says."""
    contract = load_contract(table)
    values = {**file.partition, **partition}
    path = "/".join([*(f"{name}={value}" for name, value in values.items()), f"copied-{os.path.basename(file.path)}"])
    target = Path(warehouse.path(table)) / path
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(file.path, target)
    action = AddAction(path, file.size_bytes, values, 0, True, json.dumps({"numRecords": file.row_count}))
    warehouse.open(table).create_write_transaction([action], "append", arrow_schema(contract), list(contract.partition_by))


def files_of(warehouse: Warehouse, table: str, **partitions: str) -> list[DataFile]:
    """The files of some partitions; there are some."""
    found = generation_files(warehouse, table, **partitions)
    assert found, (table, partitions)
    return found


def segments(warehouse: Warehouse) -> list[Path]:
    """Every segment of the ledger."""
    return sorted((Path(warehouse.root) / "_ledger").rglob("*.seg"))


def rewrite_answer(segment: Path, change: Callable[[Row], Row], *, place: int = 0) -> None:
    """Changes what one record says and gives it the checksum of that."""
    data = segment.read_bytes()
    records = list(scan(data, [], where="here"))
    written = b""
    for number, record in enumerate(records):
        payload = json.loads(record.payload)
        written += pack(record.call_id.hex(), record.bucket, change(payload) if number == place else payload)
    assert written != data
    segment.write_bytes(written)
