"""Lists without a model: what a method must beat before anything is credited to it. Made from what the night knew, and nothing later.

own_repeats         what the user bought most often, then what everybody buys
most_bought_types   what everybody bought most in the 90 days up to ds
closed_list_order   the words that the experts choose from, taken in the order in which they are shown
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import duckdb

from recgpt_ops.agents.planner import describe_group
from recgpt_ops.agents.rows import Context
from recgpt_ops.agents.vocabulary import Vocabulary, closed_list, query_text
from recgpt_ops.contexts.buckets import days_before
from recgpt_ops.evaluation.feeds import word_of
from recgpt_ops.llm.encoder import TextEncoder
from recgpt_ops.recipes import Recipe

OWN_REPEATS, MOST_BOUGHT, CLOSED_LIST = "own_repeats", "most_bought_types", "closed_list_order"
ARMS = (CLOSED_LIST, MOST_BOUGHT, OWN_REPEATS)
POPULAR_DAYS = 90
KNOWN = "event_ds <= $ds AND arrived_ds <= $ds AND list_contains($actions, action) AND item_id IS NOT NULL"
OWN = f"SELECT user_id, item_id, count(*) FROM behavior_events WHERE {KNOWN} AND list_contains($users, user_id) GROUP BY ALL"
EVERYBODY = f"SELECT item_id, count(*) FROM behavior_events WHERE {KNOWN} AND event_ds > $since GROUP BY ALL"

Lists = dict[str, tuple[str, ...]]


def item_words(items: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Every item of a catalog as a tag."""
    return {item["item_id"]: word_of(item["item_type"], item["title"]) for item in items}


def most_first(counts: Mapping[str, int]) -> tuple[str, ...]:
    """The words by count, ties by name."""
    return tuple(sorted(counts, key=lambda word: (-counts[word], word)))


def count_words(rows: Iterable[tuple[str, int]], words: Mapping[str, str]) -> Counter[str]:
    """(item_id, count) as counts of words; an item without a text counts for nothing."""
    counts: Counter[str] = Counter()
    for item_id, count in rows:
        if item_id in words:
            counts[words[item_id]] += count
    return counts


def most_bought_types(
    connection: duckdb.DuckDBPyConnection, words: Mapping[str, str], *, ds: str, actions: Collection[str], size: int
) -> tuple[str, ...]:
    """The `size` words that all users together bought most in the last 90 days: the same list for everybody."""
    terms = {"ds": ds, "since": days_before(ds, POPULAR_DAYS), "actions": list(actions)}
    return most_first(count_words(connection.execute(EVERYBODY, terms).fetchall(), words))[:size]


def own_repeats(
    connection: duckdb.DuckDBPyConnection, words: Mapping[str, str], *, ds: str, actions: Collection[str], user_ids: Collection[str],
    fill: Sequence[str], size: int,
) -> Lists:  # fmt: skip
    """Per user what that user bought most often so far, filled up with `fill` where that is less than `size` words."""
    terms = {"ds": ds, "actions": list(actions), "users": list(user_ids)}
    bought: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for user_id, item_id, count in connection.execute(OWN, terms).fetchall():
        bought[user_id].append((item_id, count))
    return {user_id: tuple(dict.fromkeys([*most_first(count_words(bought[user_id], words)), *fill]))[:size] for user_id in sorted(user_ids)}


def closed_list_order(contexts: Iterable[Context], vocabulary: Vocabulary, embedder: TextEncoder, *, recipe: Recipe, size: int) -> Lists:
    """Per user the lists of the first `persona_count` groups, read from the top in turn: no model has chosen a group or a word.

    lists (a, b, c), (b, d)  ->  a, b, d, c
    """

    def shown(context: Context, place: int) -> tuple[str, ...]:
        persona = describe_group(context, context.groups[place], persona_index=place + 1, call_id="", days=recipe.group_days)
        return closed_list(
            query_text(persona),
            vocabulary,
            embedder=embedder,
            size=recipe.closed_list_size,
            leave_out=context.recent_item_types,
            user_id=context.user_id,
            locale=context.locale,
        )

    return {
        context.user_id: in_turn([shown(context, place) for place in range(min(recipe.persona_count, len(context.groups)))], size)
        for context in contexts
    }


def in_turn(lists: Sequence[Sequence[str]], size: int) -> tuple[str, ...]:
    """The first of each list, then the second of each; a word counts where it comes first.

    >>> in_turn([("a", "b", "c"), ("b", "d")], 3)
    ('a', 'b', 'd')
    """
    longest = max(map(len, lists), default=0)
    return tuple(dict.fromkeys(words[place] for place in range(longest) for words in lists if place < len(words)))[:size]
