"""e = f_exp(g, U, I, S): the text that people read, by the guideline (RecGPT-V2, 4.1) or by V1's one fixed template (V1, 2.4).

    closed vocabulary   the program makes the sentences that the guideline allows, every item word from the item's own text;
                        the model chooses among them token by token
    free vocabulary     the model writes, and `validation` refuses what it may not say

At temperature 0 the same prompt gives the same answer, so the second try tells why the first was refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace

from recgpt_ops.errors import RowError
from recgpt_ops.explanations.desk import Desk, date_of, own_words, source_of
from recgpt_ops.explanations.phrases import nouns, phrases_of, sentences
from recgpt_ops.explanations.rows import Wanted, Written
from recgpt_ops.explanations.styles import Style, make_style, style_schema
from recgpt_ops.explanations.validation import MAX_CHARS, check_explanation
from recgpt_ops.ledger.asking import as_sampling, for_choice
from recgpt_ops.llm.requests import Answer, Request
from recgpt_ops.llm.structured import compact_schema, parse_choice, parse_json_obj
from recgpt_ops.recipes import Recipe

GUIDED_KEY = "explanation"
FIXED_KEY = "Explation"  # spelled so in V1's prompt
MAX_OPTIONS = 96  # of one choice; more makes the grammar slow and the choice no better


async def write_explanation(wanted: Wanted, desk: Desk) -> Written:
    """One text; RowError with both tries' reasons when none was good."""
    if desk.recipe.explanations == "guided":
        style = await make_style(wanted, desk)
        text, call_id = await ask(wanted, desk, "guided", GUIDED_KEY, options=guided_options(wanted, style), style=style.text)
        return Written(wanted, text, call_id, style.text, style.call_id)
    text, call_id = await ask(wanted, desk, "fixed", FIXED_KEY, options=fixed_options(wanted))
    return Written(wanted, text, call_id)


async def ask(wanted: Wanted, desk: Desk, form: str, key: str, /, *, options: Callable[[], Iterable[str]], **slots: str) -> tuple[str, str]:
    """The checked text and its call. `options` are made for a closed vocabulary only; `slots`: the style, where there is one."""
    source, role = source_of(wanted), desk.recipe.sampling.writer
    is_closed = desk.recipe.vocabulary == "closed"
    choices = fitting(options(), wanted) if is_closed else ()
    told = {"interest": wanted.tag, "item": wanted.item.told, **slots}
    told |= {"situation": wanted.situation} if form == "guided" else {"date": date_of(wanted)}
    asked: list[Request] = []

    def make(refused: str) -> Request:
        sampling = for_choice(role, choices, desk.tokenizer) if is_closed else as_sampling(role)
        name = f"{form}_{'choice' if is_closed else 'generate'}"
        request = desk.request("writer", name, wanted.locale, user_id=None, sampling=sampling, refused=refused, **told)
        asked[:] = [replace(request, choice=choices) if is_closed else replace(request, json_schema=text_schema(key))]
        return asked[0]

    def parse(answer: Answer) -> str:
        text = parse_choice(answer, choices) if is_closed else parse_json_obj(answer, what="explanation", keys=[key])[key]
        prompt, examples = own_words(asked[0])
        return check_explanation(text, source, brands=desk.brands, prompt=prompt, examples=map(example_text, examples))

    return await desk.ask(make, parse)


def example_text(answer: str) -> str:
    """The text of an example's answer, which is JSON where the answer is."""
    try:
        value = json.loads(answer)
    except ValueError:
        return answer
    return next(iter(value.values())) if isinstance(value, dict) else answer


def text_schema(key: str) -> str:
    """An object of one text."""
    text = {"type": "string", "minLength": 1, "maxLength": MAX_CHARS}
    return compact_schema({"type": "object", "properties": {key: text}, "required": [key], "additionalProperties": False})


def fitting(options: Iterable[str], wanted: Wanted) -> tuple[str, ...]:
    """The sentences that our own check lets pass; RowError when the item has no words to make one of."""
    source, found, last = source_of(wanted), [], "its text has no run of letters to call it by"
    for option in options:
        try:
            found.append(check_explanation(option, source))
        except RowError as error:
            last = str(error)
    if not found:
        raise RowError("no_sentence", f"{wanted.item.title[:60]!r}: no sentence of the closed lists fits; {last}")
    return tuple(dict.fromkeys(found))[:MAX_OPTIONS]


def item_nouns(wanted: Wanted) -> tuple[str, ...]:
    """What the item may be called: by its type, else by its title, else by its category."""
    item = wanted.item
    return nouns(wanted.locale, item.item_type, item.title, item.category)


def guided_options(wanted: Wanted, style: Style) -> Callable[[], Iterable[str]]:
    """The sentences that a chosen guideline allows."""
    phrases, voice, reader = phrases_of(wanted.locale), style.voice, style.reader
    known = (phrases.holidays.get(wanted.holiday or ""), phrases.seasons.get(wanted.season or ""))
    whens = tuple(when for when in known if when)

    def made() -> Iterable[str]:
        if voice is None or reader is None:  # a written guideline goes with closed sentences of every kind
            raise RowError("no_sentence", f"{style.text!r}: a written guideline names no sentences; set vocabulary: free")
        return sentences(
            voice.frames if whens else voice.plain_frames, locale=wanted.locale, items=item_nouns(wanted), feels=reader.feels,
            times=reader.times, whens=whens or ("",), company=reader.company,
        )  # fmt: skip

    return made


def fixed_options(wanted: Wanted) -> Callable[[], Iterable[str]]:
    """V1's one sentence with its words to choose."""
    phrases = phrases_of(wanted.locale)
    return lambda: sentences(
        phrases.fixed_frames, locale=wanted.locale, items=item_nouns(wanted), feels=phrases.fixed_feels, times=phrases.fixed_times,
        month=phrases.months[wanted.month_day[0] - 1],
    )  # fmt: skip


def recipe_schemas(recipe: Recipe) -> dict[str, str]:
    """Where in the recipe -> schema that it will ask for; empty for closed lists."""
    schemas = {}
    if recipe.explanations == "guided" and recipe.style == "generate":
        schemas["style"] = style_schema()
    if recipe.explanations != "none" and recipe.vocabulary == "free":
        schemas["writer"] = text_schema(GUIDED_KEY if recipe.explanations == "guided" else FIXED_KEY)
    return {f"{recipe.name}.{role}": schema for role, schema in schemas.items()}
