"""What the demo may cost: calls and tokens, whatever the machine's speed."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Callable

from recgpt_ops.agents.budget import INSTRUCTION_TOKENS, planned_calls, planned_prompt_tokens
from recgpt_ops.agents.crew import Crew
from recgpt_ops.agents.graph import compute_users
from recgpt_ops.llm.fake import FakeEngine
from recgpt_ops.llm.tokenizer import PromptTokenizer
from recgpt_ops.recipes import load_recipe

from .conftest import make_context

DEMO_USERS = 8


def test_the_demo_asks_at_most_384_calls() -> None:
    planned = planned_calls(load_recipe("v2"), DEMO_USERS)
    # 8 users x 3 picks, 8 x 3 x 5 tags, 8 x 15 tags scored, and as many without the context where no two users share a tag
    assert planned == (24, 120, 120, 120, 0)
    assert planned.total == 384


def test_a_recipe_that_writes_takes_one_call_a_role_and_expert() -> None:
    assert planned_calls(load_recipe("v2_free"), DEMO_USERS) == (8, 24, 8, 0, 0)


def test_the_demo_stays_within_its_planned_tokens(make_crew: Callable[..., Crew], tokenizer: PromptTokenizer) -> None:
    """Eight contexts that fill the budget to the last token."""
    recipe = load_recipe("v2")
    text = "1. Oct 28 bought | cheddar; milk " * 400
    while (extra := tokenizer.count(text) - recipe.context_budget_tokens) > 0:
        text = text[: -max(1, extra)]
    engine = FakeEngine()
    contexts = [make_context(f"u{number}", text=text) for number in range(DEMO_USERS)]
    asyncio.run(compute_users(contexts, make_crew(engine), users_in_flight=5))
    by_role = Counter[str]()
    for request in engine.calls:
        by_role[request.role] += len(request.token_ids)
    planned = planned_prompt_tokens(recipe, DEMO_USERS)
    sys.stdout.write(f"demo: {len(engine.calls)} calls, {by_role.total():,} prompt tokens {dict(by_role)}; planned at most {planned:,}\n")
    assert by_role.total() <= planned
    assert planned == 24 * 2560 + 120 * 1024 + 120 * 2560 + 120 * INSTRUCTION_TOKENS == 552_960
