"""What the views say of two nights of a small shop (conftest.py), worked out by hand."""

from __future__ import annotations

import pytest

from recgpt_ops.views import all_views
from tests.sql.conftest import FIRST, SECOND


@pytest.mark.parametrize("name", sorted(all_views()))
def test_the_described_columns_are_exactly_the_columns(select, name):
    assert [column for column, _ in all_views()[name].columns] == [row[0] for row in select(f"DESCRIBE {name}")]


def test_a_tag_tells_who_proposed_it_and_what_the_judges_say(select):
    columns = "ds, user_id, tag, persona, persona_count, candidate_count, panel_label, one_shot_label, user_status"
    assert select(f"SELECT {columns} FROM intent_tags WHERE method = 'v2' AND user_id = 'a' ORDER BY ds, rank") == [
        (FIRST, "a", "wine", "Cellar", 2, 3, "S", None, "computed"),  # the first of personas 1 and 2; the one-shot judge failed
        (FIRST, "a", "beans", "Kitchen", 1, 0, "B", None, "computed"),
        (SECOND, "a", "wine", "Cellar", 2, 3, "S", None, "carried"),
        (SECOND, "a", "beans", "Kitchen", 1, 0, "B", None, "carried"),
    ]


def test_views_have_as_many_rows_as_the_tables_they_widen(select):
    for name in ("intent_tags", "explanations"):
        assert select(f"SELECT count(*) FROM {name}") == select(f"SELECT count(*) FROM {name}_v1")


def test_an_explanation_tells_how_many_users_see_it(select):
    """In the second night a is carried with it and c shares it."""
    assert select("SELECT ds, text, text_chars, user_count, item_count, is_shared, panel_label FROM explanations ORDER BY ds") == [
        (FIRST, "Warms autumn evenings", 21, 1, 1, False, "S"),
        (SECOND, "Warms autumn evenings", 21, 2, 1, True, "S"),
    ]


def test_verdicts_are_flat_and_a_failure_is_told_as_one(select):
    columns = "judged, judged_text, user_id, judge_method, verdict_status, label, dimension_index, dimension, level, level_status"
    assert select(f"SELECT {columns} FROM verdicts WHERE ds = '{FIRST}' ORDER BY judged, judged_text, judge_method, dimension_index") == [
        ("explanation", "Warms autumn evenings", None, "panel", "judged", "S", 1, "novelty", "neutral", "ok"),
        ("explanation", "Warms autumn evenings", None, "panel", "judged", "S", 2, "relevance", "positive", "ok"),
        ("tag", "beans", "a", "panel", "by_rule", "B", 1, None, None, None),
        ("tag", "wine", "a", "one_shot", "failed", None, 1, "all", None, "not_a_level"),
        ("tag", "wine", "a", "panel", "judged", "S", 1, "novelty", "neutral", "ok"),
        ("tag", "wine", "a", "panel", "judged", "S", 2, "relevance", "positive", "ok"),
    ]


def test_a_night_is_one_row_for_each_method(select):
    users = "user_count, computed_user_count, carried_user_count, failed_user_count, skipped_user_count"
    made = "persona_count, tag_count, distinct_tag_count, candidate_count, explained_item_count, unexplained_item_count, explanation_count"
    assert select(f"SELECT ds, method, {users}, {made}, quarantined_count FROM night_summary ORDER BY ds, method") == [
        (FIRST, "v1", 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0),
        (FIRST, "v2", 2, 2, 0, 0, 0, 2, 4, 3, 3, 1, 1, 1, 0),
        (SECOND, "v2", 3, 1, 1, 1, 0, 2, 3, 3, 3, 2, 1, 1, 1),  # a's rows stand in the second night too; b is in quarantine
    ]


def test_grades_are_counted_for_each_judge_and_failures_apart(select):
    tags = "tag_panel_s_count, tag_panel_a_count, tag_panel_b_count, tag_panel_failed_count"
    others = "tag_one_shot_s_count, tag_one_shot_failed_count, explanation_panel_s_count, explanation_one_shot_failed_count"
    assert select(f"SELECT {tags}, {others} FROM night_summary WHERE ds = '{FIRST}' AND method = 'v2'") == [(1, 0, 1, 0, 0, 1, 1, 0)]


def test_a_call_is_counted_once_and_what_an_engine_does_not_say_is_not_zero(select):
    """c1, and c2 which two attempts made; c4's engine tells nothing of its cache."""
    tokens = "call_count, prompt_tokens, cached_tokens, computed_tokens, completion_tokens"
    assert select(f"SELECT ds, method, {tokens} FROM night_summary ORDER BY ds, method") == [
        (FIRST, "v1", 1, 100, 60, 40, 5),
        (FIRST, "v2", 2, 200, 120, 80, 10),
        (SECOND, "v2", 1, 100, None, None, 5),
    ]


def test_seconds_are_those_of_the_visible_attempt(select):
    """The second attempt took 20 s over intents; the first, whose rows v1 still shows, 90 s."""
    assert select("SELECT ds, method, intents_seconds, candidate_items_seconds, night_seconds FROM night_summary ORDER BY ds, method") == [
        (FIRST, "v1", 90.0, None, 90.0),
        (FIRST, "v2", 20.0, 1.5, 21.5),
        (SECOND, "v2", None, None, None),
    ]


