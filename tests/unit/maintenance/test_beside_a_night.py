"""Maintenance in a process of its own while nights are published."""

from __future__ import annotations

import multiprocessing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from recgpt_ops.delta import checks
from recgpt_ops.delta.reading import generation_files
from recgpt_ops.delta.warehouse import open_warehouse
from recgpt_ops.maintenance.maintain import Ages, maintain
from tests.unit.maintenance.test_maintain import visible_rows
from tests.unit.verification.nights import FIRST, REBUILT, copy_of, night, verify

pytestmark = pytest.mark.slow
NEXT, AFTER = "2017-10-31", "2017-11-01"


def maintain_until(root: str, cutoff: datetime, begun: Any, ended: Any) -> None:
    """Maintains again and again, sparing what was made or shown after `cutoff`, until `ended` is set."""
    warehouse = open_warehouse(root)
    while not ended.is_set():
        now = datetime.now(UTC)
        ages = Ages(now - cutoff, timedelta(days=14))
        maintain(warehouse, ledger=Path(root) / "_ledger", ages=ages, now=now, say=lambda _: None)
        begun.set()


def test_case_070_keys_are_unchanged_and_nothing_is_lost_when_both_work_at_once(sound, tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "run_checks", lambda *_: [])
    warehouse, cutoff = copy_of(sound, tmp_path), datetime.now(UTC)
    before = visible_rows(warehouse)
    context = multiprocessing.get_context("spawn")
    begun, ended = context.Event(), context.Event()
    beside = context.Process(target=maintain_until, args=(warehouse.root, cutoff, begun, ended))
    beside.start()
    try:
        assert begun.wait(timeout=60)
        for ds in (NEXT, AFTER):
            night(warehouse, ds, f"run of {ds}", computed=["u1", "u2", "u4"], bucket=ds, shared=FIRST)
    finally:
        ended.set()
        beside.join(timeout=60)
    assert beside.exitcode == 0
    after = visible_rows(warehouse)
    assert {table: [row for row in rows if NEXT not in row and AFTER not in row] for table, rows in after.items()} == before
    assert all(any(ds in row for row in after["intent_tags"]) for ds in (NEXT, AFTER))
    assert REBUILT not in {file.partition["publish_id"] for file in generation_files(warehouse, "intent_tags")}
    assert verify(warehouse).differences == []
