"""Reading tables by their files: one partition, one generation, the newest generation of each bucket.

The list of files comes from the Delta log, the rows by Arrow or DuckDB straight from these files. That is lazy, cheap, and leaves the
process without threads of a foreign file system, which have been seen to abort it at exit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
from deltalake import DeltaTable
from pyarrow.fs import LocalFileSystem

from recgpt_ops.delta.faults import told_plainly
from recgpt_ops.delta.schemas import arrow_schema, empty_table
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.tables import Contract, load_contract


class DataFile(NamedTuple):
    """One Parquet file of a table. The file itself does not hold the partition columns."""

    path: str
    partition: dict[str, str]
    row_count: int
    size_bytes: int


def table_files(delta: DeltaTable, contract: Contract) -> list[DataFile]:
    """Every file of one version of a table, in order of path."""
    actions = pa.table(delta.get_add_actions(flatten=True))
    root = Path(delta.table_uri.removeprefix("file://"))
    files = [
        DataFile(
            str(root / row["path"]),
            {name: row[f"partition.{name}"] for name in contract.partition_by},
            row["num_records"] or 0,
            row["size_bytes"],
        )
        for row in actions.to_pylist()
    ]
    return sorted(files)


def generation_files(warehouse: Warehouse, table: str, **partitions: str | Collection[str]) -> list[DataFile]:
    """The files whose partition columns have the given value (or one of them); [] when the table does not exist.

    generation_files(warehouse, "intent_tags", ds="2017-10-30", publish_id=["p1", "p2"])
    """
    if not warehouse.exists(table):
        return []
    wanted = {name: {value} if isinstance(value, str) else set(value) for name, value in partitions.items()}
    files = table_files(warehouse.open(table), load_contract(table))
    return [file for file in files if all(file.partition[name] in values for name, values in wanted.items())]


def files_dataset(contract: Contract, files: Sequence[DataFile]) -> pads.Dataset:
    """The files as one lazy Arrow dataset with all columns of the contract, partition columns included."""
    parquet, local = pads.ParquetFileFormat(), LocalFileSystem()
    fragments = [
        parquet.make_fragment(file.path, filesystem=local, partition_expression=partition_expression(file.partition)) for file in files
    ]
    if not fragments:
        return pads.dataset(empty_table(contract))
    return pads.FileSystemDataset(fragments, arrow_schema(contract), parquet, local)


def partition_expression(partition: Mapping[str, str]) -> pc.Expression | None:
    """`ds == a and publish_id == b`: Arrow fills the columns from it and skips files by it."""
    terms = [pads.field(name) == value for name, value in partition.items()]
    return reduce(lambda left, right: left & right, terms) if terms else None


def read_files(
    contract: Contract, files: Sequence[DataFile], *, columns: Sequence[str] | None = None, where: pc.Expression | None = None
) -> pa.Table:
    """The rows of some files in memory; `columns` in the order asked for, all of the contract's when None."""
    wanted = list(contract.column_names if columns is None else columns)
    for name in wanted:
        contract.column(name)  # a wrong name is told with the right ones
    with told_plainly(contract.table_id):
        return files_dataset(contract, files).to_table(columns=wanted, filter=where)


def read_arrow(warehouse: Warehouse, table: str, *, columns: Sequence[str] | None = None, where: pc.Expression | None = None) -> pa.Table:
    """A whole table, or the rows of it for which `where` holds; empty with the contract's columns when it does not exist."""
    return read_files(load_contract(table), generation_files(warehouse, table), columns=columns, where=where)


def read_rows(
    warehouse: Warehouse, table: str, *, columns: Sequence[str] | None = None, where: pc.Expression | None = None
) -> list[dict[str, object]]:
    """`read_arrow` as a list of dicts; [] when the table does not exist."""
    rows: list[dict[str, object]] = read_arrow(warehouse, table, columns=columns, where=where).to_pylist()
    return rows


def read_generation(
    warehouse: Warehouse,
    table: str,
    *,
    ds: str,
    publish_id: str,
    scenario: str | None = None,
    methods: Collection[str] | None = None,
    columns: Sequence[str] | None = None,
) -> pa.Table:
    """The rows that one generation of a night table holds, all scenarios and methods unless some are named; visible or not."""
    terms = []
    if scenario is not None:
        terms.append(pads.field("scenario") == scenario)
    if methods is not None:
        terms.append(pads.field("method").isin(list(methods)))
    where = reduce(lambda left, right: left & right, terms) if terms else None
    files = generation_files(warehouse, table, ds=ds, publish_id=publish_id)
    return read_files(load_contract(table), files, columns=columns, where=where)


def dropped_places(warehouse: Warehouse) -> set[tuple[str, str, str]]:
    """(table, partition, publish_id) of every generation that maintenance has dropped; their certificates stay."""
    rows = read_rows(warehouse, "dropped_generations", columns=["table_name", "partition", "publish_id"])
    return {(str(row["table_name"]), str(row["partition"]), str(row["publish_id"])) for row in rows}


def state_generations(warehouse: Warehouse, table: str, *, arrived_cut_ds: str) -> dict[str, str]:
    """Bucket -> publish_id of its newest generation whose cut is at or before `arrived_cut_ds`; an empty bucket is there too.

    Of two generations with one cut (a rebuild) the one certified last counts; equal inputs made them equal.
    """
    where = (pads.field("table_name") == table) & (pads.field("arrived_cut_ds") <= arrived_cut_ds)
    rows = read_rows(warehouse, "certificates", columns=["partition", "publish_id", "arrived_cut_ds", "made_at"], where=where)
    rows.sort(key=lambda row: (row["arrived_cut_ds"], row["made_at"], row["publish_id"]))
    dropped = dropped_places(warehouse)
    found = [(str(row["partition"]), str(row["publish_id"])) for row in rows]
    return {bucket: publish_id for bucket, publish_id in found if (table, bucket, publish_id) not in dropped}


def state_files(warehouse: Warehouse, table: str, generations: Mapping[str, str]) -> list[DataFile]:
    """The files of the given generations, `state_generations`' result or a part of it."""
    files = generation_files(warehouse, table, bucket=generations.keys(), publish_id=set(generations.values()))
    return [file for file in files if generations[file.partition["bucket"]] == file.partition["publish_id"]]
