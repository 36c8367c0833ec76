"""V1's design as it was deployed before V2: isolated routes, each leaning on another part of the context, no planner and no arbiter.

    general    what the user does most         the user's biggest groups with their types
    trends     what sells more than usual      the trending types, and the groups the user looked at last
    season     season and next holiday         both in words, and the user's most frequent types
    weather    the weather                     the same; only where a connector told the weather

Every route reads the whole context again (RecGPT-V2, section 1, on V1 as deployed: "each route re-reads the history"), chooses among
the catalog types nearest to its own *line summary*, a few words that the program makes from the context, and knows nothing of the
others, so they repeat each other. Final list: first picks of all routes, then second picks, and so on; a repeated tag counts once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from recgpt_ops.agents.crew import Crew
from recgpt_ops.agents.rows import Context, Group, IntentTag, Persona, PoolTag, Proposal, Signal
from recgpt_ops.agents.vocabulary import closed_list
from recgpt_ops.errors import ConfigError, RowError
from recgpt_ops.ids import normalize_text, tag_id
from recgpt_ops.prompts import language_of

ROUTES = ("general", "trends", "season")
WEATHER = "weather"
SUMMARY_GROUPS = 3  # groups of the user that a summary names
SUMMARY_TYPES = 3  # types of each, in the general route
FOCUS = {
    "en": {
        "general": "What the shopper may want next, judging by everything they do",
        "trends": "What of that which sells more than usual the shopper may want",
        "season": "What the shopper may want for the season and the next holiday",
        "weather": "What the shopper may want in this weather",
    },
    "zh": {
        "general": "根据全部行为，这位顾客接下来可能想要什么",
        "trends": "近期热销的商品中，这位顾客可能想要什么",
        "season": "在这个季节和临近的节日，这位顾客可能想要什么",
        "weather": "在这样的天气里，这位顾客可能想要什么",
    },
}
MARKS = {"en": (": ", "; ", ", "), "zh": ("：", "；", "、")}  # between a name and its value, between pairs, between types


class Summary(NamedTuple):
    """What a route's list is looked up by, and where it comes from. `types`: the user's item types that it names."""

    texts: tuple[str, ...]
    types: tuple[str, ...]
    cues: tuple[Signal, ...]
    line_ids: tuple[int, ...]


def user_routes(context: Context, crew: Crew) -> tuple[Persona, ...]:
    """The routes of one user as rows of `intent_plans`; `call_id` is None, because no model named them."""
    language = language_of(context.locale) if language_of(context.locale) in FOCUS else "en"
    pair, join, _ = MARKS[language]
    signals = known_signals(context, crew)
    names = ROUTES[: crew.recipe.persona_count] + ((WEATHER,) if any(signal.kind == "weather" for signal in signals) else ())
    routes = []
    for index, name in enumerate(names, start=1):
        summary = summarize(name, context, signals, language=language)
        own = {normalize_text(type_) for type_ in summary.types}
        routes.append(
            Persona(
                persona_index=index,
                name=name,
                focus=FOCUS[language][name],
                user_summary=join.join(f"{key}{pair}{value}" for key, value in context.attributes),
                evidence=summary.texts,
                context_cues=tuple(signal.text for signal in summary.cues),
                avoid=tuple(type_ for type_ in context.recent_item_types if normalize_text(type_) in own),
                line_ids=summary.line_ids,
                evidence_by="program",
                call_id=None,
            )
        )
    return tuple(routes)


def known_signals(context: Context, crew: Crew) -> tuple[Signal, ...]:
    """The context's signal lines with their kinds, in their order."""
    signals = []
    for text in context.signals:
        signal = crew.signals.get((context.locale, text))
        if signal is None:
            raise RowError(
                "unknown_signal", f"the context says {text!r}, which environment_signals of this generation does not; run it again"
            )
        signals.append(signal)
    return tuple(signals)


