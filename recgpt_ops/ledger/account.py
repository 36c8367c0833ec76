"""The token account of a stage: what was asked, what the prefix cache saved, what was wasted."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple


@dataclass
class TokenAccount:
    """Counts of one shard; `+` joins shards. Token counts are of calls made now, not of those read from the ledger.

    `cached_tokens` of `prompt_tokens` came from the prefix cache, `computed_tokens` did not; engines that do not say count as
    computed. `whitespace_waste_tokens` of `completion_tokens` were runs of white space (024). `seconds` sums the calls' own
    times, which overlap.
    """

    calls_made: int = 0
    calls_reused: int = 0
    calls_refused: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    computed_tokens: int = 0
    completion_tokens: int = 0
    whitespace_waste_tokens: int = 0
    seconds: float = 0.0

    def __add__(self, other: TokenAccount) -> TokenAccount:
        return TokenAccount(**{field.name: getattr(self, field.name) + getattr(other, field.name) for field in fields(self)})

    def as_dict(self) -> dict[str, float]:
        """All counts by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


class Prices(NamedTuple):
    """What an engine takes for a million tokens, in one currency (ISO 4217)."""

    per_million_prompt_tokens: float
    per_million_completion_tokens: float
    currency: str

    def of(self, prompt_tokens: float, completion_tokens: float) -> float:
        """The price of so many tokens.

        >>> Prices(2.0, 8.0, "USD").of(500_000, 125_000)
        2.0
        """
        return (prompt_tokens * self.per_million_prompt_tokens + completion_tokens * self.per_million_completion_tokens) / 1e6
