"""g = f_meta(U, I, S): how a line should sound, from the interest, the kind of item and the situation (RecGPT-V2, 4.1).

    ("Candy bars", "Candy - packaged", "autumn, Halloween")  ->  "tone: playful; device: a question; audience: friends; feeling: fun"

Nothing else goes in, so the guideline is made once per (interest, category, situation): equal prompts are one call of the recorder.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import NamedTuple, TypeVar

from recgpt_ops.explanations.desk import Desk
from recgpt_ops.explanations.phrases import Reader, Voice, guideline, phrases_of, reader_options, voice_options
from recgpt_ops.explanations.rows import Wanted
from recgpt_ops.ledger.asking import as_sampling
from recgpt_ops.llm.languages import check_language
from recgpt_ops.llm.requests import Answer, Request
from recgpt_ops.llm.structured import check_text, compact_schema, parse_json_obj

PARTS = ("tone", "device", "audience", "feeling")
MAX_PART_CHARS = 60
OFFERED = 3  # of five; a small model that is shown all takes the same one every time
T = TypeVar("T")


class Style(NamedTuple):
    """A guideline and the call that finished it. `voice` and `reader` are None where it was written."""

    text: str
    call_id: str
    voice: Voice | None = None
    reader: Reader | None = None


async def make_style(wanted: Wanted, desk: Desk) -> Style:
    """The guideline for one explanation; RowError when none could be made."""
    return await (choose_style(wanted, desk) if desk.recipe.style == "choice" else write_style(wanted, desk))


def shown_parts(wanted: Wanted) -> dict[str, str]:
    """What the guideline depends on."""
    return {"interest": wanted.tag, "item_type": wanted.item.category or wanted.item.item_type or wanted.tag, "situation": wanted.situation}


async def choose_style(wanted: Wanted, desk: Desk) -> Style:
    """Two calls: tone and device, then audience and feeling, each from a short closed list."""
    phrases, shown = phrases_of(wanted.locale), shown_parts(wanted)
    voices = deal(voice_options(phrases), wanted, "voice")
    voice, _ = await desk.choose(
        "style", "style_voice", wanted.locale, user_id=None, options=tuple(voices), sampling=desk.recipe.sampling.style,
        ways=tuple(voices), **shown,
    )  # fmt: skip
    readers = deal(reader_options(phrases), wanted, "reader")
    reader, call_id = await desk.choose(
        "style", "style_reader", wanted.locale, user_id=None, options=tuple(readers), sampling=desk.recipe.sampling.style,
        voice=voice, readers=tuple(readers), **shown,
    )  # fmt: skip
    return Style(guideline(phrases, voices[voice], readers[reader]), call_id, voices[voice], readers[reader])


def deal(options: dict[str, T], wanted: Wanted, what: str) -> dict[str, T]:
    """OFFERED of the options, by a hash of what the guideline depends on: equal for equal styles, different from one to the next."""

    def place(option: str) -> str:
        return hashlib.sha256("\x1f".join((what, option, *shown_parts(wanted).values())).encode()).hexdigest()

    return {option: options[option] for option in sorted(options, key=place)[:OFFERED]}


def style_schema() -> str:
    """The guideline as JSON: four short texts."""
    part = {"type": "string", "minLength": 1, "maxLength": MAX_PART_CHARS}
    return compact_schema(
        {"type": "object", "properties": dict.fromkeys(PARTS, part), "required": list(PARTS), "additionalProperties": False}
    )


async def write_style(wanted: Wanted, desk: Desk) -> Style:
    """One call: the model writes the four parts."""
    sampling = as_sampling(desk.recipe.sampling.style)

    def make(refused: str) -> Request:
        request = desk.request(
            "style", "style_generate", wanted.locale, user_id=None, sampling=sampling, refused=refused, **shown_parts(wanted)
        )
        return replace(request, json_schema=style_schema())

    def parse(answer: Answer) -> str:
        parts = parse_json_obj(answer, what="style", keys=PARTS)
        texts = {name: check_text(parts[name], what=f"style, {name}", max_chars=MAX_PART_CHARS) for name in PARTS}
        check_language(texts.values(), wanted.locale, what="style", min_share=desk.recipe.language_min_share)
        return phrases_of(wanted.locale).guideline.format(**texts)

    text, call_id = await desk.ask(make, parse)
    return Style(text, call_id)