def summarize(route: str, context: Context, signals: Sequence[Signal], *, language: str) -> Summary:
    """The route's line summary. A user without item groups is summarized by the first titles of the newest lines instead."""
    pair, _, comma = MARKS[language]
    by_count = context.groups[:SUMMARY_GROUPS]
    if route == "general":
        texts = tuple(f"{group.name}{pair}{comma.join(group.item_types[:SUMMARY_TYPES])}" for group in by_count)
        types = tuple(type_ for group in by_count for type_ in group.item_types[:SUMMARY_TYPES])
        return with_lines(context, Summary(texts, types, (), lines_of(by_count)))
    if route == "trends":
        newest = sorted(context.groups, key=lambda group: (min(group.line_ids), -group.event_count, group.name))[:SUMMARY_GROUPS]
        trends = tuple(signal for signal in signals if signal.kind == "trend")
        types = tuple(group.item_types[0] for group in newest)
        return with_lines(context, Summary((*(trend.name for trend in trends), *types), types, trends, lines_of(newest)))
    cues = around(route, signals)
    types = tuple(group.item_types[0] for group in by_count)
    return with_lines(context, Summary((*(cue.text for cue in cues), *types), types, cues, lines_of(by_count)))


def around(route: str, signals: Sequence[Signal]) -> tuple[Signal, ...]:
    """The signals that the route leans on: the weather, or the season and the next holiday (they stand nearest first)."""
    if route == WEATHER:
        return tuple(signal for signal in signals if signal.kind == "weather")
    seasons = tuple(signal for signal in signals if signal.kind == "season")
    return seasons + tuple(signal for signal in signals if signal.kind == "holiday")[:1]


def lines_of(groups: Sequence[Group]) -> tuple[int, ...]:
    """The context lines that the groups stand in."""
    return tuple(sorted({line_id for group in groups for line_id in group.line_ids}))


def with_lines(context: Context, summary: Summary) -> Summary:
    """The summary, with the newest lines' titles where the user has no groups."""
    if context.groups:
        return summary
    titles = tuple(title for _, title in context.line_titles)
    if not titles:
        raise RowError("nothing_to_go_by", "the context has no item group, and none of its lines shows an item or a query")
    return summary._replace(texts=summary.texts + titles, types=titles, line_ids=tuple(line_id for line_id, _ in context.line_titles))


async def follow(route: Persona, context: Context, crew: Crew) -> tuple[Proposal, ...]:
    """The route's tags in the order they were picked, one call a pick; fewer where its list is shorter."""
    if crew.vocabulary is None:
        raise ConfigError(f"infra/methods/{crew.recipe.name}.yaml", ["routes choose from a closed list; set vocabulary: closed"])
    options = closed_list(
        ", ".join(route.evidence),
        crew.vocabulary,
        embedder=crew.embedder,
        size=crew.recipe.closed_list_size,
        leave_out=context.recent_item_types,
        user_id=context.user_id,
        locale=context.locale,
    )
    picked: list[tuple[str, str]] = []
    while len(picked) < min(crew.recipe.tags_per_persona, len(options)):
        chosen = [tag for tag, _ in picked]
        picked.append(
            await crew.choose(
                "route",
                f"route_choice_{crew.recipe.route_prompt}",
                context.locale,
                user_id=context.user_id,
                options=tuple(option for option in options if option not in chosen),
                sampling=crew.recipe.sampling.expert,
                route=route.name,
                context=context.text,
                shown=options,
                chosen=chosen,
            )
        )
    return tuple(
        Proposal(route.persona_index, index, tag_id(context.locale, tag), tag, call_id)
        for index, (tag, call_id) in enumerate(picked, start=1)
    )


def merge_routes(proposals: Sequence[Proposal], *, count: int) -> tuple[IntentTag, ...]:
    """The final list: first picks in the routes' order, then second picks, at most `count` distinct tags.

    The pool is all distinct tags numbered in that order, so without an arbiter a tag's number is its rank. `call_id`: of the call
    that picked it first.

    >>> # general: milk, eggs   trends: eggs, candy   ->   1. milk by 1,  2. eggs by 1 and 2,  3. candy by 2
    """
    if not proposals:
        raise RowError("nothing_proposed", "no route had a tag to propose; the catalog has too few item types that were not just bought")
    firsts: dict[str, Proposal] = {}
    routes: dict[str, set[int]] = {}
    for proposal in sorted(proposals, key=lambda proposal: (proposal.proposal_index, proposal.persona_index)):
        firsts.setdefault(proposal.tag_id, proposal)
        routes.setdefault(proposal.tag_id, set()).add(proposal.persona_index)
    return tuple(
        IntentTag(rank, PoolTag(rank, first.tag_id, first.tag, tuple(sorted(routes[first.tag_id]))), None, None, first.call_id)
        for rank, first in enumerate(list(firsts.values())[:count], start=1)
    )
