"""A warehouse with two days of events, three profiles, and a way to put nights into it without running one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from recgpt_ops.delta.schemas import arrow_schema
from recgpt_ops.delta.warehouse import Warehouse, create_table, fix_identity, open_warehouse
from recgpt_ops.ids import text_hash, user_bucket
from recgpt_ops.nights import input_version
from recgpt_ops.publishing import publish_night
from recgpt_ops.runs import NightRun, StageCounts, record_state
from recgpt_ops.settings import Settings, load_settings
from recgpt_ops.tables import load_contract

DS = "2017-10-30"


def filled(table: str, row: dict[str, Any]) -> dict[str, Any]:
    """The row with a plain value in each column that it does not name."""
    plain: dict[str, Any] = {"string": "US", "int": 1, "long": 1, "double": 0.0, "boolean": False}
    midnight = datetime(2017, 10, 30, tzinfo=UTC)
    built = {}
    for column in load_contract(table).columns:
        built[column.name] = None if column.nullable else midnight if column.type == "timestamp" else plain.get(column.type, [])
    if row.get("user_id") is not None and "user_bucket" in built:
        built["user_bucket"] = user_bucket(row["user_id"])
    return {**built, **row}


def write(warehouse: Warehouse, table: str, rows: list[dict[str, Any]]) -> None:
    """Appends rows of which only what matters is said; unchecked, since these tests are about what stands in the tables."""
    create_table(warehouse, table)
    made = pa.Table.from_pylist([filled(table, row) for row in rows], schema=arrow_schema(load_contract(table)))
    write_deltalake(warehouse.path(table), made, mode="append")


def add_events(warehouse: Warehouse, import_id: str, *days: str) -> None:
    """One purchase a day."""
    rows = [
        {
            "event_id": f"{import_id}-{day}", "import_id": import_id, "user_id": "u1",
            "action": "purchase", "item_id": "i1", "event_at_precision": "second", "event_ds": day, "arrived_ds": day,
            "arrived_month": day[:7],
        }
        for day in days
    ]  # fmt: skip
    write(warehouse, "behavior_events", rows)


def add_audience(warehouse: Warehouse, publish_id: str, *, attempt: int = 1, ds: str = DS, **statuses: str) -> None:
    """night_users of one generation: add_audience(w, "p1", u1="computed", u2="carried")."""
    rows = [
        {
            "ds": ds, "publish_id": publish_id, "scenario": "default", "method": "v2", "user_id": user_id,
            "status": status, "reason": "forced", "made_by": "p0" if status == "carried" else publish_id, "computed_ds": ds,
            "attempt": attempt,
        }
        for user_id, status in statuses.items()
    ]  # fmt: skip
    write(warehouse, "night_users", rows)


def add_tags(warehouse: Warehouse, publish_id: str, *user_ids: str) -> None:
    """One tag a user."""
    rows = [
        {
            "ds": DS, "publish_id": publish_id, "scenario": "default", "method": "v2", "user_id": user_id,
            "tag_id": f"t-{user_id}", "tag": "red wine", "rank": 1,
        }
        for user_id in user_ids
    ]  # fmt: skip
    write(warehouse, "intent_tags", rows)


def night_run(warehouse, settings, publish_id, *, attempt=1, stage="publish_night", why="night") -> NightRun:
    return NightRun(DS, "default", ("v2",), publish_id, "run-1", attempt, why, None, (), settings, warehouse, stage)


def begin(warehouse, settings, publish_id, *, attempt=1) -> None:
    """The row that night_users leaves when it is done."""
    counts = StageCounts(detail={"inputs": {"v2": dict(input_version(warehouse, settings, ds=DS, method="v2").parts)}})
    record_state(night_run(warehouse, settings, publish_id, attempt=attempt, stage="night_users"), counts, state="done", seconds=1.0)


def publish(warehouse, settings, publish_id, *, attempt=1) -> StageCounts:
    counts = StageCounts()
    publish_night(night_run(warehouse, settings, publish_id, attempt=attempt), counts)
    return counts


@pytest.fixture
def settings(tmp_path) -> Settings:
    return load_settings({}, warehouse=str(tmp_path / "warehouse"))


@pytest.fixture
def warehouse(settings: Settings) -> Warehouse:
    opened = open_warehouse(settings.warehouse, create=True)
    fix_identity(opened, zone="America/New_York", locale="en-US")
    add_events(opened, "first", "2017-10-29", DS)
    profiles = [
        {"user_id": user_id, "valid_from_ds": "0001-01-01", "import_id": "first", "text_hash": text_hash(user_id)}
        for user_id in ("u1", "u2", "u3")
    ]  # fmt: skip
    write(opened, "user_profiles", profiles)
    return opened


@pytest.fixture
def done(warehouse, settings):
    """A night of u1 and u2 that was published."""
    begin(warehouse, settings, "p1")
    add_audience(warehouse, "p1", u1="computed", u2="computed")
    add_tags(warehouse, "p1", "u1", "u2")
    publish(warehouse, settings, "p1")
    return warehouse
