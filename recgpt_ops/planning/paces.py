"""How nights of the same recipes and model went: how much of the budget they asked for, tokens a call, seconds a call.

nights: intents by v1 and v2, 330 calls of at most 504, 150,000 prompt tokens, 400 s
->  intents: 0.65 of the budget, 455 prompt tokens a call, 1.2 s a call, "attempt 2 of 2017-10-30"

Where no such night is on record, the numbers are a guess that says so: of the demo on two cores.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from recgpt_ops.delta.records import read_rows
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.judges.rules import judge_settings
from recgpt_ops.planning.budget import Planned, night_budget
from recgpt_ops.progress import DEFAULT_SECONDS, STAGES
from recgpt_ops.runs import FIRST_STAGE
from recgpt_ops.settings import Settings

CALL_STAGES = ("intents", "explanations", "tag_verdicts", "explanation_verdicts")
JUDGE_STAGES = ("tag_verdicts", "explanation_verdicts")
# Of the demo (8 users, v1 and v2) with the small model on 2 cores; taken where nothing is on record.
GUESSED_SECONDS_PER_CALL = {"intents": 1.3, "explanations": 1.0, "tag_verdicts": 0.4, "explanation_verdicts": 0.4}
GUESSED_COMPLETION_TOKENS = 4.0  # of a choice or a label; a recipe that writes freely takes more
GUESSED_FIXED_SECONDS = 15.0  # of a stage that has nothing to ask: start, read, publish
GUESS = "guess: demo on 2 cores"
Row = Mapping[str, Any]


class Pace(NamedTuple):
    """What one stage takes. `share` is the part of the budget that is asked in fact; `basis` says where the numbers come from."""

    share: float
    prompt_tokens: float  # a call
    completion_tokens: float  # a call
    seconds: float  # a call made; waiting for others included, so this is the stage's, not the call's own
    fixed_seconds: float  # without any call
    basis: str


def stage_paces(warehouse: Warehouse, settings: Settings, methods: Sequence[str]) -> dict[str, Pace]:
    """The pace of every stage of a night."""
    rows = read_rows(warehouse, "nights")
    nights = [night for night in recorded_nights(rows) if set(night[FIRST_STAGE]["methods"]) & set(methods)]
    nights.sort(key=lambda night: set(night[FIRST_STAGE]["methods"]) == set(methods))  # stable: the newest of the same methods is last
    return {stage: stage_pace(stage, nights, settings) for stage in STAGES}


def recorded_nights(rows: Sequence[Row]) -> list[dict[str, dict[str, Any]]]:
    """Every generation's finished stages (stage -> its row, the detail unpacked), oldest first; those without an audience are left out."""
    nights: dict[str, dict[str, dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: row["recorded_at"]):
        if row["state"] == "done":
            nights.setdefault(row["publish_id"], {})[row["stage"]] = {**row, **json.loads(row["detail"])}
    return [night for night in nights.values() if FIRST_STAGE in night]


def stage_pace(stage: str, nights: Sequence[Mapping[str, Row]], settings: Settings) -> Pace:
    """The newest night's own numbers; what it cannot tell (it made no call) the newest one that can."""
    done = [night for night in nights if stage in night]
    if stage not in CALL_STAGES:
        if not done:
            return Pace(0.0, 0.0, 0.0, 0.0, DEFAULT_SECONDS[stage], GUESS)
        return Pace(0.0, 0.0, 0.0, 0.0, float(done[-1][stage]["seconds"]), told_night(done[-1]))
    model = (judge_settings(settings) if stage in JUDGE_STAGES else settings).engine.model
    done = [night for night in done if night[stage].get("engine", {}).get("model") == model]
    asked = [night for night in done if night[stage]["calls_made"]]
    idle = [night[stage]["seconds"] for night in done if not night[stage]["calls_made"]]
    fixed = float(idle[-1]) if idle else GUESSED_FIXED_SECONDS
    if not asked:
        planned = night_budget(settings, {"v2": 1}).get(stage, Planned(0, 0))
        return Pace(
            1.0, planned.prompt_tokens / max(planned.calls, 1), GUESSED_COMPLETION_TOKENS, GUESSED_SECONDS_PER_CALL[stage], fixed, GUESS
        )
    row = asked[-1][stage]
    made, account = row["calls_made"], row["account"]
    return Pace(
        share_of_budget(asked[-1], stage, settings),
        account["prompt_tokens"] / made,
        account["completion_tokens"] / made,
        max(row["seconds"] - fixed, 0.0) / made,
        fixed,
        told_night(asked[-1]),
    )


def share_of_budget(night: Mapping[str, Row], stage: str, settings: Settings) -> float:
    """Calls that the night needed, of the most that its recipes allow for so many users."""
    first = night[FIRST_STAGE]
    users = first.get("users_by_status", {}).get("computed", 0) / len(first["methods"])
    most = night_budget(settings, dict.fromkeys(first["methods"], round(users)))[stage].calls
    return (night[stage]["calls_made"] + night[stage]["calls_reused"]) / most if most else 1.0


def told_night(night: Mapping[str, Row]) -> str:
    """`attempt 2 of 2017-10-30`."""
    return f"attempt {night[FIRST_STAGE]['attempt']} of {night[FIRST_STAGE]['ds']}"
