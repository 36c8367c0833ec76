"""Live progress of a night: what runs, how far, how long still. Reads what the jobs write to `_progress/<publish_id>.jsonl`.

{"at": 1511.2, "stage": "user_contexts", "what": "users", "done": 120, "total": 500}
->  [6/9] user_contexts: users 120 of 500 · 0:42 gone · about 3:10 left
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TextIO

STAGES = (
    "night_users",
    "behavior_days",
    "behavior_months",
    "behavior_years",
    "environment_signals",
    "user_contexts",
    "intents",
    "candidate_items",
    "explanations",
    "tag_verdicts",
    "explanation_verdicts",
    "publish_night",
)
# Seconds of a stage before any night has run here: the demo (8 users, methods v1 and v2) on 2 cores. Later nights know their own.
DEFAULT_SECONDS = {
    "night_users": 10.0,
    "behavior_days": 15.0,
    "behavior_months": 20.0,
    "behavior_years": 10.0,
    "environment_signals": 10.0,
    "user_contexts": 40.0,
    "intents": 420.0,
    "candidate_items": 130.0,
    "explanations": 60.0,
    "tag_verdicts": 120.0,
    "explanation_verdicts": 60.0,
    "publish_night": 5.0,
}
PLAIN_SECONDS = 10.0  # between two lines where there is no terminal
LIVE_SECONDS = 0.5


class Step(NamedTuple):
    """One report of a job. `what` is the stage itself at its start (total None) and at its end (1 of 1), else what is counted."""

    at: float
    stage: str
    what: str
    done: int
    total: int | None


@dataclass
class NightProgress:
    """How far a night is, by its jobs' reports."""

    started: float
    seconds: Mapping[str, float] = field(default_factory=lambda: DEFAULT_SECONDS)  # expected, by stage
    ended: set[str] = field(default_factory=set)
    stage: str | None = None
    stage_started: float = 0.0
    step: Step | None = None
    what_started: Step | None = None  # first report of what is counted now, for its rate

    def add(self, steps: Iterable[Step]) -> None:
        """Takes new reports in, in order."""
        for step in steps:
            if step.stage != self.stage:
                self.stage, self.stage_started = step.stage, step.at
            if step.what == step.stage and step.total == 1 and step.done == 1:
                self.ended.add(step.stage)
            if self.what_started is None or (step.stage, step.total) != (self.what_started.stage, self.what_started.total):
                self.what_started = step  # the same stage counting towards the same total is one thing, whatever else its text tells
            self.step = step

    def seconds_left(self, now: float) -> float:
        """Expected rest of the running stage, by its own rate where it counts something, and of all stages after it."""
        waiting = [name for name in STAGES if name not in self.ended and name != self.stage]
        rest = sum(self.seconds.get(name, DEFAULT_SECONDS[name]) for name in waiting)
        if self.stage is None or self.stage in self.ended:
            return rest
        expected = self.seconds.get(self.stage, DEFAULT_SECONDS.get(self.stage, 0.0)) - (now - self.stage_started)
        return rest + max(self.by_rate(now) or expected, 0.0)

    def by_rate(self, now: float) -> float | None:
        """Seconds the counted thing still takes at its rate so far; None when nothing is counted yet."""
        first, last = self.what_started, self.step
        if first is None or last is None or last.total is None or last.what == last.stage or last.done <= first.done:
            return None
        rate = (last.done - first.done) / max(last.at - first.at, 0.001)
        return (last.total - last.done) / rate - (now - last.at)

    def line(self, now: float, *, before: str) -> str:
        """The one line that says it all; `before` is what runs as long as no stage does."""
        gone = f"{clock(now - self.started)} gone · about {clock(self.seconds_left(now))} left"
        if self.stage is None or self.step is None:
            return f"[0/{len(STAGES)}] {before} · {gone}"
        place = min(len(self.ended | {self.stage}), len(STAGES))
        return f"[{place}/{len(STAGES)}] {self.stage}{self.counted()} · {gone}"

    def counted(self) -> str:
        """`: users 120 of 500`, or nothing where nothing is counted."""
        if self.step is None or self.step.what == self.step.stage:
            return ""
        of = "" if self.step.total is None else f" of {self.step.total:,}"
        return f": {self.step.what} {self.step.done:,}{of}"


def clock(seconds: float) -> str:
    """Minutes and seconds.

    >>> clock(75.4)
    '1:15'
    """
    whole = max(int(seconds), 0)
    return f"{whole // 60}:{whole % 60:02d}"


def read_steps(path: Path, offset: int) -> tuple[list[Step], int]:
    """The reports after `offset` bytes, and the offset to go on from. A line that is still being written waits."""
    if not path.exists():
        return [], offset
    with path.open("rb") as file:
        file.seek(offset)
        data = file.read()
    whole = data[: data.rfind(b"\n") + 1]
    steps = [Step(told["at"], told["stage"], told["what"], told["done"], told["total"]) for told in map(json.loads, whole.splitlines())]
    return steps, offset + len(whole)


class ProgressLine:
    """Writes progress: on a terminal one line that changes in place, elsewhere a line every ten seconds and at each new stage."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = sys.stderr if stream is None else stream  # stdout is for the result
        self.is_live = self.stream.isatty()
        self.width = 0
        self.last_at, self.last_stage = 0.0, ""

    def show(self, line: str, *, stage: str) -> None:
        """Shows the line, if it is time to."""
        if self.is_live:
            line = line[: shutil.get_terminal_size().columns - 1]  # a longer one would wrap and could not be written over
            self.stream.write("\r" + line.ljust(self.width))
            self.width = len(line)
        elif stage != self.last_stage or time.monotonic() - self.last_at >= PLAIN_SECONDS:
            self.stream.write(line + "\n")
            self.last_at, self.last_stage = time.monotonic(), stage
        self.stream.flush()

    def close(self) -> None:
        """Leaves the last line as it is and goes to the next."""
        if self.is_live and self.width:
            self.stream.write("\n")
            self.stream.flush()
