"""One row of user_contexts from one user's entries: lines, signals, groups, text and its token counts. Plain Python.

Today: Tuesday, Oct 31, 2017
About the user - age: 45-54; household size: 2
Season: autumn
Holiday: Halloween (today)
History, newest first:
1. Oct 28, Aug 2017 (bought) | Soft drinks, 2 l, national brand; Milk, 1 gal, private brand
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from recgpt_ops.contexts.buckets import days_before
from recgpt_ops.contexts.lines import (
    Entry,
    Line,
    ShownLines,
    compress_entries,
    cut_lines,
    fact_of,
    fit_lines,
    head_text,
    line_text,
    without_last_item,
)
from recgpt_ops.contexts.words import HEAD_SEPARATOR, clean_text, date_words, words_of
from recgpt_ops.errors import RowError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Attribute = tuple[str, str]
GroupRow = dict[str, object]


class ContextShape(NamedTuple):
    """How large a context may be; from the recipe."""

    budget_tokens: int
    group_count: int
    types_per_group: int
    group_days: int
    recent_days: int


class UserHistory(NamedTuple):
    """What is known of one user as of a night. `unknown_item_count`: items without a text, which are not in `entries`.

    `zone` is the business time zone, in which a date is told.
    """

    user_id: str
    locale: str
    attributes: Sequence[Attribute]
    entries: Sequence[Entry]
    unknown_item_count: int
    zone: ZoneInfo


class TokenCounter:
    """Counts tokens and remembers short pieces, which the users of a night share: titles, times, numbers."""

    def __init__(self, count_batch: Callable[[Sequence[str]], list[int]], *, keep: int = 500_000) -> None:
        """`count_batch` is the tokenizer's; at most `keep` pieces are remembered."""
        self.count_batch, self.keep = count_batch, keep
        self.known: dict[str, int] = {}

    def learn(self, pieces: Sequence[str]) -> None:
        """Counts all pieces not yet known in one call."""
        if len(self.known) > self.keep:
            self.known.clear()
        missing = [piece for piece in dict.fromkeys(pieces) if piece not in self.known]
        if missing:
            self.known.update(zip(missing, self.count_batch(missing), strict=True))

    def __call__(self, piece: str) -> int:
        """Tokens of one piece."""
        known = self.known.get(piece)
        if known is None:
            known = self.known[piece] = self.count_batch([piece])[0]
        return known


class Draft(NamedTuple):
    """A context before its tokens are counted as a whole. `lines` are all lines, `shown` those that should fit."""

    user: UserHistory
    signals: Sequence[str]
    header: str
    lines: Sequence[Line]
    shown: ShownLines

    @property
    def text(self) -> str:
        """The whole text, as the planner reads it."""
        numbered = [f"{number}. {line_text(line, self.user.locale)}" for number, line in enumerate(self.shown.lines, start=1)]
        return "\n".join([self.header, *numbered])


def draft_context(user: UserHistory, signals: Sequence[str], *, serve_ds: str, shape: ContextShape, count: TokenCounter) -> Draft:
    """Header and the lines that fit beside it by the sum of their pieces; RowError when there is nothing to tell."""
    if not user.entries:
        raise RowError("no_history", f"no item or query of the user has a text ({user.unknown_item_count} items without)")
    header = header_text(user, signals, serve_ds)
    lines = compress_entries(user.entries)
    return Draft(
        user, signals, header, lines, fit_lines(lines, budget=shape.budget_tokens - count(header), locale=user.locale, count=count)
    )


def finish_context(draft: Draft, tokens: int, *, ds: str, shape: ContextShape, count: TokenCounter) -> dict[str, object]:
    """The columns of a row that depend on the user. `tokens` is the true count of the draft's text, which counts as a whole.

    A text that came out longer than the sum of its pieces loses its last items until it fits; RowError when no line does.
    """
    budget, user = shape.budget_tokens, draft.user
    while draft.shown.lines and tokens > budget:
        draft = draft._replace(shown=cut_lines(draft.lines, without_last_item(draft.shown.lines)))
        tokens = count.count_batch([draft.text])[0]
    shown = draft.shown
    if not shown.lines:
        detail = f"attributes and signals take {count(draft.header)} tokens and leave no room for a line; the budget is {budget} tokens"
        raise RowError("context_too_long", detail)
    return {
        "attributes": [{"name": name, "value": value} for name, value in user.attributes],
        "signals": list(draft.signals),
        "lines": [line_row(line_id, line, user.locale) for line_id, line in enumerate(shown.lines, start=1)],
        "text": draft.text,
        "context_tokens": tokens,
        "plain_tokens": plain_tokens(user.entries, user.locale, count),
        "budget_tokens": budget,
        "cut_line_count": shown.cut_line_count,
        "cut_item_count": shown.cut_item_count,
        "unknown_item_count": user.unknown_item_count,
        "groups": group_rows(user, shown.lines, ds=ds, shape=shape),
        "recent_item_types": recent_item_types(user, ds=ds, days=shape.recent_days),
    }


