"""Upkeep of Delta tables: files that no version names any more, checkpoints, log entries past their retention.

Vacuum is safe while a night publishes: it leaves every file that the newest version names, and of the others those written or
removed within `IN_FLIGHT`, which are what a job at work has staged and what a query that has begun may still read.
"""

from __future__ import annotations

import json
from pathlib import Path

from deltalake import DeltaTable

from recgpt_ops.delta.faults import told_plainly
from recgpt_ops.delta.locks import commit_lock
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.effects import effect
from recgpt_ops.maintenance.sweeping import Old

CHECKPOINT_VERSIONS = 20  # so many log entries take some milliseconds to read; a hundred are felt


def dead_files(warehouse: Warehouse, table: str, *, hours: int) -> list[Old]:
    """Files below a table that its newest version does not name, not written and not removed within so many hours."""
    root = Path(warehouse.path(table))
    with told_plainly(table, root=warehouse.root):
        names = warehouse.open(table).vacuum(retention_hours=hours, dry_run=True, enforce_retention_duration=False, full=True)
    return [Old(root / name, (root / name).stat().st_size) for name in sorted(names) if (root / name).is_file()]


def vacuum(warehouse: Warehouse, table: str, *, hours: int) -> None:
    """Removes these files."""
    with told_plainly(table, root=warehouse.root), effect("table.vacuum", table), commit_lock(Path(warehouse.path(table))):
        warehouse.open(table).vacuum(retention_hours=hours, dry_run=False, enforce_retention_duration=False, full=True)


def needs_checkpoint(delta: DeltaTable) -> bool:
    """Whether a reader has to go through many log entries."""
    pointer = Path(delta.table_uri.removeprefix("file://")) / "_delta_log" / "_last_checkpoint"
    newest = int(json.loads(pointer.read_text())["version"]) if pointer.is_file() else 0
    return delta.version() - newest >= CHECKPOINT_VERSIONS


def write_checkpoint(warehouse: Warehouse, table: str) -> None:
    """Sums the log up in one file and removes entries older than Delta keeps them (30 days)."""
    delta = warehouse.open(table)
    with told_plainly(table, root=warehouse.root), effect("table.checkpoint", table), commit_lock(Path(warehouse.path(table))):
        delta.create_checkpoint()
        delta.cleanup_metadata()
