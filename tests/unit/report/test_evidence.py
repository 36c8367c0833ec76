"""Where the words for a tag's evidence come from; a line that speaks for nothing is never named."""

from __future__ import annotations

import pytest

from recgpt_ops.report.evidence import Evidence, evidence_of, telling_types, type_of

ITEMS = {
    "i1": {"item_type": "Cheese crackers", "title": "Cheddar, 16 oz"},
    "i2": {"item_type": "PUMPKIN", "title": "Pie pumpkin"},
    "i3": {"item_type": None, "title": "Hose"},
}
LINES = [
    {"line_id": 1, "item_ids": ["i1"]},
    {"line_id": 2, "item_ids": ["gone", "i2"]},
    {"line_id": 3, "item_ids": ["i3"]},
    {"line_id": 4, "item_ids": []},
]


def plan(index: int, line_ids: list[int], by: str, name: str = "Snacks") -> dict:
    return {"persona_index": index, "line_ids": line_ids, "evidence_by": by, "name": name, "evidence": ["Candy corn"]}


def tag(words: str, *personas: int) -> dict:
    return {"tag": words, "persona_indexes": list(personas)}


@pytest.mark.parametrize(
    ("given", "plans", "expected"),
    [
        (tag("Soup", 1), [plan(1, [4], "model")], [Evidence(4, ("cited by the model",), ("Snacks",))]),
        (tag("Soup", 1), [plan(1, [4], "program")], [Evidence(4, ("set by the program",), ("Snacks",))]),
        (tag("pumpkin", 1), [plan(1, [], "program")], [Evidence(2, ("in context",), ())]),
        (tag("Hose", 1), [plan(1, [], "program")], [Evidence(3, ("in context",), ())]),
        (tag("Soup", 1), [plan(1, [], "program")], []),
        (tag("Soup", 2), [plan(1, [1, 2], "model")], []),  # another persona's lines are not this tag's
        (tag("Soup"), [plan(1, [1], "model")], []),
    ],
    ids=["model", "program", "in context by type", "in context by title", "nothing", "another persona", "no persona"],
)
def test_a_line_is_named_by_whom_it_was_named_by(given, plans, expected):
    assert evidence_of(given, plans=plans, lines=LINES, items=ITEMS) == expected


def test_a_cited_line_is_not_called_in_context_too_and_two_namings_are_both_told():
    plans = [plan(1, [2], "model", "Halloween"), plan(2, [2], "program", "Season")]
    both = Evidence(2, ("cited by the model", "set by the program"), ("Halloween", "Season"))
    assert evidence_of(tag("Pumpkin", 1, 2), plans=plans, lines=LINES, items=ITEMS) == [both]


def test_types_compare_as_normalized_text_and_unknown_items_have_none():
    assert [type_of(ITEMS["i2"]), type_of(ITEMS["i3"]), type_of(None)] == ["pumpkin", "hose", None]
    assert telling_types(tag("Pumpkin", 1), [plan(1, [], "model"), plan(2, [], "model")]) == {"pumpkin", "candy corn"}
