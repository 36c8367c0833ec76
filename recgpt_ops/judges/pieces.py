"""What a judge reads, cut so that no prompt is longer than 250 tokens. The same rules for every method, so the same bytes.

    a user     attributes, signals, the 8 newest lines of the context: without their times where these do not fit, then cut with a mark
    a text     cut at a word, with a mark; the rubric is never cut

The cut depends on the row, the tokenizer and the budget alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recgpt_ops.contexts.words import HEAD_SEPARATOR, clean_text, words_of
from recgpt_ops.llm.tokenizer import PromptTokenizer

CUT = "…"
NEWEST_LINES = 8


def cut_text(text: str, limit: int, tokenizer: PromptTokenizer) -> str:
    """The text on one line in at most `limit` tokens; what is cut off leaves a mark, and words stay whole where there are any."""
    text = clean_text(text)
    ids = tokenizer.encode_data(text)
    if len(ids) <= limit:
        return text
    for kept in range(limit - 1, 0, -1):
        head = tokenizer.decode(ids[:kept]).rstrip("\ufffd")  # half a character has no text
        if " " in head[len(head) // 2 :]:
            head = head.rsplit(" ", 1)[0]
        shorter = head.rstrip(" ,;:|-") + CUT
        if tokenizer.count(shorter) <= limit:
            return shorter
    return CUT if tokenizer.count(CUT) <= limit else ""


def share_out(wanted: Sequence[int], total: int) -> list[int]:
    """How many tokens each part gets: short parts what they want, the long ones equal shares of the rest.

    >>> share_out([5, 40, 30], 45)
    [5, 20, 20]
    """
    given = [0] * len(wanted)
    left = total
    for place, index in enumerate(sorted(range(len(wanted)), key=lambda index: wanted[index])):
        given[index] = min(wanted[index], left // (len(wanted) - place))
        left -= given[index]
    return given


def cut_parts(parts: Sequence[str], total: int, tokenizer: PromptTokenizer) -> list[str]:
    """The parts, together at most `total` tokens; what gets no token at all is left out."""
    limits = share_out(tokenizer.count_batch([clean_text(part) for part in parts]), total)
    return [cut_text(part, limit, tokenizer) if limit else "" for part, limit in zip(parts, limits, strict=True)]


def user_text(row: Mapping[str, Any], total: int, tokenizer: PromptTokenizer) -> str:
    """A row of `user_contexts` as a judge reads it, in at most `total` tokens: a line for who, one for when, then the newest lines."""
    words = words_of(row["locale"])
    who = words.attribute_separator.join(words.pair.format(name=each["name"], value=each["value"]) for each in row["attributes"])
    when = words.attribute_separator.join(row["signals"])
    lines = [line["text"] for line in row["lines"][:NEWEST_LINES]]
    ends = 2 + len(lines)  # of the parts: a line end may cost a token
    room = total - ends
    head = cut_parts([who, when], min(room // 2, sum(tokenizer.count_batch([who, when]))), tokenizer)
    left = room - sum(tokenizer.count_batch(head))
    if sum(tokenizer.count_batch(lines)) > left:
        lines = [line.partition(HEAD_SEPARATOR)[2] or line for line in lines]
    return "\n".join(part for part in (*head, *cut_parts(lines, left, tokenizer)) if part)
