"""Explanations and their verdicts hold no user: they are seen through the assignments that name them."""

from __future__ import annotations

import pytest

from recgpt_ops.delta import checks, sql
from recgpt_ops.delta.sql import connect, fetch_select
from tests.sql.rows import publish, record, show
from tests.unit.delta.conftest import DS

NEXT = "2017-10-31"


@pytest.fixture(autouse=True)
def unchecked(monkeypatch):
    monkeypatch.setattr(checks, "run_checks", lambda *_: [])


@pytest.fixture
def first_night(warehouse):
    """u1 is shown e1 of p1, and the panel judged it; p1 also holds e9, which nobody is shown."""
    publish(warehouse, "night_users", {"user_id": "u1", "made_by": "p1"}, ds=DS, publish_id="p1")
    publish(warehouse, "explanations", {"explanation_id": "e1", "text": "Sweet"}, {"explanation_id": "e9"}, ds=DS, publish_id="p1")
    assign(warehouse, ("u1", "x", "e1", "p1", "written"), ds=DS, publish_id="p1")
    judge(warehouse, "e1", ds=DS, publish_id="p1")
    show(warehouse, ds=DS, publish_id="p1")
    return warehouse


def assign(warehouse, *rows, ds: str, publish_id: str) -> None:
    """(user, item, explanation, generation that holds it, status)."""
    names = ("user_id", "item_id", "explanation_id", "explanation_made_by", "status")
    built = [dict(zip(names, row, strict=True)) for row in rows]
    publish(warehouse, "explanation_assignments", *built, ds=ds, publish_id=publish_id)


def judge(warehouse, *explanations: str, ds: str, publish_id: str, judge_method: str = "panel") -> None:
    rows = [{"explanation_id": name, "judge_method": judge_method, "status": "judged", "label": "A"} for name in explanations]
    publish(warehouse, "explanation_verdicts", *rows, ds=ds, publish_id=publish_id)


def seen(warehouse, table: str = "explanations") -> list[tuple]:
    return fetch_select(connect(warehouse), f"SELECT ds, explanation_id, publish_id FROM {table} ORDER BY ALL")[1]


def test_an_explanation_is_seen_where_a_visible_assignment_names_it_and_no_other(first_night):
    assert seen(first_night) == [(DS, "e1", "p1")]
    assert seen(first_night, "explanation_verdicts") == [(DS, "e1", "p1")]


def test_nothing_is_seen_before_the_pointer_names_the_night(warehouse):
    publish(warehouse, "night_users", {"user_id": "u1", "made_by": "p1"}, ds=DS, publish_id="p1")
    publish(warehouse, "explanations", {"explanation_id": "e1"}, ds=DS, publish_id="p1")
    assign(warehouse, ("u1", "x", "e1", "p1", "written"), ds=DS, publish_id="p1")
    assert seen(warehouse) == []


def test_a_text_of_an_older_night_stands_once_in_each_night_that_shows_it(first_night):
    """u1 is carried into the next night; two more users are shown the text that u1 was shown."""
    users = [{"user_id": "u1", "made_by": "p1", "status": "carried"}, *({"user_id": user, "made_by": "p2"} for user in ("u2", "u3"))]
    publish(first_night, "night_users", *users, ds=NEXT, publish_id="p2")
    publish(first_night, "explanations", {"explanation_id": "e2"}, ds=NEXT, publish_id="p2")
    shared = [(user, "x", "e1", "p1", "shared") for user in ("u2", "u3")]
    assign(first_night, *shared, ("u3", "y", "e2", "p2", "written"), ds=NEXT, publish_id="p2")
    judge(first_night, "e2", ds=NEXT, publish_id="p2")
    show(first_night, ds=NEXT, publish_id="p2")
    both_nights = [(DS, "e1", "p1"), (NEXT, "e1", "p1"), (NEXT, "e2", "p2")]
    assert seen(first_night) == both_nights
    assert seen(first_night, "explanation_verdicts") == both_nights


def test_more_users_share_the_texts_of_the_first_and_a_text_made_twice_is_seen_once(first_night):
    """u2 shares e1 of p1; u3's attempt wrote e1 again, before it knew of p1's."""
    users = [{"user_id": "u1", "made_by": "p1"}, *({"user_id": user, "made_by": "p2"} for user in ("u2", "u3"))]
    publish(first_night, "night_users", *users, ds=DS, publish_id="p2", fence=2)
    publish(first_night, "explanations", {"explanation_id": "e1", "text": "Sweet again"}, ds=DS, publish_id="p2", fence=2)
    assign(first_night, ("u2", "x", "e1", "p1", "shared"), ("u3", "x", "e1", "p2", "written"), ds=DS, publish_id="p2")
    judge(first_night, "e1", ds=DS, publish_id="p2")
    show(first_night, ds=DS, publish_id="p2", fence=2)
    assert seen(first_night) == [(DS, "e1", "p1")]
    assert seen(first_night, "explanation_verdicts") == [(DS, "e1", "p1")]
    assigned = "SELECT user_id, explanation_made_by FROM explanation_assignments ORDER BY 1"
    assert fetch_select(connect(first_night), assigned)[1] == [("u1", "p1"), ("u2", "p1"), ("u3", "p2")]


def test_an_explanation_that_failed_is_an_assignment_alone(warehouse):
    publish(warehouse, "night_users", {"user_id": "u1", "made_by": "p1"}, ds=DS, publish_id="p1")
    assign(warehouse, ("u1", "x", "e1", None, "failed"), ds=DS, publish_id="p1")
    show(warehouse, ds=DS, publish_id="p1")
    assert seen(warehouse) == []
    assert fetch_select(connect(warehouse), "SELECT status FROM explanation_assignments")[1] == [("failed",)]


def test_each_judge_is_seen_and_each_once(first_night):
    judge(first_night, "e1", ds=DS, publish_id="p1x", judge_method="one_shot")  # of a generation that nobody names
    assert fetch_select(connect(first_night), "SELECT judge_method, label FROM explanation_verdicts")[1] == [("panel", "A")]


def test_only_files_of_generations_that_are_named_are_opened(first_night, monkeypatch):
    publish(first_night, "explanations", {"explanation_id": "e1"}, ds=NEXT, publish_id="p7")
    opened = {}
    add_stored = sql.add_stored

    def watch(connection, contract, files):
        opened[contract.name] = {file.partition.get("publish_id") for file in files}
        add_stored(connection, contract, files)

    monkeypatch.setattr(sql, "add_stored", watch)
    connect(first_night)
    assert opened["explanations"] == opened["explanation_verdicts"] == opened["night_users"] == {"p1"}


def test_verdicts_of_tags_are_seen_as_other_rows_of_a_user_are(first_night):
    row = {"user_id": "u1", "tag_id": "t", "judge_method": "panel", "status": "judged", "label": "S"}
    publish(first_night, "tag_verdicts", row, ds=DS, publish_id="p1")
    publish(first_night, "tag_verdicts", {**row, "label": "B"}, ds=DS, publish_id="p9")
    assert fetch_select(connect(first_night), "SELECT user_id, label FROM tag_verdicts")[1] == [("u1", "S")]


def test_evaluations_are_a_record_and_whole(warehouse):
    record(warehouse, "evaluations", {"metric": "hr_next1", "arm": "v1", "value": 0.25}, {"metric": "hr_next1", "arm": "v2"})
    assert fetch_select(connect(warehouse), "SELECT arm, value FROM evaluations ORDER BY 1")[1] == [("v1", 0.25), ("v2", None)]
