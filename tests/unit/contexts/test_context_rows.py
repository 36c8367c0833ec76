from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from recgpt_ops.contexts.context_rows import ContextShape, TokenCounter, UserHistory, draft_context, finish_context
from recgpt_ops.contexts.lines import Entry
from recgpt_ops.errors import RowError

DS, SERVE_DS = "2017-10-30", "2017-10-31"
SHAPE = ContextShape(budget_tokens=60, group_count=2, types_per_group=2, group_days=90, recent_days=28)
NEW_YORK = ZoneInfo("America/New_York")


def micros(*when):
    return int(datetime(*when, tzinfo=UTC).timestamp()) * 1_000_000


def entry(bucket, item, when, *, category=None, item_type=None, count=1, action="purchase"):
    return Entry(bucket, action, item, None, item, category, item_type, count, micros(*when))


def history(entries, *, attributes=(("age", "45-54"),), locale="en-US"):
    return UserHistory("u1", locale, list(attributes), entries, 0, NEW_YORK)


def context(user, *, signals=("Season: autumn",), shape=SHAPE, tokens_of=None):
    count = TokenCounter(tokens_of or (lambda texts: [len(text.split()) for text in texts]))
    draft = draft_context(user, list(signals), serve_ds=SERVE_DS, shape=shape, count=count)
    return finish_context(draft, count.count_batch([draft.text])[0], ds=DS, shape=shape, count=count)


def test_a_context_reads_from_the_day_and_the_user_to_numbered_lines():
    row = context(history([entry("2017-10-28", "apples", (2017, 10, 28)), entry("2017-08", "soap", (2017, 8, 3))]))
    assert row["text"].splitlines() == [
        "Today: Tuesday, Oct 31, 2017",
        "About the user - age: 45-54",
        "Season: autumn",
        "History, newest first:",
        "1. Oct 28 (bought) | apples",
        "2. Aug 2017 (bought) | soap",
    ]
    # Words: 5 + 6 + 2 + 3 + 6 + 6.
    assert (row["context_tokens"], row["budget_tokens"], row["cut_line_count"]) == (28, 60, 0)
    # One plain line an entry: "Oct 28 (bought) | apples" has 5 words.
    assert row["plain_tokens"] == 10
    assert row["lines"][1] == {
        "line_id": 2,
        "text": "Aug 2017 (bought) | soap",
        "facts": [{"table_name": "behavior_months", "bucket": "2017-08", "action": "purchase"}],
        "item_ids": ["soap"],
        "queries": [],
        "newest_at": datetime(2017, 8, 3, tzinfo=UTC),
    }


def test_a_user_without_attributes_has_no_line_about_them():
    assert "About" not in context(history([entry("2017-10-28", "apples", (2017, 10, 28))], attributes=()))["text"]


def test_a_text_longer_than_its_pieces_loses_items_until_it_fits():
    def merging_words(texts):  # whole texts cost 5 more than their pieces
        return [len(text.split()) + (5 if "History" in text and "1." in text else 0) for text in texts]

    items = [entry("2017-10-28", f"i{n}", (2017, 10, 28)) for n in range(3)]
    shape = SHAPE._replace(budget_tokens=16 + 8 + 5)  # header 16; "1. Oct 28 (bought) | i0; i1; i2" 8 by words
    row = context(history(items), shape=shape, tokens_of=merging_words)
    assert row["context_tokens"] <= row["budget_tokens"]
    assert row["cut_item_count"] == 3 - len(row["lines"][0]["item_ids"])


def test_case_001_attributes_that_leave_no_room_are_told_with_limit_and_measured_length():
    user = history([entry("2017-10-28", "apples", (2017, 10, 28))], attributes=[("note", "word " * 80)])
    with pytest.raises(RowError, match=r"attributes and signals take 95 tokens .* the budget is 60 tokens") as caught:
        context(user)
    assert caught.value.reason == "context_too_long"


def test_a_user_of_whom_nothing_can_be_shown_is_told_so():
    with pytest.raises(RowError) as caught:
        context(history([]))
    assert caught.value.reason == "no_history"


def test_groups_are_the_categories_with_most_events_of_90_days_and_their_types_in_the_lines():
    row = context(
        history(
            [
                entry("2017-10-28", "cola", (2017, 10, 28), category="Drinks", item_type="Soda", count=2),
                entry("2017-10-20", "juice", (2017, 10, 20), category="Drinks", item_type="Juice"),
                entry("2017-10-10", "tea", (2017, 10, 10), category="Drinks", item_type="Tea"),
                entry("2017-09-30", "dog", (2017, 9, 30), item_type="dog food", count=3),
                entry("2017-09-29", "pen", (2017, 9, 29)),
                entry("2017-01", "cola", (2017, 1, 5), category="Drinks", item_type="Soda", count=9),
                entry("2016-01", "hat", (2016, 1, 1), category="Clothes", item_type="Hats", count=50),
            ]
        ),
        shape=SHAPE._replace(budget_tokens=1000),
    )
    assert row["groups"] == [
        {
            "name": "Drinks",
            "event_count": 4,
            "item_types": [{"name": "Soda", "event_count": 11}, {"name": "Juice", "event_count": 1}],
            "line_ids": [1, 2, 3],
        },
        {"name": "dog food", "event_count": 3, "item_types": [{"name": "dog food", "event_count": 3}], "line_ids": [4]},
    ]
    assert row["recent_item_types"] == ["Juice", "Soda", "Tea"]


def test_a_group_whose_lines_were_all_cut_is_left_out_because_nothing_could_be_cited():
    entries = [
        entry("2017-10-28", "cola", (2017, 10, 28), category="Drinks"),
        entry("2017-10-01", "pen", (2017, 10, 1), category="Paper", count=9),
    ]
    row = context(history(entries), shape=SHAPE._replace(budget_tokens=16 + 6))
    assert [group["name"] for group in row["groups"]] == ["Drinks"]
    assert (row["cut_line_count"], row["cut_item_count"]) == (1, 1)


@pytest.mark.parametrize(("when", "is_recent"), [((2017, 10, 3, 3, 59), False), ((2017, 10, 3, 4, 0), True)])
def test_28_days_begin_at_midnight_of_the_business_zone(when, is_recent):
    # ds 10-30 and the 27 days before it: from 10-03 00:00 in New York, which is 04:00 UTC.
    row = context(history([entry("2017-10", "cola", when, item_type="Soda")]))
    assert row["recent_item_types"] == (["Soda"] if is_recent else [])


def test_only_what_was_bought_counts_as_a_recent_type():
    row = context(history([entry("2017-10-28", "cola", (2017, 10, 28), item_type="Soda", action="detail_view")]))
    assert row["recent_item_types"] == []


def test_pieces_are_counted_once_and_forgotten_when_there_are_too_many():
    asked = []
    count = TokenCounter(lambda texts: asked.extend(texts) or [len(text) for text in texts], keep=2)
    count.learn(["a", "bb", "a", "ccc"])
    assert count("bb") == 2
    assert asked == ["a", "bb", "ccc"]
    count.learn(["a"])
    assert asked == ["a", "bb", "ccc", "a"]
