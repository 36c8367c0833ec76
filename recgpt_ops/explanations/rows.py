"""What the explanations' library reads and writes: an item's text, an explanation that is wanted, the rows of the two tables.

interest "Candy bars" x item "Candy bars (multi pack)" x situation "autumn, Halloween" x en-US   ->   one Wanted, one text,
however many users share it
"""

from __future__ import annotations

from typing import Any, NamedTuple

from recgpt_ops.ids import row_id

Row = dict[str, Any]
PART = "; "  # between the parts of an item's text


class ItemText(NamedTuple):
    """What is told of an item, cleaned: one line each. Empty parts are unknown; an item with an empty title is never explained."""

    text_hash: str
    title: str
    category: str = ""
    item_type: str = ""
    brand: str = ""

    @property
    def told(self) -> str:
        """The item as the writer and the judges read it: the title, then what the title does not say."""
        parts = [self.title]
        for part in (self.item_type, self.category, self.brand):
            if part and part.casefold() not in PART.join(parts).casefold():
                parts.append(part)
        return PART.join(parts)


class Wanted(NamedTuple):
    """One explanation to make. Nothing of a user is in it. `month_day` is the serving day as (month, day)."""

    explanation_id: str
    tag_id: str
    tag: str
    item: ItemText
    situation_id: str
    situation: str
    season: str | None
    holiday: str | None
    month_day: tuple[int, int]
    locale: str


class Written(NamedTuple):
    """A text with the calls that made it. `style` and its call are None where the recipe writes by a fixed template."""

    wanted: Wanted
    text: str
    call_id: str
    style: str | None = None
    style_call_id: str | None = None


def explanation_id(tag_id: str, text_hash: str, situation_id: str, locale: str) -> str:
    """The id of a text: who reads it plays no part."""
    return row_id((tag_id, text_hash, situation_id, locale))


def explanation_row(written: Written, *, ds: str, publish_id: str, scenario: str, method: str, writer_hash: str) -> Row:
    """A text as a row of `explanations`."""
    wanted = written.wanted
    return {
        "ds": ds, "publish_id": publish_id, "scenario": scenario, "method": method, "explanation_id": wanted.explanation_id,
        "tag_id": wanted.tag_id, "tag": wanted.tag, "text_hash": wanted.item.text_hash, "item_text": wanted.item.told,
        "situation_id": wanted.situation_id, "situation": wanted.situation, "locale": wanted.locale, "style": written.style,
        "style_call_id": written.style_call_id, "text": written.text, "call_id": written.call_id, "writer_hash": writer_hash,
    }  # fmt: skip
