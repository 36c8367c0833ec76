"""What the explanations of a night may cost at most, known before it starts.

Demo: 8 users x 2 items x (2 style + 1 writer) calls by `v2`, 8 x 2 x 1 by `v1`; texts and guidelines that users share are made once.
"""

from __future__ import annotations

from typing import NamedTuple

from recgpt_ops.recipes import Recipe

STYLE_PICKS = 2  # tone and device, then audience and feeling
PROMPT_TOKENS = 512  # most that a prompt of this stage takes: an item's text is a few lines


class PlannedCalls(NamedTuple):
    """The most calls by role, second tries after refused answers not counted."""

    style: int
    writer: int

    @property
    def total(self) -> int:
        """Both roles."""
        return sum(self)


def planned_calls(recipe: Recipe, users: int) -> PlannedCalls:
    """The most calls that `users` users can take; sharing makes them fewer."""
    if recipe.explanations == "none":
        return PlannedCalls(0, 0)
    texts = users * recipe.explained_item_count
    if recipe.explanations == "template":
        return PlannedCalls(0, texts)
    return PlannedCalls(texts * (STYLE_PICKS if recipe.style == "choice" else 1), texts)


def planned_prompt_tokens(recipe: Recipe, users: int) -> int:
    """The most prompt tokens submitted for `users` users, those read from the prefix cache included."""
    return planned_calls(recipe, users).total * PROMPT_TOKENS
