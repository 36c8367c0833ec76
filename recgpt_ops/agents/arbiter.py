"""The decision arbiter: takes the experts' pool, without duplicates and numbered, and ranks it into the final list.

    likelihood:  score = mean log-probability of the tag's tokens after the context, minus the same after no context
    generate:    one call names places of the pool, best first

The second term takes away what makes a tag likely for everybody (short, common words); it holds nothing of a user, so its calls
are shared by all (RecGPT-V2, decision arbiter; the formula is ours, for models that cannot rank in words).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from recgpt_ops.agents.crew import Crew
from recgpt_ops.agents.rows import Context, IntentTag, PoolTag, Proposal
from recgpt_ops.agents.vocabulary import COSINE_DECIMALS
from recgpt_ops.errors import RowError
from recgpt_ops.ledger.asking import all_of, as_sampling
from recgpt_ops.llm.encoder import TextEncoder
from recgpt_ops.llm.languages import check_language
from recgpt_ops.llm.requests import Answer, Request
from recgpt_ops.llm.structured import check_text, compact_schema, parse_json_obj, parse_logprobs
from recgpt_ops.prompts import language_of

NO_CONTEXT = {"en": "No purchases known.", "zh": "没有已知的购买。"}
SCORE_DECIMALS = 6
MAX_REASON_CHARS = 120


async def arbitrate(context: Context, proposals: Sequence[Proposal], crew: Crew) -> tuple[IntentTag, ...]:
    """The final list, best first: `final_tag_count` tags, or the whole pool where it is smaller."""
    pool = make_pool(proposals, embedder=crew.embedder, near_duplicate_cosine=crew.recipe.near_duplicate_cosine)
    if not pool:
        raise RowError("nothing_proposed", "no expert had a tag to propose; the catalog has too few item types that were not just bought")
    count = min(crew.recipe.final_tag_count, len(pool))
    if crew.recipe.arbiter == "generate":
        return await pick_tags(context, pool, crew, count=count)
    scored = await all_of(score_tag(context, tag, crew) for tag in pool)
    ranked = sorted(zip(pool, scored, strict=True), key=lambda pair: (-pair[1][0], pair[0].tag_id))[:count]
    return tuple(IntentTag(rank, tag, score, None, call_id) for rank, (tag, (score, call_id)) in enumerate(ranked, start=1))


def make_pool(proposals: Sequence[Proposal], *, embedder: TextEncoder, near_duplicate_cosine: float) -> tuple[PoolTag, ...]:
    """Every distinct tag once, numbered from 1 in the order it was first proposed.

    Of equal tags, and of tags whose cosine is `near_duplicate_cosine` or more, the first stays and gets the others' personas:

    >>> # (1, "cheese"), (1, "milk"), (2, "cheeses"), (3, "milk")  ->  1. cheese by 1 and 2,  2. milk by 1 and 3
    """
    ordered = sorted(proposals, key=lambda proposal: (proposal.persona_index, proposal.proposal_index))
    firsts: dict[str, Proposal] = {}
    for proposal in ordered:
        firsts.setdefault(proposal.tag_id, proposal)
    distinct = list(firsts.values())
    if not distinct:
        return ()
    vectors = embedder.embed([proposal.tag for proposal in distinct]).astype(np.float64)
    same = np.round(vectors @ vectors.T, COSINE_DECIMALS) >= near_duplicate_cosine
    kept: list[int] = []
    stands_for: dict[str, int] = {}  # tag_id -> index of the tag that stays
    for index, proposal in enumerate(distinct):
        first = next((other for other in kept if same[other, index]), index)
        if first == index:
            kept.append(index)
        stands_for[proposal.tag_id] = first
    personas: dict[int, set[int]] = {index: set() for index in kept}
    for proposal in ordered:
        personas[stands_for[proposal.tag_id]].add(proposal.persona_index)
    return tuple(
        PoolTag(number, distinct[index].tag_id, distinct[index].tag, tuple(sorted(personas[index])))
        for number, index in enumerate(kept, start=1)
    )


async def score_tag(context: Context, tag: PoolTag, crew: Crew) -> tuple[float, str]:
    """How much likelier the context makes the tag, in nats a token, and the call that saw the context."""
    nothing = NO_CONTEXT.get(language_of(context.locale), NO_CONTEXT["en"])
    with_context, without = await all_of(
        (
            mean_logprob(tag.tag, crew, context.locale, role="arbiter", text=context.text, user_id=context.user_id),
            mean_logprob(tag.tag, crew, context.locale, role="arbiter_null", text=nothing, user_id=None),
        )
    )
    return round(with_context[0] - without[0], SCORE_DECIMALS), with_context[1]


async def mean_logprob(tag: str, crew: Crew, locale: str, *, role: str, text: str, user_id: str | None) -> tuple[float, str]:
    """Mean log-probability of the tag's tokens as the answer, and the call."""
    forced_ids = crew.tokenizer.encode_data(tag)

    def make(_refused: str) -> Request:  # the same again: nothing is written that a reason could mend
        sampling = as_sampling(crew.recipe.sampling.arbiter)
        request = crew.request(role, "arbiter_likelihood", locale, user_id=user_id, sampling=sampling, context=text)
        return replace(request, forced_ids=forced_ids)

    def parse(answer: Answer) -> float:
        logprobs = parse_logprobs(answer, forced_ids)
        return sum(logprobs) / len(logprobs)

    return await crew.ask(make, parse)


