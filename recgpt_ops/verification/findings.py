"""What a verification finds: differences, each in one line, and what cannot be told either way.

    intent_tags, ds=2017-10-30, generation p1: expected 48 rows, got 47; restore ... or make the night again ...

A difference is a fault. Something that is not verifiable is none, and never counts as right: a ledger that is older than its retention,
a certificate from before something was recorded.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

MOST_LINES = 20  # of one check of one partition; what is more is counted in one line
PROGRESS_SECONDS = 5.0


class Difference(NamedTuple):
    """Something that is not as it was recorded. `where` names table, partition, generation, and key or file."""

    where: str
    expected: str
    got: str
    next_step: str

    @property
    def line(self) -> str:
        """The difference in one plain line."""
        return f"{self.where}: expected {self.expected}, got {self.got}; {self.next_step}"


@dataclass
class Findings:
    """Collects what is found; `say` is told each difference at once, `tell` how far a long scan is."""

    say: Callable[[str], None] = lambda line: None
    tell: Callable[[str], None] = lambda line: None
    differences: list[Difference] = field(default_factory=list)
    not_verifiable: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    told_at: float = field(default_factory=time.monotonic)

    def differ(self, where: str, *, expected: str, got: str, next_step: str) -> None:
        """Takes one difference."""
        self.differences.append(Difference(where, expected, got, next_step))
        self.say(self.differences[-1].line)

    def differ_each(self, keys: Sequence[str], count: int, *, where: str, expected: str, got: str, next_step: str) -> None:
        """One line a key for the first MOST_LINES, and one for all the others of `count`."""
        for key in keys[:MOST_LINES]:
            self.differ(f"{where}, {key}", expected=expected, got=got, next_step=next_step)
        if count > len(keys[:MOST_LINES]):
            self.differ(f"{where}, {count - len(keys[:MOST_LINES])} more keys", expected=expected, got=got, next_step=next_step)

    def cannot(self, line: str) -> None:
        """Takes something that is not verifiable."""
        self.not_verifiable.append(line)
        self.say(f"not verifiable: {line}")

    def progress(self, what: str, done: int, total: int, *, unit: str = "rows") -> None:
        """Tells how far a scan is, at most every few seconds."""
        if time.monotonic() - self.told_at >= PROGRESS_SECONDS:
            self.told_at = time.monotonic()
            self.tell(f"{what}: {done:,} of {total:,} {unit}")

    @property
    def summary(self) -> str:
        """The closing line."""
        looked = ", ".join(f"{count:,} {what}" for what, count in self.counts.items())
        return f"verify: {looked}: {len(self.differences):,} differences, {len(self.not_verifiable):,} not verifiable"
