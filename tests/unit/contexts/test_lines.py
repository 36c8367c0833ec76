from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from recgpt_ops.contexts.buckets import STATE_TABLES, calendar_buckets
from recgpt_ops.contexts.lines import ACTION_ORDER, Entry, compress_entries, fit_lines, line_text
from recgpt_ops.contexts.words import short_title
from tests.unit.contexts.reading_lines import read_line

DS = "2017-10-30"
DAY = 86_400_000_000


def entry(bucket, item, *, action="purchase", at=0, title=None, query=None):
    return Entry(bucket, action, None if query else item, query, title or query or item, None, None, 1, at * DAY)


def texts(lines):
    return [line_text(line, "en-US") for line in lines]


def words(text):
    """A stand-in for a tokenizer: one token a word."""
    return len(text.split())


def test_items_that_share_all_their_times_and_actions_form_one_line():
    lines = compress_entries(
        [
            entry("2017-10-28", "apples", at=28),
            entry("2017-10-28", "bread", at=28),
            entry("2017-08", "apples", at=1),
            entry("2017-08", "soap", at=1),
            entry("2017-08", "soup", at=1),
        ]
    )
    assert texts(lines) == ["Oct 28, Aug 2017 (bought) | apples", "Oct 28 (bought) | bread", "Aug 2017 (bought) | soap; soup"]


def test_one_time_names_all_its_actions_and_searches_stand_by_their_words():
    lines = compress_entries(
        [
            entry("2017-10-28", "tent", at=28),
            entry("2017-10-28", "tent", action="favorite", at=27),
            entry("2016", "tent", action="detail_view", at=2),
            entry("2017-10-02", None, action="search", query="camping stove", at=3),
        ]
    )
    assert texts(lines) == ["Oct 28 (bought, saved), 2016 (viewed) | tent", "Oct 2 (searched for) | camping stove"]


def test_the_newest_line_comes_first_and_within_it_the_newest_item():
    lines = compress_entries([entry("2017-08", "old", at=5), entry("2017-08", "newer", at=7), entry("2017-10-01", "newest", at=9)])
    assert texts(lines) == ["Oct 1 (bought) | newest", "Aug 2017 (bought) | newer; old"]


def test_items_with_one_title_show_it_once_and_keep_both_ids():
    (line,) = compress_entries([entry("2017-08", "a1", at=5, title="Milk"), entry("2017-08", "a2", at=5, title="Milk")])
    assert line_text(line, "en-US") == "Aug 2017 (bought) | Milk"
    assert [part.item_id for part in line.parts] == ["a1", "a2"]


def test_a_chinese_line_tells_time_and_action_in_chinese():
    (line,) = compress_entries([entry("2017-10-28", "苹果", at=5), entry("2017-08", "苹果", at=4), entry("2015", "苹果", at=1)])
    assert line_text(line, "zh-CN") == "10月28日, 2017年8月, 2015年 (购买) | 苹果"


def test_the_line_that_does_not_fit_is_split_at_its_items_and_older_lines_are_cut():
    lines = compress_entries(
        [entry("2017-10-28", "a", at=9), entry("2017-10-27", "b", at=8), entry("2017-10-27", "c", at=7), entry("2017-08", "d", at=1)]
    )
    # By words: "1. Oct 28 (bought) | a" is 1 + 4 + 1 = 6; "2. Oct 27 (bought) | b" the same; "; c" is 2 more.
    shown = fit_lines(lines, budget=13, locale="en-US", count=words)
    assert texts(shown.lines) == ["Oct 28 (bought) | a", "Oct 27 (bought) | b"]
    assert (shown.cut_line_count, shown.cut_item_count) == (1, 2)
    assert fit_lines(lines, budget=14, locale="en-US", count=words).cut_item_count == 1
    assert fit_lines(lines, budget=5, locale="en-US", count=words).lines == []
    assert fit_lines(lines, budget=-3, locale="en-US", count=words).cut_line_count == 3


BUCKETS = [bucket for table in STATE_TABLES for bucket in calendar_buckets(table, DS)]
TITLES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30) | st.sampled_from(
    ["a; b", "a | b", "Oct 1 (bought) | x", "1. a", "x\ny", "end;", "; ;", "\u202eabc", "[entity] <|im_end|>", "a;\x00b"]
)


@st.composite
def histories(draw):
    """Entries as bucket tables hold them: each (bucket, action, item) once; a title per item, as lines show it."""
    shown = draw(st.dictionaries(st.text("abc", min_size=1, max_size=3), TITLES, min_size=1, max_size=8))
    key = st.tuples(st.sampled_from(BUCKETS), st.sampled_from(ACTION_ORDER), st.sampled_from(sorted(shown)))
    keys = draw(st.sets(key, min_size=1, max_size=40))
    return [
        entry(bucket, item, action=action, at=draw(st.integers(0, 9_000)), title=short_title(shown[item]) or "-", query=None)
        for bucket, action, item in draw(st.permutations(sorted(keys)))
    ]


@given(histories())
@settings(max_examples=150, deadline=None)
def test_every_fact_is_recoverable_from_the_lines_and_nothing_is_invented(entries):
    lines = compress_entries(entries)
    by_ids = [(part.item_id, fact.bucket, fact.action) for line in lines for part in line.parts for fact in line.facts]
    assert sorted(by_ids) == sorted((entry.item_id, entry.bucket, entry.action) for entry in entries)
    by_text = set()
    for line in lines:
        facts, titles = read_line(line_text(line, "en-US"), DS)
        by_text |= {(title, bucket, action) for title in titles for bucket, action in facts}
    assert by_text == {(entry.title, entry.bucket, entry.action) for entry in entries}


@given(histories())
@settings(max_examples=50, deadline=None)
def test_lines_are_newest_first_on_one_text_line_each_and_the_same_in_any_order(entries):
    lines = compress_entries(entries)
    assert [line.newest_at for line in lines] == sorted((line.newest_at for line in lines), reverse=True)
    assert all(len(line_text(line, "en-US").splitlines()) == 1 for line in lines)
    assert compress_entries(sorted(entries, reverse=True)) == lines


@given(histories(), st.integers(0, 120))
@settings(max_examples=80, deadline=None)
def test_what_is_shown_and_what_is_cut_add_up_within_the_budget(entries, budget):
    lines = compress_entries(entries)
    shown = fit_lines(lines, budget=budget, locale="en-US", count=words)
    assert len(shown.lines) + shown.cut_line_count == len(lines)
    assert sum(len(line.parts) for line in shown.lines) + shown.cut_item_count == len({entry.item_id for entry in entries})
    assert [line.facts for line in shown.lines] == [line.facts for line in lines[: len(shown.lines)]]
    assert sum(words(f"1. {line_text(line, 'en-US')}") for line in shown.lines) <= max(budget, 0)
