"""One commit of exactly the files that were checked, once per generation.

delta-rs takes a list of files as it is: a missing file, a wrong size, another partition's file all go in and break the table later.
So everything is verified here. Whether a generation has landed is asked of the log (its marker), never of the error that came back.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction

from recgpt_ops.delta.faults import told_plainly
from recgpt_ops.delta.locks import commit_lock
from recgpt_ops.delta.reading import DataFile, table_files
from recgpt_ops.delta.schemas import arrow_schema
from recgpt_ops.delta.staging import PARTITION_VALUE, PartFile, remove_parts, write_parts
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.effects import effect
from recgpt_ops.errors import NightError, RecgptError
from recgpt_ops.tables import Contract

FEED_APPENDER = "feed"  # imports of one table are committed one after another, each on a handle that has seen the one before
MAX_TRIES = 20

Guard = Callable[[DeltaTable], None]


def marker(scope: str, publish_id: str) -> str:
    """The application id under which one scope of a generation is committed, once."""
    return f"generation/{scope}/{publish_id}"


def landed_scopes(delta: DeltaTable, scopes: Sequence[str], publish_id: str) -> list[str]:
    """The scopes whose marker this version of the table holds."""
    return [scope for scope in scopes if delta.transaction_version(marker(scope, publish_id)) is not None]


def commit_parts(
    warehouse: Warehouse,
    contract: Contract,
    parts: Sequence[PartFile],
    *,
    scopes: Sequence[str],
    publish_id: str,
    fence: int | None,
    metadata: Mapping[str, str],
    guard: Guard | None = None,
) -> bool:
    """Adds the files and the markers of all scopes in one commit. False: another attempt at this generation was first.

    `guard` looks at the very handle that is committed on and raises when the commit must not be made (keys that are there already).
    """
    verify_parts(contract, parts, Path(warehouse.path(contract.name)), publish_id=publish_id)
    where = f"{contract.table_id}, {', '.join(scopes[:3])}"
    for _ in range(MAX_TRIES):
        delta = warehouse.open(contract.name)
        if landed := landed_scopes(delta, scopes, publish_id):
            return confirm_landed(delta, contract, parts, landed, scopes=scopes, publish_id=publish_id)
        if guard is not None:
            guard(delta)
        transactions = [Transaction(marker(scope, publish_id), fence or 0) for scope in scopes]
        if contract.kind == "feed":
            transactions.append(Transaction(FEED_APPENDER, delta.version() + 1))
        try:
            with told_plainly(where, root=warehouse.root):
                add_files(delta, contract, parts, CommitProperties(app_transactions=transactions, custom_metadata=dict(metadata)))
            return True
        except (CommitFailedError, RecgptError) as error:
            # An error is no proof that nothing was written: the marker is.
            delta = warehouse.open(contract.name)
            if landed := landed_scopes(delta, scopes, publish_id):
                return confirm_landed(delta, contract, parts, landed, scopes=scopes, publish_id=publish_id)
            if not isinstance(error, CommitFailedError):
                raise
    raise NightError(f"{where}: other jobs kept committing for {MAX_TRIES} tries; run the stage again, nothing was written")


def add_files(delta: DeltaTable, contract: Contract, parts: Sequence[PartFile], properties: CommitProperties) -> None:
    """The commit itself, while no other writer commits."""
    now = int(time.time() * 1000)
    actions: list[AddAction | RemoveAction] = [
        AddAction(part.path, part.size_bytes, dict(part.partition), now, True, json.dumps({"numRecords": part.row_count})) for part in parts
    ]
    with effect("table.commit", contract.name):
        commit_actions(delta, contract, actions, properties)


def commit_actions(
    delta: DeltaTable, contract: Contract, actions: list[AddAction | RemoveAction], properties: CommitProperties | None
) -> None:
    """One commit of files that come or go, under the table's lock."""
    with commit_lock(Path(delta.table_uri.removeprefix("file://"))):
        delta.create_write_transaction(
            actions,
            mode="append",
            schema=arrow_schema(contract),
            partition_by=list(contract.partition_by),
            commit_properties=properties,
        )


