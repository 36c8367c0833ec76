"""The distributed experts: each proposes item tags for its persona, and sees nothing else of the user.

    choice of a closed list:  one call a pick, picked tags removed; the picks of a persona share their prompt's beginning
    written freely:           one call writes all tags as JSON

A tag is "modifier + core word" where the model writes (RecGPT V1, item tags); in a closed list it is a type of the catalog.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from recgpt_ops.agents.crew import Crew
from recgpt_ops.agents.rows import Persona, Proposal
from recgpt_ops.agents.vocabulary import closed_list, query_text
from recgpt_ops.ids import tag_id
from recgpt_ops.ledger.asking import as_sampling
from recgpt_ops.llm.languages import check_language
from recgpt_ops.llm.requests import Answer, Request
from recgpt_ops.llm.structured import compact_schema, parse_json_list


async def propose(persona: Persona, crew: Crew, *, user_id: str, locale: str, leave_out: Sequence[str]) -> tuple[Proposal, ...]:
    """The persona's tags in the order the expert named them. `leave_out`: types just bought, not to be proposed again."""
    if crew.vocabulary is not None:
        options = closed_list(
            query_text(persona),
            crew.vocabulary,
            embedder=crew.embedder,
            size=crew.recipe.closed_list_size,
            leave_out=leave_out,
            user_id=user_id,
            locale=locale,
        )
        named = await choose_tags(persona, options, crew, user_id=user_id, locale=locale)
    else:
        named = await write_tags(persona, crew, user_id=user_id, locale=locale)
    return tuple(
        Proposal(persona.persona_index, index, tag_id(locale, tag), tag, call_id) for index, (tag, call_id) in enumerate(named, start=1)
    )


async def choose_tags(persona: Persona, options: tuple[str, ...], crew: Crew, *, user_id: str, locale: str) -> list[tuple[str, str]]:
    """`tags_per_persona` of the options with the calls that picked them; fewer where there are fewer options."""
    picked: list[tuple[str, str]] = []
    while len(picked) < min(crew.recipe.tags_per_persona, len(options)):
        chosen = [tag for tag, _ in picked]
        picked.append(
            await crew.choose(
                "expert",
                "expert_choice",
                locale,
                user_id=user_id,
                options=tuple(option for option in options if option not in chosen),
                sampling=crew.recipe.sampling.expert,
                name=persona.name,
                user_summary=persona.user_summary,
                evidence=persona.evidence,
                context_cues=persona.context_cues,
                shown=options,
                chosen=chosen,
            )
        )
    return picked


async def write_tags(persona: Persona, crew: Crew, *, user_id: str, locale: str) -> list[tuple[str, str]]:
    """Exactly `tags_per_persona` distinct tags from one call."""
    recipe = crew.recipe

    def make(refused: str) -> Request:
        request = crew.request(
            "expert",
            "expert_generate",
            locale,
            user_id=user_id,
            sampling=as_sampling(recipe.sampling.expert),
            name=persona.name,
            focus=persona.focus,
            user_summary=persona.user_summary,
            evidence=persona.evidence,
            context_cues=persona.context_cues,
            avoid=persona.avoid,
            tag_count=recipe.tags_per_persona,
            max_chars=recipe.max_tag_chars,
            refused=refused,
        )
        return replace(request, json_schema=expert_schema(recipe.tags_per_persona, recipe.max_tag_chars))

    def parse(answer: Answer) -> tuple[str, ...]:
        count = recipe.tags_per_persona
        tags = parse_json_list(answer, what="tags", min_count=count, max_count=count, max_chars=recipe.max_tag_chars)
        check_language(tags, locale, what="tags", min_share=recipe.language_min_share)
        return tags

    tags, call_id = await crew.ask(make, parse)
    return [(tag, call_id) for tag in tags]


def expert_schema(tag_count: int, max_chars: int) -> str:
    """The shape of a free expert's answer: a list of texts."""
    tag = {"type": "string", "minLength": 1, "maxLength": max_chars}
    return compact_schema({"type": "array", "items": tag, "minItems": tag_count, "maxItems": tag_count})
