"""Rows of the agents and their contracts have the same columns."""

from __future__ import annotations

import pytest

from recgpt_ops.agents.rows import IntentTag, Persona, PoolTag, Proposal, plan_row, proposal_row, read_context, tag_row
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
        "lines": [{"line_id": 1, "text": "Oct 28 (bought) | Milk, 1 gal; Eggs", "item_ids": ["i1", "i2"], "queries": []}], "attributes": [{"name": "age", "value": "35-44"}], "signals": ["Season: autumn"],
        "groups": [{"name": "dairy", "event_count": 3, "item_types": [{"name": "milk", "event_count": 3}], "line_ids": [1]}],
        "recent_item_types": ["milk"], "situation_id": "not needed",
    }  # fmt: skip
    context = read_context(row)
    assert context.line_ids == (1,)
    assert context.attributes == (("age", "35-44"),)
    assert context.groups[0].item_types == ("milk",)
