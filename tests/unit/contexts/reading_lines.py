"""Reads a line back as a person would, from its text alone: the twin of recgpt_ops.contexts.lines.line_text."""

from __future__ import annotations

import re

from recgpt_ops.contexts.words import MONTHS, words_of


def read_line(text: str, ds: str) -> tuple[set[tuple[str, str]], list[str]]:
    """((bucket, action) facts, titles) of an English line; a day without a year is the newest such day up to `ds`."""
    head, _, items = text.partition(" | ")
    actions = {word: action for action, word in words_of("en-US").actions.items()}
    facts = set()
    for times, named in re.findall(r"(?:^|, )((?:[^(]+?)) \(([^)]+)\)", head):
        for time in times.split(", "):
            facts |= {(bucket_of(time, ds), actions[word]) for word in named.split(", ")}
    return facts, items.split("; ")


def bucket_of(time: str, ds: str) -> str:
    """`Oct 28` -> 2017-10-28, `Aug 2017` -> 2017-08, `2015` -> 2015."""
    month, _, number = time.partition(" ")
    if not number:
        return month
    mm = f"{MONTHS.index(month) + 1:02d}"
    if len(number) == 4:
        return f"{number}-{mm}"
    year = int(ds[:4])
    day = f"{mm}-{int(number):02d}"
    return f"{year}-{day}" if f"{year}-{day}" <= ds else f"{year - 1}-{day}"
