"""Small frames for transform tests: only the columns that matter are given, the rest is filled in."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from recgpt_ops.delta.schemas import arrow_schema
from recgpt_ops.ids import user_bucket
from recgpt_ops.spark import frame_of
from recgpt_ops.tables import load_contract


def at(text: str) -> datetime:
    """A time in UTC: `2017-10-28`, or with a clock time."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def table_of(table: str, rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Rows of a table; a column that a row does not give is null."""
    schema = arrow_schema(load_contract(table))
    return pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema=schema)


def event_rows(*rows: tuple[Any, ...]) -> list[dict[str, Any]]:
    """(user, action, item, quantity, time[, arrived_ds]); ids by place, dates from the time in UTC."""
    built = []
    for number, (user, action, item, quantity, time, *arrived) in enumerate(rows):
        event_ds = time[:10]
        arrived_ds = arrived[0] if arrived else event_ds
        words = {"query": item} if action == "search" else {"campaign_id": item} if action == "campaign" else {"item_id": item}
        built.append(
            {
                "event_id": f"e{number:05d}", "user_id": user, "user_bucket": user_bucket(user), "action": action, **words,
                "quantity": quantity, "event_at": at(time), "event_at_precision": "second", "event_ds": event_ds,
                "arrived_ds": arrived_ds, "arrived_month": arrived_ds[:7], "import_id": "i1", "source": "test",
            }
        )  # fmt: skip
    return built


def events(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    """`event_rows` as a frame."""
    return frame_of(spark, table_of("behavior_events", event_rows(*rows)))


def frame(spark: SparkSession, table: str, *rows: dict[str, Any]) -> DataFrame:
    """Rows of any table as a frame."""
    return frame_of(spark, table_of(table, rows))


def item(item_id: str, title: str | None = None, **more: Any) -> dict[str, Any]:
    """An item that holds from the beginning."""
    return {"item_id": item_id, "title": title or item_id, "valid_from_ds": "0001-01-01", "locale": "en-US", **more}


def profile(user_id: str, **more: Any) -> dict[str, Any]:
    """A user's profile from the beginning."""
    base = {"valid_from_ds": "0001-01-01", "locale": "en-US", "region": "US", "attributes": []}
    return {"user_id": user_id, "user_bucket": user_bucket(user_id), **base, **more}
