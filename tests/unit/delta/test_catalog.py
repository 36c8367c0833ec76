"""The catalog and the purchases as of a business date."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from recgpt_ops.delta.catalog import bought_item_ids, catalog_words, items_as_of
from recgpt_ops.delta.records import append_records
from recgpt_ops.delta.schemas import arrow_schema
from recgpt_ops.delta.warehouse import Warehouse, create_table, fix_identity, open_warehouse
from recgpt_ops.ids import text_hash, user_bucket
from recgpt_ops.tables import load_contract

DS = "2017-10-30"
AT = datetime(2017, 10, 1, tzinfo=UTC)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    made = open_warehouse(str(tmp_path / "warehouse"), create=True)
    fix_identity(made, zone="America/New_York", locale="en-US")
    return made


def write(warehouse: Warehouse, table: str, rows: list[dict[str, Any]]) -> None:
    create_table(warehouse, table)
    write_deltalake(warehouse.open(table), pa.Table.from_pylist(rows, schema=arrow_schema(load_contract(table))), mode="append")


def item(item_id: str, title: str, *, begins: str = "0001-01-01", ends: str | None = None, kind: str | None = None) -> dict[str, Any]:
    return {
        "item_id": item_id, "valid_from_ds": begins, "valid_to_ds": ends, "import_id": "i1", "source": "s", "locale": "en-US",
        "title": title, "category": None, "item_type": kind, "brand": None, "price": None, "currency": None, "text_hash": text_hash(title),
    }  # fmt: skip


def day(bucket: str, user_id: str, *items: str, publish_id: str = "p1", action: str = "purchase") -> dict[str, Any]:
    entries = [{"item_id": i, "query": None, "event_count": 1, "quantity": 1, "last_event_at": AT} for i in items]
    return {
        "bucket": bucket, "publish_id": publish_id, "arrived_cut_ds": DS, "user_id": user_id,
        "user_bucket": user_bucket(user_id), "action": action, "entries": entries,
        "entry_count": len(items), "event_count": len(items), "last_event_at": AT,
    }  # fmt: skip


def certify(warehouse: Warehouse, table: str, bucket: str, publish_id: str, cut: str) -> None:
    values = {column.name: "x" for column in load_contract("certificates").columns if column.type == "string"}
    numbers = {column.name: 1 for column in load_contract("certificates").columns if column.type in ("int", "long")}
    key = {"table_name": table, "partition": bucket, "publish_id": publish_id, "arrived_cut_ds": cut, "made_at": AT}
    append_records(warehouse, "certificates", [values | numbers | key | {"certificate_id": f"{table}{bucket}{publish_id}"}])


def test_the_version_that_holds_on_the_day_is_read_and_an_ended_item_is_not(warehouse: Warehouse) -> None:
    write(warehouse, "items", [
        item("b", "old milk"), item("b", "milk", begins="2017-10-01"), item("b", "new milk", begins="2017-11-01"),
        item("a", "ended", ends="2017-10-29"), item("c", "ends today", ends=DS), item("d", "not yet", begins="2017-10-31"),
    ])  # fmt: skip
    assert items_as_of(warehouse, DS, columns=["item_id", "title"]).to_pylist() == [
        {"item_id": "b", "title": "milk"},
        {"item_id": "c", "title": "ends today"},
    ]


def test_words_are_the_item_types_and_titles_only_where_there_is_no_type(warehouse: Warehouse) -> None:
    clean = {"clean_type": str.lower, "clean_title": str.upper}
    assert catalog_words(warehouse, DS, **clean) == []
    write(warehouse, "items", [item("a", "red mug"), item("b", "red mug"), item("c", "lamp")])
    assert catalog_words(warehouse, DS, **clean) == ["LAMP", "RED MUG"]
    write(warehouse, "items", [item("d", "gouda", kind="Cheese")])
    assert catalog_words(warehouse, DS, **clean) == ["cheese"]


def test_bought_items_come_from_the_newest_buckets_the_night_may_read(warehouse: Warehouse) -> None:
    write(warehouse, "behavior_days", [
        day("2017-10-02", "u1", "returned", publish_id="p1"), day("2017-10-02", "u1", "milk", publish_id="p2"),
        day("2017-10-02", "u1", "late", publish_id="p3"), day("2017-10-02", "u1", "seen", action="detail_view", publish_id="p2"),
        day("2017-10-02", "u2", "tea", publish_id="p2"), day("2017-10-31", "u1", "tomorrow"),
    ])  # fmt: skip
    write(warehouse, "behavior_months", [day("2017-08", "u1", "eggs")])
    for table, bucket, publish_id, cut in (
        ("behavior_days", "2017-10-02", "p1", "2017-10-03"),
        ("behavior_days", "2017-10-02", "p2", DS),
        ("behavior_days", "2017-10-02", "p3", "2017-10-31"),  # of a later night
        ("behavior_days", "2017-10-31", "p1", DS),
        ("behavior_months", "2017-08", "p1", DS),
    ):
        certify(warehouse, table, bucket, publish_id, cut)
    assert bought_item_ids(warehouse, DS, user_ids=["u1"]) == {"u1": {"milk", "eggs"}}
