"""What of a night's answers is on record and still fits, looked up before anything runs.

A recorded answer is asked by its fingerprint, which nobody knows before the prompt is made. What is known: for whom it was made, in
which role, from which template, by which model. A role whose template changed is asked again, and so is every role that reads it:

expert prompt changed by a word      planner's answers are reused; experts' and arbiter's are asked for again (014)
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from recgpt_ops.ledger.segments import ShardIndex
from recgpt_ops.nights import ROOMS

EVERYBODY = "0000-1023"
PLACES = {"planner": 0, "route": 0, "expert": 1, "arbiter": 2, "arbiter_null": 2, "style": 0, "writer": 1, "judge_reviewer": 1}  # else 0


@dataclass
class Reuse:
    """Answers of one method and stage that fit, by user (None: shared), and the roles whose templates changed since they were made."""

    answers: Counter[str | None] = field(default_factory=Counter)
    roles: Counter[str] = field(default_factory=Counter)
    changed_roles: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.answers.values())


class Recorded(NamedTuple):
    """What counts here of a recorded call."""

    role: str
    prompt_id: str
    user_id: str | None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Recorded:
        """Of its row in `llm_calls`."""
        return cls(row["role"], row["prompt_id"], row["user_id"])


@cache
def template_ids(room: str) -> frozenset[str]:
    """Ids of the templates that a room has now."""
    return frozenset(hashlib.sha256(path.read_bytes()).hexdigest() for path in (ROOMS / room / "prompts").glob("*.jinja"))


def find_reuse(ledger_root: Path, *, ds: str, method: str, stage: str, model: str, templates: frozenset[str]) -> Reuse:
    """Reads the stage's segments once; `model` is the one that would answer now."""
    index = ShardIndex(ledger_root / ds / method / stage, EVERYBODY)
    try:
        payloads = (index.get(call_id) for call_id in index.calls())
        rows = [Recorded.of(payload["row"]) for payload in payloads if payload is not None and payload["row"]["model"] == model]
    finally:
        index.close()
    known = {role: [row for row in rows if row.role == role] for role in {row.role for row in rows}}
    fitting = {role: [row for row in some if row.prompt_id in templates] for role, some in known.items()}
    changed = sorted(role for role in known if not fitting[role])
    first = min((PLACES.get(role, 0) for role in changed), default=len(PLACES))
    found = Reuse(changed_roles=tuple(sorted(changed, key=lambda role: PLACES.get(role, 0))))
    for role, some in fitting.items():
        if role not in changed and PLACES.get(role, 0) <= first:
            found.roles[role] = len(some)
            found.answers.update(row.user_id for row in some)
    return found