def header_text(user: UserHistory, signals: Sequence[str], serve_ds: str) -> str:
    """Everything above the lines. The date comes first, because lines tell days without a year."""
    words = words_of(user.locale)
    pairs = [words.pair.format(name=clean_text(name).replace("_", " "), value=clean_text(value)) for name, value in user.attributes]
    about = [words.attributes + words.attribute_separator.join(pairs)] if pairs else []
    return "\n".join([words.today.format(date=date_words(serve_ds, user.locale)), *about, *signals, words.history])


def line_row(line_id: int, line: Line, locale: str) -> dict[str, object]:
    """A line as a struct of the row."""
    return {
        "line_id": line_id,
        "text": line_text(line, locale),
        "facts": [{"table_name": fact.table_name, "bucket": fact.bucket, "action": fact.action} for fact in line.facts],
        "item_ids": [part.item_id for part in line.parts if part.item_id is not None],
        "queries": [part.query or "" for part in line.parts if part.item_id is None],
        "newest_at": EPOCH + timedelta(microseconds=line.newest_at),
    }


def plain_tokens(entries: Sequence[Entry], locale: str, count: TokenCounter) -> int:
    """Tokens if every entry stood on a line of its own: time, action, title. Pieces are counted apart, as in fit_lines."""
    total = 0
    for (bucket, action), number in Tally((entry.bucket, entry.action) for entry in entries).items():
        total += number * count(f"\n{head_text((fact_of(bucket, action),), locale)}{HEAD_SEPARATOR.rstrip()}")
    return total + sum(count(f" {entry.title}") for entry in entries)


def group_rows(user: UserHistory, lines: Sequence[Line], *, ds: str, shape: ContextShape) -> list[GroupRow]:
    """The groups a persona can be made of: item categories with most kept events of the last `group_days`, ties by name.

    Only groups that stand in a shown line, because a persona must cite lines. Without a category the item type is the group,
    without both the title. Days are exact; an entry of a month or year bucket counts whole when its newest event lies in the
    days, for a bucket keeps no single events.
    """
    line_ids = {part.item_id: line_id for line_id, line in enumerate(lines, start=1) for part in line.parts if part.item_id is not None}
    since = first_instant(days_before(ds, shape.group_days - 1), user.zone)
    events: Tally[str] = Tally()
    types: dict[str, Tally[str]] = defaultdict(Tally)
    cited: dict[str, set[int]] = defaultdict(set)
    for entry in user.entries:
        if entry.item_id is None:
            continue
        group = entry.category or entry.item_type or entry.title
        if entry.newest_at >= since:
            events[group] += entry.event_count
        if entry.item_id in line_ids:
            types[group][entry.item_type or entry.title] += entry.event_count
            cited[group].add(line_ids[entry.item_id])
    ranked = sorted((group for group in events if group in cited), key=lambda group: (-events[group], group))
    return [
        {
            "name": group,
            "event_count": events[group],
            "item_types": [
                {"name": name, "event_count": number}
                for name, number in sorted(types[group].items(), key=lambda item: (-item[1], item[0]))[: shape.types_per_group]
            ],
            "line_ids": sorted(cited[group]),
        }
        for group in ranked[: shape.group_count]
    ]


@lru_cache(maxsize=1_000)
def first_instant(ds: str, zone: ZoneInfo) -> int:
    """The first instant of a business date, in UTC microseconds."""
    return (datetime.fromisoformat(ds).replace(tzinfo=zone) - EPOCH) // timedelta(microseconds=1)


def recent_item_types(user: UserHistory, *, ds: str, days: int) -> list[str]:
    """Item types (without one, titles) bought in the last `days` days up to `ds`, sorted."""
    since = first_instant(days_before(ds, days - 1), user.zone)
    bought = (entry for entry in user.entries if entry.action == "purchase" and entry.newest_at >= since)
    return sorted({entry.item_type or entry.title for entry in bought})
