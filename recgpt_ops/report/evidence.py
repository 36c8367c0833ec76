"""What a tag rests on: the lines of the context that its personas named, and by whom; nothing is made up.

cited by the model    the model chose the line for the persona that proposed the tag
set by the program    the program chose it, because the persona's items stand there
in context            nobody named it, but it holds items of the tag's own type
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from recgpt_ops.contexts.words import clean_text, short_title
from recgpt_ops.ids import normalize_text
from recgpt_ops.report.reading import Row

NAMED = {"model": "cited by the model", "program": "set by the program"}
IN_CONTEXT = "in context"


class Evidence(NamedTuple):
    """One line that a tag rests on. `how` are the words for who named it; `personas` named it, none where it is only in context."""

    line_id: int
    how: tuple[str, ...]
    personas: tuple[str, ...]


def type_of(item: Row | None) -> str | None:
    """An item's type as the vocabulary spells it, normalized: its type, or its short title where it has none; None: unknown item."""
    if item is None:
        return None
    kind = clean_text(item["item_type"] or "") or short_title(item["title"])
    return normalize_text(kind) or None


def evidence_of(tag: Row, *, plans: Sequence[Row], lines: Sequence[Row], items: Mapping[str, Row]) -> list[Evidence]:
    """The lines behind one tag, in the order of the context. A line that two personas named has both their words."""
    proposers = [plan for plan in plans if plan["persona_index"] in set(tag["persona_indexes"])]
    kind = normalize_text(tag["tag"])
    found = []
    for line in lines:
        naming = [plan for plan in proposers if line["line_id"] in plan["line_ids"]]
        if naming:
            how = tuple(dict.fromkeys(NAMED[plan["evidence_by"]] for plan in naming))
            found.append(Evidence(line["line_id"], how, tuple(plan["name"] for plan in naming)))
        elif any(type_of(items.get(item_id)) == kind for item_id in line["item_ids"]):
            found.append(Evidence(line["line_id"], (IN_CONTEXT,), ()))
    return found


def telling_types(tag: Row, plans: Sequence[Row]) -> set[str]:
    """The item types that speak for a tag: its own, and those its personas name as evidence, normalized."""
    words = [word for plan in plans if plan["persona_index"] in set(tag["persona_indexes"]) for word in plan["evidence"]]
    return {normalize_text(word) for word in (tag["tag"], *words)}