async def pick_tags(context: Context, pool: Sequence[PoolTag], crew: Crew, *, count: int) -> tuple[IntentTag, ...]:
    """`count` tags of the pool, named by number in one call; never free text, so nothing can be invented here."""

    def make(refused: str) -> Request:
        request = crew.request(
            "arbiter",
            "arbiter_generate",
            context.locale,
            user_id=context.user_id,
            sampling=as_sampling(crew.recipe.sampling.arbiter),
            context=context.text,
            pool=[tag.tag for tag in pool],
            pick_count=count,
            refused=refused,
        )
        return replace(request, json_schema=arbiter_schema(crew.recipe.final_tag_count))

    def parse(answer: Answer) -> list[tuple[int, str]]:
        picks = read_picks(answer, pool_size=len(pool), count=count)
        check_language((reason for _, reason in picks), context.locale, what="reasons", min_share=crew.recipe.language_min_share)
        return picks

    picks, call_id = await crew.ask(make, parse)
    return tuple(IntentTag(rank, pool[index - 1], None, reason, call_id) for rank, (index, reason) in enumerate(picks, start=1))


def arbiter_schema(final_tag_count: int) -> str:
    """The shape of the arbiter's answer; the same for every user, so that it is compiled once."""
    pick = {
        "type": "object",
        "properties": {
            "index": {"type": "integer", "minimum": 1},
            "reason": {"type": "string", "minLength": 1, "maxLength": MAX_REASON_CHARS},
        },
        "required": ["index", "reason"],
        "additionalProperties": False,
    }
    picks = {"type": "array", "items": pick, "minItems": 1, "maxItems": final_tag_count}
    return compact_schema({"type": "object", "properties": {"picks": picks}, "required": ["picks"], "additionalProperties": False})


def read_picks(answer: Answer, *, pool_size: int, count: int) -> list[tuple[int, str]]:
    """(number in the pool, reason) in the answer's order; numbers must be there, each once, `count` of them."""
    picks: Any = parse_json_obj(answer, what="arbiter", keys=("picks",))["picks"]
    if not isinstance(picks, list) or len(picks) != count:
        raise RowError("wrong_count", f"arbiter: expected {count} picks, got {len(picks) if isinstance(picks, list) else picks!r}")
    read = []
    for pick in picks:
        if not isinstance(pick, dict) or set(pick) != {"index", "reason"} or type(pick["index"]) is not int:
            raise RowError("wrong_shape", f"arbiter: a pick is {str(pick)[:80]!r}; expected index and reason")
        if not 1 <= pick["index"] <= pool_size:
            raise RowError("not_in_pool", f"arbiter: picked number {pick['index']}; the pool has 1 to {pool_size}")
        read.append((pick["index"], check_text(pick["reason"], what="reason", max_chars=MAX_REASON_CHARS)))
    if len({index for index, _ in read}) < len(read):
        raise RowError("duplicate", f"arbiter: picked a number twice: {[index for index, _ in read]}")
    return read