def remove_files(warehouse: Warehouse, contract: Contract, files: Sequence[DataFile]) -> None:
    """Takes files out of the log in one commit; those that are out already are left alone. On the disk they stay until vacuum."""
    root = Path(warehouse.path(contract.name))
    for _ in range(MAX_TRIES):
        delta = warehouse.open(contract.name)
        present = {file.path for file in table_files(delta, contract)}
        now = int(time.time() * 1000)
        actions: list[AddAction | RemoveAction] = [
            RemoveAction(str(Path(file.path).relative_to(root)), True, now, file.size_bytes, dict(file.partition))
            for file in files
            if file.path in present
        ]
        if not actions:
            return
        try:
            with told_plainly(contract.table_id, root=warehouse.root), effect("table.drop", contract.name):
                commit_actions(delta, contract, actions, None)
        except CommitFailedError:
            continue  # somebody committed in between
        return
    raise NightError(f"{contract.table_id}: other jobs kept committing for {MAX_TRIES} tries; run maintenance again")


def append_rows(warehouse: Warehouse, contract: Contract, delta: DeltaTable, rows: pa.Table, *, properties: CommitProperties) -> None:
    """Appends a few rows of a record table in one commit on this very handle. Whoever gets an error knows that nothing landed.

    The file is written by Arrow: delta-rs prints a stack trace of its own when the disk is full.
    """
    root = Path(warehouse.path(contract.name))
    with told_plainly(contract.table_id, root=str(root)):
        parts = write_parts(contract, [rows], root, publish_id="records")
        try:
            add_files(delta, contract, parts, properties)
        except BaseException as error:
            if take_back(warehouse, contract, parts) or not isinstance(error, Exception):
                raise


def take_back(warehouse: Warehouse, contract: Contract, parts: Sequence[PartFile]) -> bool:
    """Removes files whose commit did not land and says whether it did so: an error or Ctrl-C may come after the log was written."""
    if is_committed(warehouse.open(contract.name), parts):
        return False
    remove_parts(Path(warehouse.path(contract.name)), parts)
    return True


def is_committed(delta: DeltaTable, parts: Sequence[PartFile]) -> bool:
    """Whether the first of these files is in the table; all of them are in one commit."""
    root = Path(delta.table_uri.removeprefix("file://"))
    return bool(parts) and root / parts[0].path in {Path(uri.removeprefix("file://")) for uri in delta.file_uris()}


def confirm_landed(
    delta: DeltaTable, contract: Contract, parts: Sequence[PartFile], landed: Sequence[str], *, scopes: Sequence[str], publish_id: str
) -> bool:
    """Whether what landed are these files (True) or those of another attempt (False); half a set of scopes is a fault."""
    if len(landed) != len(scopes):
        missing = sorted(set(scopes) - set(landed))
        raise NightError(
            f"{contract.table_id}: generation {publish_id} was committed for {len(landed)} of {len(scopes)} scopes, "
            f"{missing[0]} is not there; start a new generation with --rebuild"
        )
    return is_committed(delta, parts)


def verify_parts(contract: Contract, parts: Sequence[PartFile], table_root: Path, *, publish_id: str) -> None:
    """Holds every file to what the commit will say of it."""
    wanted = pa.schema([field for field in arrow_schema(contract) if field.name not in contract.partition_by])
    for part in parts:
        path, faults = table_root / part.path, []
        folder = "/".join(f"{name}={value}" for name, value in part.partition.items())
        if tuple(part.partition) != contract.partition_by or not all(map(PARTITION_VALUE.fullmatch, part.partition.values())):
            faults.append(f"partition {part.partition!r}, expected values of {contract.partition_by!r}")
        if part.partition.get("publish_id", publish_id) != publish_id:
            faults.append(f"generation {part.partition['publish_id']!r}, expected {publish_id!r}")
        if str(Path(part.path).parent) != (folder or "."):
            faults.append(f"folder {Path(part.path).parent}, expected {folder or '.'}")
        if not path.is_file() or os.path.getsize(path) != part.size_bytes:
            faults.append(f"no file of {part.size_bytes} bytes")
        else:
            footer = pq.read_metadata(path)
            if footer.num_rows != part.row_count:
                faults.append(f"{footer.num_rows} rows, expected {part.row_count}")
            if not footer.schema.to_arrow_schema().equals(wanted):
                faults.append("columns that are not the contract's")
        if faults:
            raise NightError(f"{contract.table_id}: staged file {part.path} has {'; '.join(faults)}; run the stage again")
