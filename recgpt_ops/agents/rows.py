"""What travels through the graph of one user: a context in, personas, proposals and ranked tags out.

    user_contexts row -> Context -> Persona (x persona_count) -> Proposal (x tags_per_persona) -> IntentTag (x final_tag_count)

The `*_row` functions write them as rows of their tables; a test compares their keys with the contracts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from recgpt_ops.ids import row_id, user_bucket

NEWEST_LINES = 3


class Group(NamedTuple):
    """One of the user's item groups: its most frequent types, most frequent first, and the context lines they stand in."""

    name: str
    event_count: int
    item_types: tuple[str, ...]
    line_ids: tuple[int, ...]


class Signal(NamedTuple):
    """One signal line of a context: kind is season, holiday, weather or trend; name the season, holiday, weather or item type."""

    kind: str
    name: str
    text: str


@dataclass(frozen=True)
class Context:
    """A row of `user_contexts`, as far as the agents need it. Only planner, arbiter and V1's routes are shown `text`.

    `line_titles` are the first titles of the newest lines that show an item or a query, with their line numbers.
    """

    ds: str
    scenario: str
    method: str
    user_id: str
    locale: str
    text: str
    line_ids: tuple[int, ...]
    attributes: tuple[tuple[str, str], ...]
    signals: tuple[str, ...]
    groups: tuple[Group, ...]
    recent_item_types: tuple[str, ...]
    line_titles: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Persona:
    """One point of view on the user. All that its expert sees, so it must stand by itself."""

    persona_index: int
    name: str
    focus: str
    user_summary: str
    evidence: tuple[str, ...]
    context_cues: tuple[str, ...]
    avoid: tuple[str, ...]
    line_ids: tuple[int, ...]
    evidence_by: str
    call_id: str | None


class Proposal(NamedTuple):
    """One tag that one expert proposes; `proposal_index` from 1 in the order it was named."""

    persona_index: int
    proposal_index: int
    tag_id: str
    tag: str
    call_id: str


class PoolTag(NamedTuple):
    """One tag of the arbiter's pool: `pool_index` from 1, and every persona that proposed it or a near duplicate of it."""

    pool_index: int
    tag_id: str
    tag: str
    persona_indexes: tuple[int, ...]


class IntentTag(NamedTuple):
    """One tag of the final list. `score` is None where the model named the order, `reason` None where it gave none."""

    rank: int
    pool_tag: PoolTag
    score: float | None
    reason: str | None
    call_id: str


class UserIntents(NamedTuple):
    """Everything the graph made for one user."""

    context: Context
    personas: tuple[Persona, ...]
    proposals: tuple[Proposal, ...]
    tags: tuple[IntentTag, ...]


def read_context(row: Mapping[str, Any]) -> Context:
    """A row of `user_contexts` as the agents take it."""
    return Context(
        ds=row["ds"],
        scenario=row["scenario"],
        method=row["method"],
        user_id=row["user_id"],
        locale=row["locale"],
        text=row["text"],
        line_ids=tuple(line["line_id"] for line in row["lines"]),
        attributes=tuple((attribute["name"], attribute["value"]) for attribute in row["attributes"]),
        signals=tuple(row["signals"]),
        groups=tuple(
            Group(group["name"], group["event_count"], tuple(kind["name"] for kind in group["item_types"]), tuple(group["line_ids"]))
            for group in row["groups"]
        ),
        recent_item_types=tuple(row["recent_item_types"]),
        line_titles=tuple(first_titles(row["lines"])),
    )


def first_titles(lines: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, str]]:
    """Number and first title of the NEWEST_LINES newest lines that show an item or a query, not only a coupon or mailing."""
    telling = (line for line in lines if line["item_ids"] or line["queries"])
    for line in islice(telling, NEWEST_LINES):
        yield line["line_id"], line["text"].partition(" | ")[2].split("; ")[0]  # all after the first bar is titles


def shared_columns(context: Context, publish_id: str) -> dict[str, Any]:
    """The columns that every row of a user carries."""
    return {
        "ds": context.ds,
        "publish_id": publish_id,
        "scenario": context.scenario,
        "method": context.method,
        "user_id": context.user_id,
        "user_bucket": user_bucket(context.user_id),
        "locale": context.locale,
    }


def plan_row(context: Context, persona: Persona, publish_id: str) -> dict[str, Any]:
    """A persona as a row of `intent_plans`."""
    return shared_columns(context, publish_id) | {
        "persona_index": persona.persona_index,
        "name": persona.name,
        "focus": persona.focus,
        "user_summary": persona.user_summary,
        "evidence": list(persona.evidence),
        "context_cues": list(persona.context_cues),
        "avoid": list(persona.avoid),
        "line_ids": list(persona.line_ids),
        "evidence_by": persona.evidence_by,
        "call_id": persona.call_id,
    }


def proposal_row(context: Context, proposal: Proposal, publish_id: str) -> dict[str, Any]:
    """A proposal as a row of `tag_proposals`."""
    return shared_columns(context, publish_id) | proposal._asdict()


def tag_row(context: Context, tag: IntentTag, publish_id: str) -> dict[str, Any]:
    """A final tag as a row of `intent_tags`."""
    key = (context.ds, context.scenario, context.method, context.user_id, tag.pool_tag.tag_id)
    return shared_columns(context, publish_id) | {
        "tag_id": tag.pool_tag.tag_id,
        "intent_tag_id": row_id(key),
        "tag": tag.pool_tag.tag,
        "rank": tag.rank,
        "score": tag.score,
        "persona_indexes": list(tag.pool_tag.persona_indexes),
        "pool_index": tag.pool_tag.pool_index,
        "reason": tag.reason,
        "call_id": tag.call_id,
    }
