"""Rows of the agents and their contracts have the same columns."""

from __future__ import annotations

import pytest

from recgpt_ops.agents.rows import IntentTag, Persona, PoolTag, Proposal, first_titles, plan_row, proposal_row, read_context, tag_row
from recgpt_ops.ids import row_id, tag_id, user_bucket
from recgpt_ops.tables import load_contract

from .conftest import make_context

PERSONA = Persona(1, "cheese", "focus", "adult", ("cheddar",), ("autumn",), (), (1,), "program", "call")
PROPOSAL = Proposal(1, 2, tag_id("en-US", "Goat cheese"), "Goat cheese", "call")
TAG = IntentTag(1, PoolTag(4, PROPOSAL.tag_id, "Goat cheese", (1, 3)), 0.25, None, "call")


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ("intent_plans", plan_row(make_context(), PERSONA, "p1")),
        ("tag_proposals", proposal_row(make_context(), PROPOSAL, "p1")),
        ("intent_tags", tag_row(make_context(), TAG, "p1")),
    ],
)
def test_a_row_has_exactly_the_columns_of_its_contract(table: str, row: dict[str, object]) -> None:
    assert sorted(row) == sorted(load_contract(table).column_names)
    assert row["user_bucket"] == user_bucket("u1")


def test_the_id_of_a_tag_row_is_its_key_without_the_generation() -> None:
    row = tag_row(make_context(), TAG, "p1")
    assert row["intent_tag_id"] == row_id(("2017-10-30", "default", "v2", "u1", PROPOSAL.tag_id))
    assert row["intent_tag_id"] == tag_row(make_context(), TAG, "p2")["intent_tag_id"]


def test_a_context_row_is_read_as_far_as_the_agents_need_it() -> None:
    row = {
        "ds": "2017-10-30", "scenario": "default", "method": "v2", "user_id": "u1", "locale": "en-US", "text": "1. milk",
        "lines": [{"line_id": 1, "text": "Oct 28 (bought) | Milk, 1 gal; Eggs", "item_ids": ["i1", "i2"], "queries": []}],
        "attributes": [{"name": "age", "value": "35-44"}], "signals": ["Season: autumn"],
        "groups": [{"name": "dairy", "event_count": 3, "item_types": [{"name": "milk", "event_count": 3}], "line_ids": [1]}],
        "recent_item_types": ["milk"], "situation_id": "not needed",
    }  # fmt: skip
    context = read_context(row)
    assert context.line_ids == (1,)
    assert context.attributes == (("age", "35-44"),)
    assert context.groups[0].item_types == ("milk",)
    assert context.line_titles == ((1, "Milk, 1 gal"),)


def test_the_newest_lines_are_told_by_their_first_titles_and_a_mailing_tells_nothing() -> None:
    def line(line_id: int, text: str, items: int = 0, queries: int = 0) -> dict[str, object]:
        return {"line_id": line_id, "text": text, "item_ids": ["i"] * items, "queries": ["q"] * queries}

    lines = [
        line(1, "Oct 30 (got mailing) | campaign 18"), line(2, "Oct 28 (bought) | Soap, lemon | 2 pack; Eggs", items=2),
        line(3, "Oct 20 (searched for) | rain coat", queries=1), line(4, "Aug 2017 (bought) | Milk", items=1),
        line(5, "2016 (bought) | Tea", items=1),
    ]  # fmt: skip
    assert list(first_titles(lines)) == [(2, "Soap, lemon | 2 pack"), (3, "rain coat"), (4, "Milk")]