def test_a_journey_tells_a_user_from_the_oldest_line_to_the_verdicts(select):
    columns = "step, stage, place, what, detail, label, line_ids, item_id"
    assert select(f"SELECT {columns} FROM user_journey WHERE ds = '{FIRST}' AND method = 'v2' AND user_id = 'a' ORDER BY step") == [
        (1, "attribute", None, "age", "35-44", None, None, None),
        (2, "line", 2, "Oct 1 (bought) | Red wine", None, None, None, None),
        (3, "line", 1, "Oct 30 (bought) | Beans", None, None, None, None),
        (4, "signal", None, "Season: autumn", None, None, None, None),
        (5, "persona", 1, "Cellar", "wine", None, [2], None),
        (6, "persona", 2, "Kitchen", "wine", None, [2], None),
        (7, "tag", 1, "wine", None, None, None, None),
        (8, "tag", 2, "beans", None, None, None, None),
        (9, "item", 1, "Red wine", "wine", None, None, "x"),
        (10, "item", 2, "Beans", "wine", None, None, "y"),  # the third item is the fourth nearest
        (11, "explanation", 1, "Warms autumn evenings", "Red wine", None, None, "x"),
        (12, "explanation", 2, None, "Beans", None, None, "y"),
        (13, "tag_verdict", 1, "wine", "one_shot", None, None, None),
        (14, "tag_verdict", 1, "wine", "panel", "S", None, None),
        (15, "tag_verdict", 2, "beans", "panel", "B", None, None),
        (16, "explanation_verdict", 1, "Warms autumn evenings", "panel", "S", None, "x"),
    ]


def test_titles_are_those_of_the_night(select):
    assert select("SELECT DISTINCT ds, what FROM user_journey WHERE stage = 'item' AND item_id = 'x' ORDER BY ds") == [
        (FIRST, "Red wine"),
        (SECOND, "Red wine, 1 l"),
    ]


def test_trends_compare_with_the_visible_night_before_and_keep_what_went(select):
    """First night: a wine, beans; b wine, soup. Second: a the same, c tea."""
    columns = "ds, tag, user_count, served_user_count, user_ratio, previous_ds, previous_user_count, previous_user_ratio, user_ratio_change"
    assert select(f"SELECT {columns} FROM tag_trends WHERE method = 'v2' ORDER BY ds, tag") == [
        (FIRST, "beans", 1, 2, 0.5, None, None, None, None),
        (FIRST, "soup", 1, 2, 0.5, None, None, None, None),
        (FIRST, "wine", 2, 2, 1.0, None, None, None, None),
        (SECOND, "beans", 1, 2, 0.5, FIRST, 1, 0.5, 0.0),
        (SECOND, "soup", 0, 2, 0.0, FIRST, 1, 0.5, -0.5),
        (SECOND, "tea", 1, 2, 0.5, FIRST, 0, 0.0, 0.5),
        (SECOND, "wine", 1, 2, 0.5, FIRST, 2, 1.0, -0.5),
    ]


def test_methods_stand_side_by_side_beside_v1(select):
    wanted = "('tags', 'tags_per_user', 'tag_panel_judged', 'tag_panel_s_ratio', 'computed_tokens', 'computed_tokens_per_computed_user')"
    columns = "ds, metric, method, value, v1_value, ratio_to_v1"
    told = select(f"SELECT {columns} FROM method_comparison WHERE metric IN {wanted} ORDER BY ds, metric_index, method")
    assert [row for row in told if row[0] == FIRST] == [
        (FIRST, "tags", "v1", 1.0, 1.0, 1.0),
        (FIRST, "tags", "v2", 4.0, 1.0, 4.0),
        (FIRST, "tags_per_user", "v1", 1.0, 1.0, 1.0),
        (FIRST, "tags_per_user", "v2", 2.0, 1.0, 2.0),
        (FIRST, "tag_panel_judged", "v1", 0.0, 0.0, None),
        (FIRST, "tag_panel_judged", "v2", 2.0, 0.0, None),
        (FIRST, "tag_panel_s_ratio", "v1", None, None, None),
        (FIRST, "tag_panel_s_ratio", "v2", 0.5, None, None),
        (FIRST, "computed_tokens", "v1", 40.0, 40.0, 1.0),
        (FIRST, "computed_tokens", "v2", 80.0, 40.0, 2.0),
        (FIRST, "computed_tokens_per_computed_user", "v1", 40.0, 40.0, 1.0),
        (FIRST, "computed_tokens_per_computed_user", "v2", 40.0, 40.0, 1.0),
    ]
    assert {row[4] for row in told if row[0] == SECOND} == {None}  # that night has no v1


def test_every_metric_has_its_case(select):
    """A name in the list without a line in the CASE would be null everywhere."""
    silent = select("SELECT metric FROM method_comparison GROUP BY metric HAVING count(value) = 0 ORDER BY metric")
    ratios = [f"{judged}_one_shot_{grade}_ratio" for judged in ("explanation", "tag") for grade in "abs"]
    assert silent == [(name,) for name in ratios]  # the shop's one-shot judge graded nothing
