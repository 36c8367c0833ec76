"""The graph of one user and a shard of users: what one user's fault costs, and what is never lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from recgpt_ops.agents.crew import Crew
from recgpt_ops.agents.graph import compute_user, compute_users
from recgpt_ops.llm.fake import FakeEngine

from .conftest import make_context


def test_one_user_gets_three_personas_five_tags_each_and_six_final_tags(make_crew: Callable[..., Crew]) -> None:
    intents = asyncio.run(compute_user(make_context(), make_crew(FakeEngine())))
    assert [persona.persona_index for persona in intents.personas] == [1, 2, 3]
    assert len({persona.name for persona in intents.personas}) == 3
    assert [(p.persona_index, p.proposal_index) for p in intents.proposals] == [(k, n) for k in (1, 2, 3) for n in range(1, 6)]
    assert [tag.rank for tag in intents.tags] == [1, 2, 3, 4, 5, 6]
    scores = [tag.score for tag in intents.tags]
    assert scores == sorted(scores, reverse=True)
