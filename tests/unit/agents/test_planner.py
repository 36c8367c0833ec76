"""The planner: picks among groups or writes personas, and what of an answer is refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from recgpt_ops.agents.crew import Crew
from recgpt_ops.agents.planner import plan, planner_schema, read_personas
from recgpt_ops.errors import RowError
from recgpt_ops.llm.fake import FakeEngine
from recgpt_ops.llm.requests import Answer
from recgpt_ops.llm.structured import constraint_faults

from .conftest import make_context

Make = Callable[..., Crew]


def persona(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "name": name, "focus": "new kinds of it", "user_summary": "adult with a dog", "evidence": ["bought it twice"],
        "context_cues": ["Halloween"], "avoid": ["milk"], "line_ids": [1],
    } | changes  # fmt: skip


def answer(personas: Any, **changes: Any) -> Answer:
    values = {"text": json.dumps({"personas": personas}), "finish_reason": "stop"} | changes
    return Answer(prompt_tokens=10, cached_tokens=0, completion_tokens=10, seconds=0.1, **values)


THREE = [persona("cheese expert"), persona("pets expert", line_ids=[2, 2, 1]), persona("sweets expert")]


def test_picks_are_distinct_groups_and_each_pick_is_no_longer_an_option(make_crew: Make) -> None:
    engine = FakeEngine(texts=lambda request: request.choice[0] if request.choice else None)
    personas = asyncio.run(plan(make_context(), make_crew(engine)))
    assert [persona.name for persona in personas] == ["cheese", "pets", "sweets"]
    assert [request.choice for request in engine.calls] == [
        ("cheese", "pets", "sweets", "drinks"),
        ("pets", "sweets", "drinks"),
        ("sweets", "drinks"),
    ]


def test_the_program_writes_all_that_an_expert_needs_from_the_group(make_crew: Make) -> None:
    engine = FakeEngine(texts=lambda request: request.choice[0] if request.choice else None)
    cheese, pets, _ = asyncio.run(plan(make_context(), make_crew(engine)))
    assert cheese.focus == "What the shopper may want next from cheese (its events in the last 90 days: 12)"
    assert cheese.user_summary == "age: 35-44; household: 2 adults"
    assert cheese.evidence == ("cheddar", "cream cheese")
    assert cheese.context_cues == make_context().signals
    assert cheese.avoid == ("Cheddar",)  # bought in the last days, and of this group
    assert pets.avoid == ("dog food",)
    assert (cheese.line_ids, cheese.evidence_by) == ((1,), "program")
    assert len(cheese.call_id) == 64


def test_a_user_with_fewer_groups_gets_fewer_personas_and_one_without_goes_to_quarantine(make_crew: Make) -> None:
    engine = FakeEngine()
    assert len(asyncio.run(plan(make_context(groups=make_context().groups[:2]), make_crew(engine)))) == 2
    with pytest.raises(RowError, match="no_item_groups"):
        asyncio.run(plan(make_context(groups=()), make_crew(engine)))


def test_the_chinese_program_text_is_chinese(make_crew: Make) -> None:
    first, *_ = asyncio.run(plan(make_context(locale="zh-CN"), make_crew(FakeEngine())))
    assert first.focus.startswith("这位顾客接下来可能想要的")
    assert first.user_summary == "age：35-44；household：2 adults"


def test_written_personas_cite_lines_of_this_context_each_once() -> None:
    cheese, pets, _ = read_personas(answer(THREE), make_context(), persona_count=3, min_share=0.5)
    assert (cheese.name, cheese.evidence_by, cheese.persona_index) == ("cheese expert", "model", 1)
    assert pets.line_ids == (1, 2)


@pytest.mark.parametrize(
    ("personas", "reason"),
    [
        (THREE[:2], "wrong_count"),
        ("none", "wrong_count"),
        ([*THREE[:2], persona("Cheese  Expert")], "duplicate"),
        ([*THREE[:2], persona("toys expert", line_ids=[9])], "unknown_line"),
        ([*THREE[:2], persona("toys expert", line_ids=["1"])], "unknown_line"),
        ([*THREE[:2], persona("toys expert", line_ids=[True])], "unknown_line"),
        ([*THREE[:2], persona("toys expert", line_ids=[])], "wrong_shape"),
        ([*THREE[:2], persona("toys expert", evidence=[])], "wrong_count"),
        ([*THREE[:2], persona("toys expert", evidence="text")], "wrong_shape"),
        ([*THREE[:2], persona("toys expert", focus="x" * 301)], "text_too_long"),
        ([*THREE[:2], persona("toys expert", focus="<think>hm")], "thinking_unclosed"),
        ([*THREE[:2], {"name": "toys expert"}], "wrong_shape"),
        ([*THREE[:2], persona("玩具专家", focus="新的玩具", user_summary="成年人", evidence=["买过两次玩具"])], "wrong_language"),
    ],
)
def test_case_028_what_is_wrong_with_a_written_persona_is_told(personas: Any, reason: str) -> None:
    with pytest.raises(RowError) as caught:
        read_personas(answer(personas), make_context(), persona_count=3, min_share=0.5)
    assert caught.value.reason == reason


def test_an_unknown_line_is_asked_for_again_with_the_reason(make_crew: Make) -> None:
    texts = iter([json.dumps({"personas": [*THREE[:2], persona("toys expert", line_ids=[9])]}), json.dumps({"personas": THREE})])
    engine = FakeEngine(texts=lambda request: next(texts))
    personas = asyncio.run(plan(make_context(), make_crew(engine, "v2_free")))
    assert [persona.name for persona in personas] == ["cheese expert", "pets expert", "sweets expert"]
    first, second = ("".join(message.text for message in request.messages) for request in engine.calls)
    assert "cites [9]; the context has lines 1 to 3" in second
    assert "refused" not in first


def test_the_schema_is_compact_asks_for_exactly_three_and_says_something() -> None:
    schema = json.loads(planner_schema(3))
    personas = schema["properties"]["personas"]
    assert (personas["minItems"], personas["maxItems"]) == (3, 3)
    assert personas["items"]["required"] == ["name", "focus", "user_summary", "evidence", "context_cues", "avoid", "line_ids"]
    assert constraint_faults("planner", planner_schema(3)) == []
    assert "uniqueItems" not in planner_schema(3)  # refused by the grammar
