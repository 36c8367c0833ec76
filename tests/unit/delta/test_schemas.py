from __future__ import annotations

import pyarrow as pa
import pytest

from recgpt_ops.delta.schemas import arrow_schema, arrow_type, conform
from recgpt_ops.errors import ContractError
from recgpt_ops.tables import all_contracts, load_contract

ITEMS = load_contract("items")


def test_conform_puts_columns_in_contract_order_and_storage(rows):
    given = rows("items", {"item_id": "a", "price": 1.5})
    shuffled = given.select(list(reversed(given.schema.names))).cast(
        pa.schema([pa.field(f.name, pa.large_string() if f.type == pa.string() else f.type) for f in reversed(list(given.schema))])
    )
    assert conform(ITEMS, shuffled) == given


def test_a_column_of_nulls_alone_fits_any_type(rows):
    given = rows("items", {"item_id": "a"})
    position = given.schema.get_field_index("price")
    untyped = given.set_column(position, "price", pa.nulls(1))
    assert conform(ITEMS, untyped).schema == arrow_schema(ITEMS)


def test_times_in_another_unit_are_the_same_times(rows):
    given = rows("behavior_events", {"event_id": "e1"})
    position = given.schema.get_field_index("event_at")
    nanoseconds = given.set_column(position, "event_at", given["event_at"].cast(pa.timestamp("ns", tz="America/New_York")))
    assert conform(load_contract("behavior_events"), nanoseconds)["event_at"] == given["event_at"]


def test_a_time_without_zone_is_refused(rows):
    given = rows("behavior_events", {"event_id": "e1"})
    position = given.schema.get_field_index("event_at")
    with pytest.raises(ContractError, match=r"column event_at is timestamp\[us\], the contract says timestamp"):
        conform(load_contract("behavior_events"), given.set_column(position, "event_at", given["event_at"].cast(pa.timestamp("us"))))


def test_case_074_an_int_where_a_long_stands_is_refused_and_not_widened(rows):
    given = rows("behavior_events", {"event_id": "e1"})
    position = given.schema.get_field_index("quantity")
    narrow = given.set_column(position, "quantity", given["quantity"].cast(pa.int32()))
    with pytest.raises(ContractError, match=r"behavior_events_v1: column quantity is int32, the contract says long.*new version"):
        conform(load_contract("behavior_events"), narrow)


def test_case_074_the_kind_of_it_inside_arrays_and_structs(rows):
    contract = load_contract("behavior_days")
    entries = pa.list_(pa.struct([("item_id", pa.string()), ("query", pa.string()), ("event_count", pa.int32()),
                                  ("quantity", pa.int64()), ("last_event_at", pa.timestamp("us", tz="UTC"))]))  # fmt: skip
    given = rows("behavior_days", {"user_id": "u1"})
    position = given.schema.get_field_index("entries")
    with pytest.raises(ContractError, match="column entries is list"):
        conform(contract, given.set_column(position, "entries", pa.array([[]], type=entries)))


def test_missing_unknown_and_doubled_columns_are_told_together(rows):
    given = rows("items", {"item_id": "a"})
    wrong = given.drop_columns(["title"]).append_column("colour", pa.array(["red"])).append_column("brand", pa.array(["b"]))
    with pytest.raises(ContractError) as raised:
        conform(ITEMS, wrong)
    assert all(part in str(raised.value) for part in ("title is missing", "colour stands in no contract", "brand stands there twice"))


def test_every_contract_has_an_arrow_schema():
    assert [len(arrow_schema(contract)) for contract in all_contracts().values()] == [
        len(contract.columns) for contract in all_contracts().values()
    ]


def test_nested_types_are_read_to_the_bottom():
    assert arrow_type("array<struct<a:int,b:array<struct<c:string,d:timestamp>>>>") == pa.list_(
        pa.field(
            "element",
            pa.struct(
                [
                    ("a", pa.int32()),
                    (
                        "b",
                        pa.list_(pa.field("element", pa.struct([("c", pa.string()), ("d", pa.timestamp("us", tz="UTC"))]))),
                    ),
                ]
            ),
        )
    )
