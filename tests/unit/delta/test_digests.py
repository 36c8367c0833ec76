from __future__ import annotations

import hashlib
import json

import pyarrow as pa
import pytest

from recgpt_ops.delta.digests import DigestPass, Sums, sums_digest, text_sql
from recgpt_ops.tables import load_contract

ITEMS, TAGS, DAYS = load_contract("items"), load_contract("intent_tags"), load_contract("behavior_days")
US, NUL = "\x1f", "\x00"


def table_digests(contract, rows):
    """(key digest, row digest) of rows in memory, as one scope."""
    digest_pass = DigestPass(contract, None)
    digest_pass.add(rows)
    sums = digest_pass.sums.get("", Sums())
    return sums.key_digest, sums.row_digest


def digest_by_hand(texts: list[str]) -> str:
    """The definition, in Python: both halves of every md5, little endian, summed."""
    numbers = [int.from_bytes(hashlib.md5(text.encode()).digest(), "little") for text in texts]
    return sums_digest(len(texts), sum(number % 2**64 for number in numbers), sum(number >> 64 for number in numbers))


def test_key_digest_is_what_python_gets(rows):
    table = rows("items", {"item_id": "a"}, {"item_id": "b", "valid_from_ds": "2017-01-01"})
    assert table_digests(ITEMS, table)[0] == digest_by_hand([f"a{US}0001-01-01", f"b{US}2017-01-01"])


def test_row_digest_is_what_python_gets_with_nulls_doubles_and_arrays(rows):
    table = rows("intent_tags", {"score": -0.25, "tag_id": "t"})
    text = US.join(
        ["2017-10-30", "default", "v2", "u1", str(table["user_bucket"][0]), "t", "i", "en", "red wine", "1", "-0.25", "[1]", "1", NUL, "c"]
    )
    assert table_digests(TAGS, table)[1] == digest_by_hand([text])


def test_nested_times_count_as_microseconds(rows):
    entry = {
        "item_id": "x",
        "query": None,
        "event_count": 1,
        "quantity": 2,
        "last_event_at": pa.scalar(7, pa.timestamp("us", tz="UTC")).as_py(),
    }
    table = rows("behavior_days", {"entries": [entry]})
    canonical = json.dumps([{**entry, "last_event_at": 7}], separators=(",", ":"))
    text = US.join(["2017-10-29", "2017-10-30", "u1", str(table["user_bucket"][0]), "purchase", canonical, "1", "1", "0"])
    assert table_digests(DAYS, table)[1] == digest_by_hand([text])


def test_the_same_rows_in_any_order_and_any_split_have_one_digest(rows):
    table = rows("items", *({"item_id": f"i{number}"} for number in range(10)))
    shuffled = table.take([3, 1, 4, 0, 5, 9, 2, 6, 8, 7])
    in_parts = DigestPass(ITEMS, None)
    for start in range(0, 10, 3):
        in_parts.add(shuffled.slice(start, 3))
    assert (in_parts.sums[""].key_digest, in_parts.sums[""].row_digest) == table_digests(ITEMS, table)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([{"item_id": "a"}], [{"item_id": "a"}, {"item_id": "a"}]),  # a row doubled
        ([{"item_id": "a"}, {"item_id": "b"}], [{"item_id": "a"}, {"item_id": "a"}]),  # one lost, one doubled: the count is the same
        ([{"brand": None}], [{"brand": ""}]),
        ([{"price": 0.1}], [{"price": 0.1 + 1e-17 * 4}]),
        ([{"brand": "a", "category": None}], [{"brand": None, "category": "a"}]),
    ],
)
def test_what_differs_has_another_digest(rows, before, after):
    assert table_digests(ITEMS, rows("items", *before))[1] != table_digests(ITEMS, rows("items", *after))[1]


def test_volatile_columns_are_left_out(rows):
    first, second = rows("intent_tags", {"publish_id": "p1"}), rows("intent_tags", {"publish_id": "p2"})
    assert table_digests(TAGS, first) == table_digests(TAGS, second)


def test_each_scope_has_sums_of_its_own(rows):
    table = rows("behavior_days", {"bucket": "2017-10-28"}, {"bucket": "2017-10-29"}, {"bucket": "2017-10-29", "user_id": "u2"})
    by_bucket = DigestPass(DAYS, "bucket")
    by_bucket.add(table)
    assert {bucket: sums.row_count for bucket, sums in by_bucket.sums.items()} == {"2017-10-28": 1, "2017-10-29": 2}


def test_no_rows_have_a_digest_too(rows):
    assert table_digests(ITEMS, rows("items"))[0] == sums_digest(0, 0, 0)


def test_arrays_are_written_as_json_and_nulls_as_nul():
    assert text_sql(TAGS, ("persona_indexes",)) == (
        'concat_ws(chr(31), CASE WHEN "persona_indexes" IS NULL THEN chr(0) ELSE to_json("persona_indexes")::varchar END)'
    )
