"""Dropping generations: first the record that they go, then one commit a table that takes their files out of the log.

A kill in between leaves rows that nothing names and that the next run takes out. The files themselves lie there until vacuum, so that
a query that has begun can end.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby

from recgpt_ops.delta.commits import remove_files
from recgpt_ops.delta.records import append_records
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.maintenance.generations import Doomed
from recgpt_ops.tables import load_contract


def drop_generations(warehouse: Warehouse, doomed: Sequence[Doomed]) -> None:
    """Drops them, table by table; one that was recorded before keeps its record."""
    now = datetime.now(UTC)
    rows = [
        {
            "table_name": one.place.table, "partition": one.place.partition, "publish_id": one.place.publish_id, "reason": one.reason,
            "row_count": one.row_count, "file_count": len(one.files), "size_bytes": one.size_bytes, "dropped_at": now,
        }
        for one in doomed
    ]  # fmt: skip
    append_records(warehouse, "dropped_generations", rows)
    for table, some in groupby(sorted(doomed, key=lambda one: one.place), key=lambda one: one.place.table):
        remove_files(warehouse, load_contract(table), [file for one in some for file in one.files])
