"""The global planner: reads the context once and names the points of view from which the experts look at the user.

    choice:    picks among the user's item groups, one call a pick; the program writes the persona from the group (for small models)
    generate:  one call writes all personas as JSON, each citing context lines

Either way a persona must stand by itself, because its expert sees nothing else (RecGPT-V2, global planner).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from recgpt_ops.agents.crew import Crew
from recgpt_ops.agents.rows import Context, Group, Persona
from recgpt_ops.errors import RowError
from recgpt_ops.ids import normalize_text
from recgpt_ops.ledger.asking import as_sampling
from recgpt_ops.llm.languages import check_language
from recgpt_ops.llm.requests import Answer, Request
from recgpt_ops.llm.structured import check_text, check_texts, compact_schema, parse_json_obj
from recgpt_ops.prompts import language_of

# What the program writes where the model only chooses. {name}: the group; {count} events in the last {days} days.
PHRASES = {
    "en": {
        "focus": "What the shopper may want next from {name} (its events in the last {days} days: {count})",
        "pair": "{}: {}",
        "join": "; ",
    },
    "zh": {
        "focus": "这位顾客接下来可能想要的“{name}”，依据最近 {days} 天的 {count} 次行为",
        "pair": "{}：{}",
        "join": "；",
    },
}
PERSONA_KEYS = ("name", "focus", "user_summary", "evidence", "context_cues", "avoid", "line_ids")


async def plan(context: Context, crew: Crew) -> tuple[Persona, ...]:
    """The user's personas in the planner's order; RowError when there is nothing to plan from or no valid answer came."""
    return await (choose_personas(context, crew) if crew.recipe.planner == "choice" else write_personas(context, crew))


async def choose_personas(context: Context, crew: Crew) -> tuple[Persona, ...]:
    """Up to `persona_count` of the user's groups, picked one by one; what is picked is no longer an option."""
    groups = {group.name: group for group in context.groups[: crew.recipe.group_count]}
    if not groups:
        raise RowError("no_item_groups", f"the context has no group of items of the last {crew.recipe.group_days} days to plan from")
    chosen: list[str] = []
    personas = []
    while len(chosen) < min(crew.recipe.persona_count, len(groups)):
        name, call_id = await crew.choose(
            "planner",
            "planner_choice",
            context.locale,
            user_id=context.user_id,
            options=tuple(name for name in groups if name not in chosen),
            sampling=crew.recipe.sampling.planner,
            context=context.text,
            areas=list(groups),
            chosen=list(chosen),
        )
        chosen.append(name)
        personas.append(describe_group(context, groups[name], persona_index=len(chosen), call_id=call_id, days=crew.recipe.group_days))
    return tuple(personas)


def describe_group(context: Context, group: Group, *, persona_index: int, call_id: str, days: int) -> Persona:
    """A group of the context as a persona, in the program's words."""
    phrases = PHRASES.get(language_of(context.locale), PHRASES["en"])
    own = {normalize_text(name) for name in group.item_types}
    return Persona(
        persona_index=persona_index,
        name=group.name,
        focus=phrases["focus"].format(name=group.name, count=group.event_count, days=days),
        user_summary=phrases["join"].join(phrases["pair"].format(name, value) for name, value in context.attributes),
        evidence=group.item_types,
        context_cues=context.signals,
        avoid=tuple(name for name in context.recent_item_types if normalize_text(name) in own),
        line_ids=group.line_ids,
        evidence_by="program",
        call_id=call_id,
    )


async def write_personas(context: Context, crew: Crew) -> tuple[Persona, ...]:
    """Exactly `persona_count` personas from one call, each citing lines of this context."""

    def make(refused: str) -> Request:
        request = crew.request(
            "planner",
            "planner_generate",
            context.locale,
            user_id=context.user_id,
            sampling=as_sampling(crew.recipe.sampling.planner),
            context=context.text,
            persona_count=crew.recipe.persona_count,
            refused=refused,
        )
        return replace(request, json_schema=planner_schema(crew.recipe.persona_count))

    def parse(answer: Answer) -> tuple[Persona, ...]:
        return read_personas(answer, context, persona_count=crew.recipe.persona_count, min_share=crew.recipe.language_min_share)

    personas, call_id = await crew.ask(make, parse)
    return tuple(replace(persona, call_id=call_id) for persona in personas)


