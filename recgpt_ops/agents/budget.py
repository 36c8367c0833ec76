"""What a night may cost at most, known before it starts: calls and tokens, whatever the machine's speed.

Demo by v2: 8 users x (3 planner + 3 x 5 expert + at most 15 arbiter) + at most 8 x 15 shared calls without a context.
Demo by v1: 8 users x 3 routes x 5 picks, each with the whole context.
"""

from __future__ import annotations

from typing import NamedTuple

from recgpt_ops.recipes import Recipe

INSTRUCTION_TOKENS = 512  # most that system text, instruction and lists add to a context
EXPERT_TOKENS = 1024  # most that an expert's whole prompt takes: its persona, its list, what was chosen


class PlannedCalls(NamedTuple):
    """The most calls of a night by role, retries after invalid answers not counted."""

    planner: int
    expert: int
    arbiter: int
    arbiter_null: int
    route: int

    @property
    def total(self) -> int:
        """All roles."""
        return sum(self)


def planned_calls(recipe: Recipe, users: int, *, weather: bool = False) -> PlannedCalls:
    """The most calls that `users` users can take. `arbiter_null` calls are shared, so many users take fewer.

    `weather`: a connector tells it, so V1 has one route more.
    """
    if recipe.planner == "routes":
        return PlannedCalls(0, 0, 0, 0, route=users * (recipe.persona_count + weather) * recipe.tags_per_persona)
    pool = recipe.persona_count * recipe.tags_per_persona
    by_likelihood = recipe.arbiter == "likelihood"
    return PlannedCalls(
        planner=users * (recipe.persona_count if recipe.planner == "choice" else 1),
        expert=users * recipe.persona_count * (recipe.tags_per_persona if recipe.vocabulary == "closed" else 1),
        arbiter=users * (pool if by_likelihood else 1),
        arbiter_null=users * pool if by_likelihood else 0,
        route=0,
    )


def planned_prompt_tokens(recipe: Recipe, users: int, *, weather: bool = False) -> int:
    """The most prompt tokens submitted for `users` users, those read from the prefix cache included (in the demo about nine of ten)."""
    calls = planned_calls(recipe, users, weather=weather)
    with_context = recipe.context_budget_tokens + INSTRUCTION_TOKENS
    own = (calls.planner + calls.arbiter + calls.route) * with_context
    return own + calls.expert * EXPERT_TOKENS + calls.arbiter_null * INSTRUCTION_TOKENS
