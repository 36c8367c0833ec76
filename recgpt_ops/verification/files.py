"""Each file that a table's log names: is it there, in the folder of its partition, as long as the log says, with the contract's columns."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from recgpt_ops.delta.reading import DataFile, table_files
from recgpt_ops.delta.staging import PARTITION_VALUE
from recgpt_ops.errors import RecgptError
from recgpt_ops.tables import Contract
from recgpt_ops.verification.findings import MOST_LINES, Findings
from recgpt_ops.verification.tables import Tables

RESTORE = "restore the table's folder from a backup"


def sound_files(findings: Findings, tables: Tables, contract: Contract, **partitions: Collection[str]) -> list[DataFile]:
    """The files of a table (or of some partitions) that can be read, every fault of any told; [] for a table that was never made."""
    warehouse = tables.warehouse
    if not warehouse.exists(contract.name):
        return []
    try:
        files = table_files(warehouse.open(contract.name), contract)
    except RecgptError as error:
        findings.differ(contract.name, expected="a log that can be read", got=f"an error ({error})", next_step=RESTORE)
        return []
    root = Path(warehouse.path(contract.name))
    files = [file for file in files if all(file.partition[name] in wanted for name, wanted in partitions.items())]
    sound = [file for file in files if check_file(findings, contract, file, root)]
    findings.counts["files"] += len(files)
    return sound


def check_file(findings: Findings, contract: Contract, file: DataFile, root: Path) -> bool:
    """Holds one file to what the log says of it; False when it cannot be read at all."""
    name = os.path.relpath(file.path, root)
    where = f"{contract.name}, file {name}"
    folder = "/".join(f"{column}={value}" for column, value in file.partition.items()) or "."
    if not all(PARTITION_VALUE.fullmatch(value or "") for value in file.partition.values()) or (os.path.dirname(name) or ".") != folder:
        findings.differ(
            where, expected=f"a file of folder {folder}, as the log names its partition", got="one of another", next_step=RESTORE
        )
    try:
        size, footer = os.path.getsize(file.path), pq.read_metadata(file.path)
    except (OSError, pa.ArrowException) as error:
        got = "none" if isinstance(error, FileNotFoundError) else "one that is none"
        findings.differ(where, expected="a Parquet file", got=got, next_step=RESTORE)
        return False
    if size != file.size_bytes:
        findings.differ(where, expected=f"{file.size_bytes} bytes", got=f"{size}", next_step=RESTORE)
    if file.row_count and footer.num_rows != file.row_count:
        findings.differ(where, expected=f"{file.row_count} rows", got=f"{footer.num_rows}", next_step=RESTORE)
    there = set(footer.schema.to_arrow_schema().names)
    missing = [
        column.name
        for column in contract.columns
        if column.name not in there and column.name not in contract.partition_by and not column.nullable
    ]
    if missing:
        findings.differ(where, expected=f"column {missing[0]}", got="none", next_step=RESTORE)
    return not missing


def check_keys(findings: Findings, tables: Tables, contract: Contract, files: Sequence[DataFile], *, where: str, next_step: str) -> None:
    """Tells every key that these files hold more than once; each generation counts by itself."""
    connection = tables.ask(**{contract.name: list(files)})
    generation = [name for name in ("publish_id",) if name in contract.partition_by and name not in contract.key]
    key = ", ".join(f'"{name}"' for name in (*contract.key, *generation))
    doubled = f"SELECT {key}, count(*) AS times FROM {contract.name} GROUP BY {key} HAVING count(*) > 1"
    connection.execute(f"CREATE TEMP TABLE doubled AS {doubled}")
    (count,) = connection.execute("SELECT count(*) FROM doubled").fetchall()[0]
    found = connection.execute(f"SELECT * FROM doubled ORDER BY {key} LIMIT {MOST_LINES}").fetchall() if count else []
    keys = [f"key {', '.join(map(str, row[:-1]))}" for row in found]
    findings.differ_each(keys, count, where=where, expected="each key once", got="it more than once", next_step=next_step)
