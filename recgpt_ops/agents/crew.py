"""What all users of a shard share when the agents ask: recipe, embedder, vocabulary, templates."""

from __future__ import annotations

from pathlib import Path

from recgpt_ops.agents.vocabulary import Vocabulary
from recgpt_ops.ledger.asking import Asker
from recgpt_ops.ledger.recorder import CallRecorder
from recgpt_ops.llm.encoder import TextEncoder
from recgpt_ops.llm.tokenizer import PromptTokenizer
from recgpt_ops.recipes import Recipe

PROMPTS = Path(__file__).parent / "prompts"
# Every variable each template is rendered with; an unknown placeholder is found when the template is loaded.
VARIABLES: dict[str, tuple[str, ...]] = {
    "planner_choice": ("context", "areas", "chosen", "refused"),
    "planner_generate": ("context", "persona_count", "refused"),
    "expert_choice": ("name", "user_summary", "evidence", "context_cues", "shown", "chosen", "refused"),
    "expert_generate": ("name", "focus", "user_summary", "evidence", "context_cues", "avoid", "tag_count", "max_chars", "refused"),
    "arbiter_likelihood": ("context",),
    "arbiter_generate": ("context", "pool", "pick_count", "refused"),
}


class Crew(Asker):
    """One per shard and recipe. `vocabulary` is None where the recipe writes freely."""

    def __init__(
        self, recipe: Recipe, tokenizer: PromptTokenizer, embedder: TextEncoder, calls: CallRecorder, vocabulary: Vocabulary | None = None
    ) -> None:
        super().__init__(PROMPTS, VARIABLES, tokenizer=tokenizer, calls=calls)
        self.recipe, self.embedder, self.vocabulary = recipe, embedder, vocabulary