def planner_schema(persona_count: int) -> str:
    """The shape of the planner's answer. The engine's guarantees are not relied on: `read_personas` checks all of it again."""
    persona = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 80},
            "focus": {"type": "string", "minLength": 1, "maxLength": 300},
            "user_summary": {"type": "string", "minLength": 1, "maxLength": 300},
            "evidence": texts_schema(min_items=1),
            "context_cues": texts_schema(min_items=0),
            "avoid": texts_schema(min_items=0),
            "line_ids": {"type": "array", "items": {"type": "integer", "minimum": 1}, "minItems": 1, "maxItems": 12},
        },
        "required": list(PERSONA_KEYS),
        "additionalProperties": False,
    }
    personas = {"type": "array", "items": persona, "minItems": persona_count, "maxItems": persona_count}
    return compact_schema({"type": "object", "properties": {"personas": personas}, "required": ["personas"], "additionalProperties": False})


def texts_schema(*, min_items: int) -> dict[str, Any]:
    """A list of short texts."""
    return {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 200}, "minItems": min_items, "maxItems": 8}


def read_personas(answer: Answer, context: Context, *, persona_count: int, min_share: float) -> tuple[Persona, ...]:
    """The personas of an answer, `call_id` still empty. RowError names the first thing that is wrong."""
    found = parse_json_obj(answer, what="planner", keys=("personas",))["personas"]
    if not isinstance(found, list) or len(found) != persona_count:
        raise RowError(
            "wrong_count", f"planner: expected {persona_count} personas, got {len(found) if isinstance(found, list) else found!r}"
        )
    personas = tuple(read_persona(value, index, context) for index, value in enumerate(found, start=1))
    check_texts(
        [persona.name for persona in personas], what="persona names", min_count=persona_count, max_count=persona_count, max_chars=80
    )
    for persona in personas:
        what = f"persona {persona.persona_index}"
        texts = (persona.name, persona.focus, persona.user_summary, *persona.evidence)
        check_language(texts, context.locale, what=what, min_share=min_share)
    return personas


def read_persona(value: Any, index: int, context: Context) -> Persona:
    """One persona of an answer."""
    what = f"persona {index}"
    if not isinstance(value, dict) or set(value) != set(PERSONA_KEYS):
        raise RowError("wrong_shape", f"{what}: expected an object with {', '.join(PERSONA_KEYS)}, got {str(value)[:80]!r}")
    line_ids = value["line_ids"]
    if not isinstance(line_ids, list) or not line_ids:
        raise RowError("wrong_shape", f"{what}: line_ids is {str(line_ids)[:80]!r}; expected line numbers")
    if unknown := [line_id for line_id in line_ids if type(line_id) is not int or line_id not in context.line_ids]:
        raise RowError("unknown_line", f"{what} cites {unknown[:5]}; the context has lines 1 to {max(context.line_ids, default=0)}")

    def texts(key: str, min_count: int) -> tuple[str, ...]:
        if not isinstance(value[key], list):
            raise RowError("wrong_shape", f"{what}: {key} is {str(value[key])[:80]!r}; expected a list")
        return check_texts(value[key], what=f"{what}, {key}", min_count=min_count, max_count=8, max_chars=200)

    return Persona(
        persona_index=index,
        name=check_text(value["name"], what=f"{what}, name", max_chars=80),
        focus=check_text(value["focus"], what=f"{what}, focus", max_chars=300),
        user_summary=check_text(value["user_summary"], what=f"{what}, user_summary", max_chars=300),
        evidence=texts("evidence", 1),
        context_cues=texts("context_cues", 0),
        avoid=texts("avoid", 0),
        line_ids=tuple(sorted(set(line_ids))),
        evidence_by="model",
        call_id="",
    )
