"""From whatever a job staged to the Parquet files that will be committed, as few and as large as the contract asks.

    _staging/<table>/<publish_id>/<token>/part-*.parquet     any number of files, all columns
    -> <table>/ds=2017-10-30/publish_id=p1/part-0000-p1-3f9c01ab.parquet     at most ceil(bytes / target_file_mb) per partition

The files lie below the table before they are committed, so that vacuum finds those of an attempt that died. Each name has a token of
its own: a second attempt at the same generation can never write over the files of the first.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterable, Iterator
from functools import reduce
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from recgpt_ops.delta.schemas import arrow_schema, conform, require_columns
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.effects import effect
from recgpt_ops.errors import ContractError, NightError
from recgpt_ops.tables import Contract, load_contract

MIB = 1024 * 1024
BATCH_ROWS = 131_072
ROW_GROUP_BYTES = 64 * MIB  # of Arrow memory
BUFFERED_BYTES = 512 * MIB  # of all partitions together
PARTITION_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")  # never empty, and spelled the same as a folder and in the log


class PartFile(NamedTuple):
    """One finished file below the table, not yet committed. `path` is relative to the table."""

    path: str
    partition: dict[str, str]
    row_count: int
    size_bytes: int


def stage_directory(warehouse: Warehouse, table: str, publish_id: str) -> Path:
    """A folder that does not exist yet, for one job's Parquet files; a retry gets another one."""
    parent = Path(warehouse.root) / "_staging" / load_contract(table).table_id / publish_id
    with effect("stage.folder", table):
        parent.mkdir(parents=True, exist_ok=True)
    return parent / secrets.token_hex(4)


def staged_files(contract: Contract, directory: Path) -> list[Path]:
    """The Parquet files that a job left in its folder; none is a result too, a folder that is not there is not."""
    if not directory.is_dir():
        raise NightError(f"{contract.table_id}: nothing was staged at {directory}; run the stage again")
    return sorted(path for path in directory.rglob("*.parquet") if not path.name.startswith(("_", ".")))


def staged_batches(contract: Contract, files: Iterable[Path]) -> Iterator[pa.Table]:
    """Conformed rows, file by file. Each file's own schema is held to the contract: another file's schema excuses nothing."""
    for path in files:
        with pq.ParquetFile(path) as parquet:
            require_columns(contract, parquet.schema_arrow)
            for batch in parquet.iter_batches(batch_size=BATCH_ROWS):
                yield conform(contract, pa.Table.from_batches([batch]))


class PartitionWriter:
    """Writes one partition's rows, starting a new file whenever the current one has reached the target size."""

    def __init__(self, contract: Contract, table_root: Path, partition: dict[str, str], *, publish_id: str, token: str) -> None:
        self.partition, self.publish_id, self.token = partition, publish_id, token
        self.root, self.folder = table_root, Path(*(f"{name}={value}" for name, value in partition.items()))
        self.table = contract.name
        self.schema = pa.schema([field for field in arrow_schema(contract) if field.name not in partition])
        self.target_bytes = contract.target_file_mb * MIB
        self.parts: list[PartFile] = []
        self.waiting: list[pa.Table] = []
        self.waiting_bytes = 0
        self.writer: pq.ParquetWriter | None = None
        self.row_count = 0

    def add(self, rows: pa.Table) -> None:
        """Takes rows, all of this partition."""
        self.waiting.append(rows.select(self.schema.names))
        self.waiting_bytes += self.waiting[-1].nbytes
        if self.waiting_bytes >= ROW_GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes what waits as one row group."""
        if not self.waiting:
            return
        rows = pa.concat_tables(self.waiting)
        self.waiting, self.waiting_bytes = [], 0
        with effect("part.write", self.table):
            if self.writer is None:
                path = self.current_path()
                path.parent.mkdir(parents=True, exist_ok=True)
                self.writer = pq.ParquetWriter(path, self.schema, compression="zstd", compression_level=1)
            self.writer.write_table(rows, row_group_size=rows.num_rows)
        self.row_count += rows.num_rows
        if self.current_path().stat().st_size >= self.target_bytes:
            self.finish_file()

    def current_path(self) -> Path:
        """The file being written."""
        name = f"part-{len(self.parts):04d}-{self.publish_id}-{self.token}.parquet"
        return self.root / self.folder / name

    def finish_file(self) -> None:
        """Closes the file and brings it to the disk, because the commit that names it may survive a crash."""
        if self.writer is None:
            return
        path = self.current_path()
        with effect("part.sync", self.table):
            self.writer.close()
            with path.open("rb") as file:
                os.fsync(file.fileno())
        self.parts.append(PartFile(str(path.relative_to(self.root)), self.partition, self.row_count, path.stat().st_size))
        self.writer, self.row_count = None, 0


def write_parts(contract: Contract, batches: Iterable[pa.Table], table_root: Path, *, publish_id: str) -> list[PartFile]:
    """Splits conformed rows by partition and writes the final files; the caller checks and commits, or removes them."""
    token = secrets.token_hex(4)
    writers: dict[tuple[str, ...], PartitionWriter] = {}
    try:
        for batch in batches:
            for partition, rows in split_partitions(contract, batch):
                values = tuple(partition.values())
                if values not in writers:
                    writers[values] = PartitionWriter(contract, table_root, partition, publish_id=publish_id, token=token)
                writers[values].add(rows)
            while sum(writer.waiting_bytes for writer in writers.values()) > BUFFERED_BYTES:
                max(writers.values(), key=lambda writer: writer.waiting_bytes).flush()
        for writer in writers.values():
            writer.flush()
            writer.finish_file()
    except BaseException:
        for writer in writers.values():
            if writer.writer is not None:
                writer.current_path().unlink(missing_ok=True)
            remove_parts(table_root, writer.parts)
        raise
    return sorted(part for writer in writers.values() for part in writer.parts)


def split_partitions(contract: Contract, rows: pa.Table) -> Iterator[tuple[dict[str, str], pa.Table]]:
    """The rows of each partition that occurs; a value that cannot be a partition is refused without showing the row."""
    if not contract.partition_by or rows.num_rows == 0:
        if rows.num_rows:
            yield {}, rows
        return
    names = list(contract.partition_by)
    for partition in rows.group_by(names).aggregate([]).to_pylist():
        for name, value in partition.items():
            if value is None or not PARTITION_VALUE.fullmatch(value):
                shown = "none" if value is None else f"{len(value)} characters that are no plain word"
                raise ContractError(
                    f"{contract.table_id}: {name} is a partition and must be letters, digits, '.', '_' or '-', got {shown}; "
                    "mend the job that makes it"
                )
        terms = (pc.field(name) == value for name, value in partition.items())
        yield partition, rows.filter(reduce(lambda left, right: left & right, terms))


def remove_parts(table_root: Path, parts: Iterable[PartFile]) -> None:
    """Takes back files that were not committed."""
    for part in parts:
        with effect("part.remove", table_root.name):
            (table_root / part.path).unlink(missing_ok=True)
