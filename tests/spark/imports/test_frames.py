"""Spark's part of an import, on whichever Spark the tests run: identities, what is new, validity periods."""

from __future__ import annotations

from datetime import UTC, datetime

from pyspark.sql import SparkSession

from recgpt_ops.ids import SEPARATOR, row_id
from recgpt_ops.imports.frames import judge_versions, read_rows, with_row_identity
from recgpt_ops.imports.mapping import FieldRule, ImportMapping
from recgpt_ops.imports.reading import Reading

LANDED = "file string, line long, raw string, fault string, detail string, c0 string, c1 string"
READ = (
    "file string, line long, verdict string, item_id string, valid_from_ds string, valid_to_ds string, locale string, title string, "
    "category string, item_type string, brand string, price double, currency string, text_hash string"
)


def test_equal_rows_of_a_file_are_numbered_in_file_order(spark: SparkSession) -> None:
    rows = [
        ("a.csv", 4, None, None, None, "u1", "tea"),
        ("a.csv", 2, None, None, None, "u1", "tea"),
        ("a.csv", 3, None, None, None, "u1", None),
        ("b.csv", 2, None, None, None, "u1", "tea"),
        ("a.csv", 5, "u1,", "wrong_column_count", "", None, None),
    ]
    frame = with_row_identity(spark.createDataFrame(rows, LANDED), ["c0", "c1"])
    told = {(row["file"], row["line"]): row["identity"].split(SEPARATOR) for row in frame.collect()}
    assert told == {
        ("a.csv", 2): ["u1", "tea", "1"],
        ("a.csv", 4): ["u1", "tea", "2"],
        ("a.csv", 3): ["u1", "\x00", "1"],
        ("b.csv", 2): ["u1", "tea", "1"],
        ("a.csv", 5): ["u1,", "1"],
    }


def test_rows_are_read_with_a_verdict_each_and_ids_as_everywhere(spark: SparkSession) -> None:
    rules = (FieldRule("event_id", "c0"), FieldRule("user_id", "c1"), FieldRule("action", None, default="search"))
    rules += (FieldRule("query", None, default="tea"), FieldRule("event_at", None, default="2024-03-05"))
    mapping = ImportMapping("shop", "behavior_events", "Europe/Berlin", "Europe/Berlin", rules, {"search": "search"})
    reading = Reading(mapping, {"event_id": "c0", "user_id": "c1"}, {"c0": "id", "c1": "who"}, (), None, datetime(2026, 1, 1, tzinfo=UTC))
    rows = [
        ("a.csv", 2, None, None, None, "e1", " anna "),
        ("a.csv", 3, None, None, None, "e2", None),
        ("a.csv", 4, "x", "broken_utf8", "bytes", None, None),
    ]
    told = {row["line"]: row for row in read_rows(spark.createDataFrame(rows, LANDED), reading).collect()}
    assert [(told[line]["verdict"], told[line]["reason"], told[line]["raw"]) for line in (2, 3, 4)] == [
        ("kept", None, None),
        ("quarantined", "no_user_id", '{"id": "e2"}'),
        ("quarantined", "broken_utf8", "x"),
    ]
    assert (told[2]["event_id"], told[2]["user_id"], told[2]["event_ds"]) == (row_id(("shop", "e1")), "anna", "2024-03-05")


def item(line: int, item_id: str, first: str | None, title: str, price: float) -> tuple[object, ...]:
    return ("a.csv", line, "kept", item_id, first, None, "en-GB", title, None, None, None, price, "GBP", title)


def versions(spark: SparkSession, rows: list[tuple[object, ...]]) -> list[tuple[str, str, str, str | None, float]]:
    frame = judge_versions(spark.createDataFrame(rows, READ), table="items", existing=None, arrived_ds=None)
    told = [(row["item_id"], row["title"], row["verdict"], row["valid_from_ds"], row["price"]) for row in frame.collect()]
    return sorted(told, key=str)


def test_names_of_one_code_become_validity_periods_by_first_appearance(spark: SparkSession) -> None:
    rows = [
        item(2, "x", "2009-12-01", "cream heart", 2.5),
        item(3, "x", "2010-03-05", "white heart", 2.6),
        item(4, "x", "2010-04-01", "cream heart", 2.9),  # an old name again: the same text, its latest price
        item(5, "y", "2010-01-01", "note", 1.0),
        item(6, "y", "2010-01-01", "notebook", 1.0),  # two names on one day: the later line stands
    ]
    assert versions(spark, rows) == [
        ("x", "cream heart", "kept", "0001-01-01", 2.9),
        ("x", "white heart", "kept", "2010-03-05", 2.6),
        ("y", "note", "dropped", "2010-01-01", 1.0),
        ("y", "notebook", "kept", "0001-01-01", 1.0),
    ]


def test_the_order_of_rows_makes_no_difference(spark: SparkSession) -> None:
    rows = [item(line, "x", f"2010-0{1 + line % 5}-01", f"name {line % 3}", float(line)) for line in range(2, 22)]
    assert versions(spark, rows) == versions(spark, rows[::-1])
