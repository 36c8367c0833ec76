"""Rows of any table with only what a test says about them, and warehouses made of such rows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from recgpt_ops.delta.generations import publish_arrow
from recgpt_ops.delta.pointer import move_pointer
from recgpt_ops.delta.records import append_records
from recgpt_ops.delta.schemas import arrow_schema
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.ids import user_bucket
from recgpt_ops.tables import load_contract

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZERO: dict[str, Any] = {"int": 1, "long": 1, "double": 0.5, "boolean": False, "timestamp": EPOCH}
USUAL = {"scenario": "default", "method": "v2", "locale": "en-US", "region": "US", "status": "computed", "reason": "forced"}


def filled(table: str, **given: Any) -> dict[str, Any]:
    """One row: what is given, the usual words, null where it may be, else 1, 0.5, [] or the column's own name."""
    row: dict[str, Any] = {}
    for column in load_contract(table).columns:
        usual = USUAL.get(column.name, ZERO.get(column.type, [] if column.type.startswith("array") else column.name))
        row[column.name] = given.get(column.name, None if column.nullable else usual)
    if "user_bucket" in row:
        row["user_bucket"] = user_bucket(row["user_id"])
    assert given.keys() <= row.keys(), f"{table} has no {given.keys() - row.keys()}"
    return row


def publish(warehouse: Warehouse, table: str, *rows: dict[str, Any], ds: str, publish_id: str, fence: int = 1) -> None:
    """One generation of a night table, or one import of a feed."""
    place = {"ds": ds, "publish_id": publish_id} if load_contract(table).kind == "night" else {"import_id": publish_id}
    told = [filled(table, **{**place, **row}) for row in rows]
    built = pa.Table.from_pylist(told, schema=arrow_schema(load_contract(table)))
    publish_arrow(warehouse, table, built, publish_id=publish_id, scopes=[ds], fence=fence, input_digest="inputs")


def record(warehouse: Warehouse, table: str, *rows: dict[str, Any]) -> None:
    """Rows of a record table."""
    append_records(warehouse, table, [filled(table, **row) for row in rows])


def show(warehouse: Warehouse, *, ds: str, publish_id: str, fence: int = 1, method: str = "v2") -> None:
    """Moves the pointer of one method."""
    move_pointer(
        warehouse, ds=ds, scenario="default", method=method, fence=fence, publish_id=publish_id, input_digest="inputs",
        certificate_sha256="c", why="night", published_by="run",
    )  # fmt: skip
