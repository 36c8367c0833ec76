"""A generation that Spark's own writer of Delta commits: its workers write the table's files, we say when it may and look whether it did.

    marker not there -> the writer's append under txnAppId = the marker of commits.py -> marker there
    commitInfo.userMetadata   {"recgpt.publish_id": "p1", ..., "recgpt.row_digest": "3f9c"}: what was checked before

The writer skips an append silently when its marker is in the log, whoever put it there, and it writes bytes of its own. So what has
landed is asked of the log, and what was committed is read back and held to the digest of what was checked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from recgpt_ops.delta.commits import landed_scopes, marker
from recgpt_ops.delta.locks import commit_lock
from recgpt_ops.delta.reading import DataFile
from recgpt_ops.delta.schemas import arrow_schema, require_columns
from recgpt_ops.delta.staging import MIB, PARTITION_VALUE
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.effects import effect
from recgpt_ops.errors import ContractError, NightError, RecgptError
from recgpt_ops.tables import Contract

ROW_DIGEST = "recgpt.row_digest"


class Append(Protocol):
    """Appends Parquet files to a Delta table in one commit of an engine's own (`spark.delta_append`); a fault is a RecgptError."""

    def __call__(
        self, files: Sequence[str], table: str, *, schema: pa.Schema, partition_by: Sequence[str], file_count: int, app: str, version: int,
        metadata: str,
    ) -> None:  # fmt: skip
        """All columns of `schema` are in the files; `app` and `version` are the marker, `metadata` goes into the log as it is."""


def whole_file(contract: Contract, path: Path) -> DataFile:
    """A staged file that holds all columns, its partition's too."""
    with pq.ParquetFile(path) as parquet:
        require_columns(contract, parquet.schema_arrow)
        return DataFile(str(path), {}, parquet.metadata.num_rows, path.stat().st_size)


def commit_by(
    append: Append,
    warehouse: Warehouse,
    contract: Contract,
    files: Sequence[DataFile],
    *,
    scopes: Sequence[str],
    publish_id: str,
    fence: int | None,
    metadata: Mapping[str, str],
) -> None:
    """Has the files' rows appended once. Done when the marker is in the log, by this attempt or another one at the same generation."""
    if contract.kind != "night" or len(scopes) != 1:
        raise NightError(f"{contract.table_id}: Spark's writer can mark one scope in a commit, got {len(scopes)}; publish by delta_rs")
    if not all(map(PARTITION_VALUE.fullmatch, (*scopes, publish_id))):
        raise ContractError(f"{contract.table_id}: {scopes[0]!r} and {publish_id!r} name a partition and must be plain words")
    root = Path(warehouse.path(contract.name))
    with effect("table.commit", contract.name), commit_lock(root):
        if landed_scopes(warehouse.open(contract.name), scopes, publish_id):
            return
        try:
            append(
                [file.path for file in files],
                str(root),
                schema=arrow_schema(contract),
                partition_by=contract.partition_by,
                file_count=max(1, -(-sum(file.size_bytes for file in files) // (contract.target_file_mb * MIB))),
                app=marker(scopes[0], publish_id),
                version=fence or 0,
                metadata=json.dumps(dict(metadata), sort_keys=True),
            )
        except RecgptError:
            # As with our own commits: an error is no proof that nothing was written.
            if not landed_scopes(warehouse.open(contract.name), scopes, publish_id):
                raise
        if not landed_scopes(warehouse.open(contract.name), scopes, publish_id):
            raise NightError(
                f"{contract.table_id}, {scopes[0]}: Spark reported no error, but the log of the table holds no marker of {publish_id}; "
                "nothing was published, run the stage again"
            )


def hold_to_commit(delta: DeltaTable, contract: Contract, *, scope: str, publish_id: str, row_digest: str) -> None:
    """NightError when the log says that other rows were checked than those that were committed; nothing where it says nothing."""
    commits = [json.loads(text) for commit in delta.history() if ROW_DIGEST in (text := commit.get("userMetadata") or "")]
    for told in commits:
        if (told["recgpt.publish_id"], told["recgpt.scope"]) == (publish_id, scope) and told[ROW_DIGEST] != row_digest:
            raise NightError(
                f"{contract.table_id}, {scope}: the rows that Spark committed under {publish_id} have digest {row_digest}, those that were "
                f"checked had {told[ROW_DIGEST]}; nothing shows them, start a new generation with --rebuild"
            )
