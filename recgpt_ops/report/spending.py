"""Where the seconds and tokens of a night went: its stages as they ran, and its calls wherever they were made.

The two differ after a rebuild: its stages make no call, while the answers they read were paid for by an earlier attempt.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from recgpt_ops.progress import STAGES as ORDER
from recgpt_ops.report.reading import Row, Rows

TOKENS = ("prompt_tokens", "cached_tokens", "computed_tokens", "completion_tokens")


class Stage(NamedTuple):
    """One stage of an attempt that is shown. `tokens` are of calls made in it, None where it makes none."""

    attempt: int
    name: str
    state: str
    seconds: float
    counts_in: int
    counts_out: int
    quarantined: int
    calls_made: int
    calls_reused: int
    tokens: Mapping[str, int] | None
    engine_loads: int
    peak_memory_mb: float


def stages_of(found: Rows, *, attempts: Collection[int]) -> list[Stage]:
    """The stages of the shown attempts, in the order of the night."""
    shown = [row for row in found if row["attempt"] in attempts]
    return [stage(row) for row in sorted(shown, key=lambda row: (row["attempt"], place(row["stage"])))]


def place(name: str) -> int:
    """The stage's place in a night; unknown ones come last."""
    return ORDER.index(name) if name in ORDER else len(ORDER)


def stage(row: Row) -> Stage:
    """One stage as its record tells it."""
    detail: dict[str, Any] = json.loads(row["detail"])
    account = detail.get("account")
    return Stage(
        row["attempt"],
        row["stage"],
        row["state"],
        row["seconds"],
        row["counts_in"],
        row["counts_out"],
        row["quarantined_count"],
        row["calls_made"],
        row["calls_reused"],
        None if account is None else {name: int(account.get(name, 0)) for name in TOKENS},
        int(detail.get("engine_loads", 0)),
        row["peak_memory_mb"],
    )


def stage_sums(stages: list[Stage]) -> Stage:
    """All stages together; memory is the largest, because they run one after another."""
    tokens = {name: sum(stage.tokens[name] for stage in stages if stage.tokens is not None) for name in TOKENS}
    return Stage(
        max((stage.attempt for stage in stages), default=0),
        "all",
        "",
        sum(stage.seconds for stage in stages),
        0,
        0,
        sum(stage.quarantined for stage in stages),
        sum(stage.calls_made for stage in stages),
        sum(stage.calls_reused for stage in stages),
        tokens,
        sum(stage.engine_loads for stage in stages),
        max((stage.peak_memory_mb for stage in stages), default=0.0),
    )
