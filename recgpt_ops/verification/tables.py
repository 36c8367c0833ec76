"""The tables as one verification sees them: the files of one version of each, and DuckDB over them in bounded memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from recgpt_ops.delta.reading import DataFile, files_dataset, generation_files
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.tables import load_contract

MEMORY = "1GB"  # of DuckDB; what does not fit goes to its temporary folder


class Tables:
    """A warehouse and what was read of its logs so far. `database` is shared; each question gets a cursor of its own."""

    def __init__(self, warehouse: Warehouse, database: duckdb.DuckDBPyConnection) -> None:
        self.warehouse, self.database = warehouse, database
        self.found: dict[str, list[DataFile]] = {}

    def files(self, table: str, **partitions: str | Collection[str]) -> list[DataFile]:
        """The files of a table, or of some partitions, that can be read; the check of files tells those that cannot."""
        if table not in self.found:
            self.found[table] = [file for file in generation_files(self.warehouse, table) if is_readable(file.path)]
        wanted = {name: {value} if isinstance(value, str) else set(value) for name, value in partitions.items()}
        return [file for file in self.found[table] if all(file.partition[name] in values for name, values in wanted.items())]

    def ask(self, **relations: list[DataFile]) -> duckdb.DuckDBPyConnection:
        """A cursor that knows some tables' files by the tables' names."""
        cursor = self.database.cursor()
        for table, files in relations.items():
            cursor.register(table, files_dataset(load_contract(table), files))
        return cursor


def scalar(connection: duckdb.DuckDBPyConnection, sql: str) -> int:
    """The one number that a query gives, read to its end: a cursor takes nothing new before that."""
    ((number,),) = connection.execute(sql).fetchall()
    return int(number)


@contextmanager
def open_tables(warehouse: Warehouse) -> Iterator[Tables]:
    """The tables of a warehouse, with a DuckDB that spills to a temporary folder instead of growing."""
    with TemporaryDirectory() as folder, duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.execute(f"SET memory_limit = '{MEMORY}'")
        database.execute(f"SET temp_directory = '{folder}'")
        yield Tables(warehouse, database)


def is_readable(path: str) -> bool:
    """Whether a file is there and has a Parquet footer."""
    try:
        pq.read_metadata(path)
    except (OSError, pa.ArrowException):
        return False
    return True
