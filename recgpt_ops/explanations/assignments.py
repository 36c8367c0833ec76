"""Which items are explained to a user: the best item of the first tag, of the second, and so on; then the second best of each.

    tags 1 candy, 2 cookies; candidates candy: a, b; cookies: a, c;  explained_item_count 3    ->    a (candy), c (cookies), b (candy)

Each item once, and each text once: two items that read the same would be explained twice in the same words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from recgpt_ops.explanations.rows import ItemText, Row, Wanted, explanation_id


class Tag(NamedTuple):
    """One of a user's tags with the ids of its candidate items, best first."""

    tag_id: str
    tag: str
    locale: str
    item_ids: tuple[str, ...]


class Surroundings(NamedTuple):
    """What `situation_id` is made of, in words: nothing of a user. `holiday` by its English name, None where there is none."""

    words: str
    season: str | None
    holiday: str | None
    month_day: tuple[int, int]


class Reader(NamedTuple):
    """A user as far as explanations need one; `tags` in order of rank."""

    user_id: str
    user_bucket: int
    situation_id: str
    surroundings: Surroundings
    tags: tuple[Tag, ...]


class Assignment(NamedTuple):
    """One item of a user and the explanation it is shown with."""

    user_id: str
    user_bucket: int
    item_id: str
    rank: int
    wanted: Wanted


@dataclass
class Assigned:
    """The assignments of some users. `without_text` counts candidates that were passed over because their title is empty or unknown."""

    assignments: list[Assignment] = field(default_factory=list)
    without_text: int = 0


def assign(readers: Sequence[Reader], items: Mapping[str, ItemText], *, count: int) -> Assigned:
    """Up to `count` items of each user. `items`: item_id -> its text as of ds."""
    assigned = Assigned()
    for reader in readers:
        now = reader.surroundings
        for rank, (tag, item_id, item) in enumerate(islice(turns(reader, items, assigned), count), start=1):
            id_ = explanation_id(tag.tag_id, item.text_hash, reader.situation_id, tag.locale)
            wanted = Wanted(
                id_, tag.tag_id, tag.tag, item, reader.situation_id, now.words, now.season, now.holiday, now.month_day, tag.locale
            )
            assigned.assignments.append(Assignment(reader.user_id, reader.user_bucket, item_id, rank, wanted))
    return assigned


def turns(reader: Reader, items: Mapping[str, ItemText], assigned: Assigned) -> Iterator[tuple[Tag, str, ItemText]]:
    """A user's items in the order they are explained, tags in turn; a tag that has run out is passed over."""
    ways = [iter(tag.item_ids) for tag in reader.tags]
    seen_items: set[str] = set()
    seen_texts: set[str] = set()
    open_ways = list(range(len(ways)))
    while open_ways:
        for place in tuple(open_ways):
            for item_id in ways[place]:
                item = items.get(item_id)
                if item is None or not item.title:
                    assigned.without_text += 1
                elif item_id not in seen_items and item.text_hash not in seen_texts:
                    seen_items.add(item_id)
                    seen_texts.add(item.text_hash)
                    yield reader.tags[place], item_id, item
                    break
            else:
                open_ways.remove(place)


def assignment_row(
    assignment: Assignment, *, ds: str, publish_id: str, scenario: str, method: str, made_by: str | None, status: str
) -> Row:
    """An assignment as a row of `explanation_assignments`; `made_by` None where no text came."""
    wanted = assignment.wanted
    return {
        "ds": ds, "publish_id": publish_id, "scenario": scenario, "method": method, "user_id": assignment.user_id,
        "user_bucket": assignment.user_bucket, "locale": wanted.locale, "item_id": assignment.item_id, "tag_id": wanted.tag_id,
        "text_hash": wanted.item.text_hash, "situation_id": wanted.situation_id, "rank": assignment.rank,
        "explanation_id": wanted.explanation_id, "explanation_made_by": made_by, "status": status,
    }  # fmt: skip
