from __future__ import annotations

import pytest

from recgpt_ops.contexts.context_rows import ContextShape
from recgpt_ops.contexts.contexts import ContextWriter, build_contexts, gather_histories
from tests.spark.frames import at, frame, item, profile
from tests.spark.words import write_word_tokenizer

DS = "2017-10-30"


@pytest.fixture(scope="session")
def word_tokenizer(tmp_path_factory):
    """A model folder whose tokenizer counts words."""
    return str(write_word_tokenizer(tmp_path_factory.mktemp("words")))


def bucket(spark_bucket, user_id, action, *entries):
    """entries: (item_id or None, query or None, events, time)."""
    fields = ("item_id", "query", "event_count", "last_event_at")
    told = [dict(zip(fields, (*entry[:3], at(entry[3])), strict=True)) | {"quantity": None} for entry in entries]
    return {"bucket": spark_bucket, "user_id": user_id, "action": action, "entries": told}


def build(spark, word_tokenizer, buckets, items, profiles, *, methods=("v2",), budget=200):
    writer = ContextWriter(
        ds=DS, serve_ds="2017-10-31", scenario="default", publish_id="p1", zone="America/New_York", tokenizer_dir=word_tokenizer,
        shapes=dict.fromkeys(methods, ContextShape(budget, 12, 10, 90, 28)),
        surroundings={("US", "en-US"): (["Season: autumn"], "s1"), ("CN", "zh-CN"): (["季节：秋季"], "s2")},
    )  # fmt: skip
    told = frame(spark, "user_profiles", *profiles)
    keys = [{name: row[name] for name in ("user_id", "user_bucket", "locale", "region")} for row in profiles]
    audience = frame(spark, "night_users", *[{**key, "method": method} for key in keys for method in methods])
    histories = gather_histories(frame(spark, "behavior_days", *buckets), frame(spark, "items", *items))
    return {(row.user_id, row.method): row for row in build_contexts(audience, told, histories, writer).collect()}


def test_a_users_bucket_rows_become_numbered_lines_in_the_users_language(spark, word_tokenizer):
    rows = build(
        spark,
        word_tokenizer,
        [
            bucket("2017-10-28", "a", "purchase", ("i1", None, 2, "2017-10-28T12:00"), ("i2", None, 1, "2017-10-28T11:00")),
            bucket("2017-08", "a", "purchase", ("i1", None, 1, "2017-08-03")),
            bucket("2017-10-30", "a", "campaign", (None, "18", 1, "2017-10-30")),
            bucket("2017-10-29", "b", "search", (None, "南瓜", 1, "2017-10-29")),
        ],
        [item("i1", "Milk;\x00 1 gal", item_type="Milk", category="Dairy"), item("i2", "Bread")],
        [profile("a", attributes=[{"name": "age_band", "value": "45-54"}]), profile("b", locale="zh-CN", region="CN")],
    )
    assert rows["a", "v2"].text.splitlines() == [
        "Today: Tuesday, Oct 31, 2017",
        "About the user - age band: 45-54",
        "Season: autumn",
        "History, newest first:",
        "1. Oct 30 (got mailing) | campaign 18",
        "2. Oct 28, Aug 2017 (bought) | Milk, 1 gal",
        "3. Oct 28 (bought) | Bread",
    ]
    assert rows["b", "v2"].text.splitlines() == [
        "今天：2017年10月31日，星期二",
        "季节：秋季",
        "历史行为（由近到远）：",
        "1. 10月29日 (搜索) | 南瓜",
    ]
    milk = rows["a", "v2"].lines[1]
    assert (milk.line_id, list(milk.item_ids), list(milk.queries)) == (2, ["i1"], [])
    assert [(fact.table_name, fact.bucket, fact.action) for fact in milk.facts] == [
        ("behavior_days", "2017-10-28", "purchase"),
        ("behavior_months", "2017-08", "purchase"),
    ]
    assert [(group.name, group.event_count) for group in rows["a", "v2"].groups] == [("Dairy", 3), ("Bread", 1)]
    assert list(rows["a", "v2"].recent_item_types) == ["Bread", "Milk"]
    # 5 + 7 + 2 + 3 words above the lines, then 8, 10 and 6.
    assert rows["a", "v2"].context_tokens == 17 + 8 + 10 + 6
    assert (rows["a", "v2"].situation_id, rows["b", "v2"].situation_id) == ("s1", "s2")


def test_an_item_without_a_text_is_counted_and_shown_nowhere(spark, word_tokenizer):
    rows = build(
        spark,
        word_tokenizer,
        [bucket("2017-10-28", "a", "purchase", ("gone", None, 1, "2017-10-28"), ("i1", None, 1, "2017-10-28"))],
        [item("i1", "Milk")],
        [profile("a")],
    )
    assert rows["a", "v2"].unknown_item_count == 1
    assert [list(line.item_ids) for line in rows["a", "v2"].lines] == [["i1"]]


def test_case_001_one_user_without_room_for_a_line_is_told_and_the_others_are_made(spark, word_tokenizer):
    names = [f"u{n:02d}" for n in range(100)]
    profiles = [profile(name, attributes=[{"name": "note", "value": "word " * (60 if name == "u37" else 1)}]) for name in names]
    buckets = [bucket("2017-10-28", name, "purchase", ("i1", None, 1, "2017-10-28")) for name in names]
    rows = build(spark, word_tokenizer, buckets, [item("i1", "Milk")], profiles, budget=50)
    failed = {key: (row.reason, row.detail) for key, row in rows.items() if row.reason}
    assert len(rows) == 100
    assert failed == {
        ("u37", "v2"): (
            "context_too_long",
            "attributes and signals take 75 tokens and leave no room for a line; the budget is 50 tokens",
        )
    }


def test_a_user_with_no_bucket_row_comes_back_with_a_reason_and_every_method_has_its_row(spark, word_tokenizer):
    buckets = [bucket("2017", "b", "purchase", ("i1", None, 1, "2017-01-01"))]
    rows = build(spark, word_tokenizer, buckets, [item("i1")], [profile("a"), profile("b")], methods=("v1", "v2"))
    assert {key: row.reason for key, row in rows.items()} == {
        ("a", "v1"): "no_history",
        ("a", "v2"): "no_history",
        ("b", "v1"): None,
        ("b", "v2"): None,
    }
