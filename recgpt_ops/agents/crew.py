"""What all users of a shard share when the agents ask: recipe, embedder, vocabulary, templates, signals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from recgpt_ops.agents.rows import Signal
from recgpt_ops.agents.vocabulary import Vocabulary
from recgpt_ops.ledger.asking import Asker
from recgpt_ops.ledger.recorder import CallRecorder
from recgpt_ops.llm.encoder import TextEncoder
from recgpt_ops.llm.requests import Request, Sampling
from recgpt_ops.llm.tokenizer import PromptTokenizer
from recgpt_ops.recipes import Recipe

PROMPTS = Path(__file__).parent / "prompts"
# Every variable each template is rendered with; an unknown placeholder is found when the template is loaded.
VARIABLES: dict[str, tuple[str, ...]] = {
    "planner_choice": ("context", "areas", "chosen", "refused"),
    "planner_generate": ("context", "persona_count", "refused"),
    "expert_choice": ("name", "user_summary", "evidence", "context_cues", "shown", "chosen", "refused"),
    "expert_generate": ("name", "focus", "user_summary", "evidence", "context_cues", "avoid", "tag_count", "max_chars", "refused"),
    "route_choice_instruction_first": ("route", "context", "shown", "chosen", "refused"),
    "route_choice_context_first": ("route", "context", "shown", "chosen", "refused"),
    "arbiter_likelihood": ("context",),
    "arbiter_generate": ("context", "pool", "pick_count", "refused"),
}


class Crew(Asker):
    """One per shard and recipe. `vocabulary` is None where the recipe writes freely.

    `signals`: what the lines of `Context.signals` are, by locale and text; V1's routes tell a trend from a holiday by it.
    """

    def __init__(
        self,
        recipe: Recipe,
        tokenizer: PromptTokenizer,
        embedder: TextEncoder,
        calls: CallRecorder,
        vocabulary: Vocabulary | None = None,
        *,
        signals: Mapping[tuple[str, str], Signal] = MappingProxyType({}),
    ) -> None:
        super().__init__(PROMPTS, VARIABLES, tokenizer=tokenizer, calls=calls)
        self.recipe, self.embedder, self.vocabulary, self.signals = recipe, embedder, vocabulary, signals

    def request(self, role: str, name: str, locale: str, /, *, user_id: str | None, sampling: Sampling, **variables: object) -> Request:
        """A question whose prefix is shared within its method only: a method that ran beside another would else look cheaper than it is."""
        asked = super().request(role, name, locale, user_id=user_id, sampling=sampling, **variables)
        return replace(asked, cache_scope=self.recipe.name)
