"""A warehouse in a temporary folder, and rows of a few tables with only what a test says about them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from recgpt_ops.delta.generations import Certificate, publish_arrow
from recgpt_ops.delta.schemas import arrow_schema
from recgpt_ops.delta.warehouse import Warehouse, fix_identity, open_warehouse
from recgpt_ops.ids import tag_id, user_bucket
from recgpt_ops.tables import load_contract

DS, TIME = "2017-10-30", pa.scalar(0, pa.timestamp("us", tz="UTC")).as_py()

DEFAULTS: dict[str, dict[str, Any]] = {
    "intent_tags": {
        "ds": DS, "publish_id": "p1", "scenario": "default", "method": "v2", "user_id": "u1", "user_bucket": 0, "tag_id": "t",
        "intent_tag_id": "i", "locale": "en", "tag": "red wine", "rank": 1, "score": None, "persona_indexes": [1], "pool_index": 1,
        "reason": None, "call_id": "c",
    },
    "night_users": {
        "ds": DS, "publish_id": "p1", "scenario": "default", "method": "v2", "user_id": "u1", "user_bucket": 0, "status": "computed",
        "reason": "forced", "made_by": "p1", "computed_ds": DS, "attempt": 1, "locale": "en", "region": "US",
    },
    "environment_signals": {
        "ds": DS, "publish_id": "p1", "scenario": "default", "region": "US", "kind": "season", "name": "autumn", "locale": "en",
        "text": "It is autumn.", "days_to_go": None, "value": None, "rank": 1,
    },
    "behavior_days": {
        "bucket": "2017-10-29", "publish_id": "p1", "arrived_cut_ds": DS, "user_id": "u1", "user_bucket": 0, "action": "purchase",
        "entries": [], "entry_count": 1, "event_count": 1, "last_event_at": TIME,
    },
    "behavior_events": {
        "event_id": "e1", "import_id": "i1", "source": "shop", "user_id": "u1", "user_bucket": 0, "action": "purchase", "item_id": "x",
        "query": None, "campaign_id": None, "quantity": 1, "amount": 2.5, "currency": "USD", "event_at": TIME,
        "event_at_precision": "second", "event_ds": DS, "arrived_ds": DS, "arrived_month": DS[:7],
    },
    "items": {
        "item_id": "x", "valid_from_ds": "0001-01-01", "valid_to_ds": None, "import_id": "i1", "source": "shop", "locale": "en-US",
        "title": "Red wine", "category": None, "item_type": None, "brand": None, "price": None, "currency": None, "text_hash": "h",
    },
}  # fmt: skip

Rows = Callable[..., pa.Table]
Publish = Callable[..., list[Certificate]]


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """Empty, in New York, English."""
    opened = open_warehouse(str(tmp_path / "warehouse"), create=True)
    fix_identity(opened, zone="America/New_York", locale="en-US")
    return opened


@pytest.fixture
def rows() -> Rows:
    """rows("intent_tags", {"user_id": "u1"}, {"user_id": "u2"}): a table of two rows, everything else as in DEFAULTS."""

    def build(table: str, *changes: dict[str, Any]) -> pa.Table:
        built = []
        for change in changes:
            row = {**DEFAULTS[table], **change}
            if "user_id" in row:
                row["user_bucket"] = user_bucket(row["user_id"] or "")
            if "tag" in row and "tag_id" not in change:
                row["tag_id"] = tag_id(row["locale"], row["tag"] or "")
            built.append(row)
        return pa.Table.from_pylist(built, schema=arrow_schema(load_contract(table)))

    return build


@pytest.fixture
def publish(warehouse: Warehouse) -> Publish:
    """publish("intent_tags", table): one generation p1 of DS by attempt 1, unless said otherwise."""

    def run(table: str, built: pa.Table, **scope: Any) -> list[Certificate]:
        given = {"publish_id": "p1", "scopes": [DS], "fence": 1, "input_digest": "inputs", **scope}
        return publish_arrow(warehouse, table, built, **given)

    return run
