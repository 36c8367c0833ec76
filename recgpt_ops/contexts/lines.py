"""V1's two-step compression and the cut to a token budget (RecGPT V1, section 2.3). Plain Python over one user's entries.

Step 1, done by the bucket tables:  (time bucket, action) -> items
Step 2, here, the other way round:  items that share exactly the same (bucket, action) facts form one line

    2017-10-28 purchase: apples, bread         Oct 28, Aug 2017 (bought) | apples
    2017-08    purchase: apples, soap    ->    Oct 28 (bought) | bread
                                               Aug 2017 (bought) | soap

Every (item, time, action) of the entries stands in exactly one line, so nothing is lost and nothing is told twice. Lines are
ordered by their newest event; where the budget is short the oldest are left out, and counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from recgpt_ops.contexts.buckets import BUCKET_CHARS
from recgpt_ops.contexts.words import HEAD_SEPARATOR, ITEM_SEPARATOR, bucket_words, words_of

ACTION_ORDER = ("purchase", "cart", "favorite", "review_read", "detail_view", "search", "coupon", "campaign")


class Entry(NamedTuple):
    """One item (or query) of one bucket row. `title` is what is shown; category and item_type are None where unknown.

    `newest_at` is its newest event in UTC microseconds, because only what is shown is worth a datetime.
    """

    bucket: str
    action: str
    item_id: str | None
    query: str | None
    title: str
    category: str | None
    item_type: str | None
    event_count: int
    newest_at: int


class Fact(NamedTuple):
    """Where an item stands: the row of this bucket and action."""

    bucket: str
    action: str

    @property
    def table_name(self) -> str:
        """The bucket table that holds the row."""
        return TABLE_OF_CHARS[len(self.bucket)]


class Part(NamedTuple):
    """One item (or query, `item_id` None) of a line."""

    item_id: str | None
    query: str | None
    title: str
    newest_at: int


class Line(NamedTuple):
    """Parts that share exactly these facts; facts and parts newest first."""

    facts: tuple[Fact, ...]
    parts: tuple[Part, ...]

    @property
    def newest_at(self) -> int:
        """The newest event of the line."""
        return self.parts[0].newest_at

    @property
    def titles(self) -> list[str]:
        """What the line shows; items with the same title show it once."""
        return list(dict.fromkeys(part.title for part in self.parts))


class ShownLines(NamedTuple):
    """What fits the budget, and what does not."""

    lines: list[Line]
    cut_line_count: int
    cut_item_count: int


Counter = Callable[[str], int]  # tokens of a text
PartKey = tuple[str | None, str | None]  # item_id, query: one of them is None
TABLE_OF_CHARS = {chars: table for table, chars in BUCKET_CHARS.items()}


def compress_entries(entries: Iterable[Entry]) -> list[Line]:
    """The lines of one user, newest first; the same for any order of the entries."""
    facts_of: dict[PartKey, list[Fact]] = {}
    newest_of: dict[PartKey, Entry] = {}
    for entry in entries:
        key = (entry.item_id, entry.query)
        if key in newest_of:
            facts_of[key].append(fact_of(entry.bucket, entry.action))
            if entry.newest_at > newest_of[key].newest_at:
                newest_of[key] = entry
        else:
            facts_of[key] = [fact_of(entry.bucket, entry.action)]
            newest_of[key] = entry
    parts_of: dict[tuple[Fact, ...], list[Part]] = defaultdict(list)
    for key, facts in facts_of.items():
        entry = newest_of[key]
        shared = ordered_facts(facts) if len(facts) > 1 else tuple(facts)
        parts_of[shared].append(Part(entry.item_id, entry.query, entry.title, entry.newest_at))
    lines = [Line(facts, tuple(sorted(parts, key=newest_part_first))) for facts, parts in parts_of.items()]
    return sorted(lines, key=lambda line: (*newest_part_first(line.parts[0]), line.facts))


@lru_cache(maxsize=10_000)
def fact_of(bucket: str, action: str) -> Fact:
    """One object per fact: a night has few of them and millions of entries."""
    return Fact(bucket, action)


def newest_part_first(part: Part) -> tuple[int, str, str, str]:
    """Sort key; ties by title, then by id."""
    return (-part.newest_at, part.title, part.item_id or "", part.query or "")


def ordered_facts(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Newest bucket first, actions of one bucket in their fixed order. Buckets never overlap, so their names sort by time."""
    by_action = sorted(set(facts), key=lambda fact: ACTION_ORDER.index(fact.action))
    return tuple(sorted(by_action, key=lambda fact: fact.bucket, reverse=True))


@lru_cache(maxsize=50_000)
def head_text(facts: tuple[Fact, ...], locale: str) -> str:
    """The times and actions of a line: `Oct 28 (bought, saved), Sep 30, Aug 2017 (bought)`.

    Times that follow each other and share their actions name them once, at the last of them: `Sep 30, Aug 2017 (bought)` is V1's
    `Sep 30 (bought), Aug 2017 (bought)` in fewer tokens.
    """
    actions = words_of(locale).actions
    by_bucket = groupby(facts, key=lambda fact: fact.bucket)
    times = [(bucket_words(bucket, locale), ", ".join(actions[fact.action] for fact in of_bucket)) for bucket, of_bucket in by_bucket]
    runs = groupby(times, key=lambda time: time[1])
    return ", ".join(f"{', '.join(time for time, _ in run)} ({named})" for named, run in runs)


def line_text(line: Line, locale: str) -> str:
    """A line as the planner reads it, without its number. Everything after the first ` | ` is items, joined by `; `."""
    return head_text(line.facts, locale) + HEAD_SEPARATOR + ITEM_SEPARATOR.join(line.titles)


def fit_lines(lines: Sequence[Line], *, budget: int, locale: str, count: Counter) -> ShownLines:
    """The newest lines that fit; the first that does not is split at its items, and all after it are left out.

    `count` is asked for pieces (a number, a head, an item with its separator), so that most answers are known from before.
    """
    shown: list[Line] = []
    left = budget
    separator = count(ITEM_SEPARATOR.rstrip())
    for number, line in enumerate(lines, start=1):
        left -= count(f"\n{number}. ") + count(head_text(line.facts, locale) + HEAD_SEPARATOR.rstrip())
        kept: list[Part] = []
        titles: set[str] = set()
        for part in line.parts:
            cost = 0 if part.title in titles else count(f" {part.title}") + (separator if titles else 0)
            if cost > left:
                break
            left -= cost
            titles.add(part.title)
            kept.append(part)
        if kept and left >= 0:
            shown.append(Line(line.facts, tuple(kept)))
        if len(kept) < len(line.parts):
            break
    return cut_lines(lines, shown)


def cut_lines(lines: Sequence[Line], shown: list[Line]) -> ShownLines:
    """Counts what `shown`, a beginning of `lines`, leaves out."""
    all_parts = sum(len(line.parts) for line in lines)
    return ShownLines(shown, len(lines) - len(shown), all_parts - sum(len(line.parts) for line in shown))


def without_last_item(lines: Sequence[Line]) -> list[Line]:
    """The lines without the very last title shown, for a text that came out longer than its pieces."""
    *before, last = lines
    dropped = last.titles[-1]
    parts = tuple(part for part in last.parts if part.title != dropped)
    return [*before, Line(last.facts, parts)] if parts else before
