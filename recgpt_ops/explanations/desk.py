"""What all explanations of a shard share when they are written: recipe, templates, brands."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from recgpt_ops.explanations.phrases import phrases_of
from recgpt_ops.explanations.rows import Wanted
from recgpt_ops.explanations.validation import Source
from recgpt_ops.ledger.asking import Asker
from recgpt_ops.ledger.recorder import CallRecorder
from recgpt_ops.llm.requests import Request
from recgpt_ops.llm.tokenizer import PromptTokenizer
from recgpt_ops.prompts import language_of
from recgpt_ops.recipes import Recipe

PROMPTS = Path(__file__).parent / "prompts"
GUIDED = ("interest", "item", "situation", "style", "refused")
FIXED = ("interest", "item", "date", "refused")
# Every variable each template is rendered with; an unknown placeholder is found when the template is loaded.
VARIABLES: dict[str, tuple[str, ...]] = {
    "style_voice": ("interest", "item_type", "situation", "ways", "refused"),
    "style_reader": ("interest", "item_type", "situation", "voice", "readers", "refused"),
    "style_generate": ("interest", "item_type", "situation", "refused"),
    "guided_choice": GUIDED,
    "guided_generate": GUIDED,
    "fixed_choice": FIXED,
    "fixed_generate": FIXED,
}


class Desk(Asker):
    """One per shard and recipe. `brands`: the catalog's, casefolded."""

    def __init__(self, recipe: Recipe, tokenizer: PromptTokenizer, calls: CallRecorder, *, brands: Collection[str] = ()) -> None:
        super().__init__(PROMPTS, VARIABLES, tokenizer=tokenizer, calls=calls)
        self.recipe, self.brands = recipe, brands


def source_of(wanted: Wanted) -> Source:
    """What a text of this explanation may lean on."""
    return Source(wanted.item.title, wanted.item.told, wanted.tag, f"{wanted.situation} {date_of(wanted)}", wanted.locale)


def date_of(wanted: Wanted) -> str:
    """The serving day as month and day, as V1's template tells it: October 31."""
    month, day = wanted.month_day
    name = phrases_of(wanted.locale).months[month - 1]
    return f"{name}{day}日" if language_of(wanted.locale) == "zh" else f"{name} {day}"


def own_words(request: Request) -> tuple[str, tuple[str, ...]]:
    """What of a prompt is ours: its text without the examples' answers, and these answers."""
    ours = " ".join(
        segment.text for message in request.messages if message.role != "assistant" for segment in message.segments if not segment.is_data
    )
    return ours, tuple(message.text for message in request.messages if message.role == "assistant")
