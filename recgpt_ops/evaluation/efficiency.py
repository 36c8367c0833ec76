"""What a night cost, user by user, from llm_calls: calls, tokens and seconds of the answers that the visible rows rest on.

Prompt tokens computed (submitted minus read from the prefix cache) are what a model has to work for: the headline. A call that a
later attempt read from the ledger counts once, under the attempt that made it. A call without a user (its answer is shared) is
divided among the users of the night.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import duckdb

from recgpt_ops.evaluation.feeds import fetch_rows
from recgpt_ops.evaluation.nights import SHOWN

# What is paid for -> the stages that pay, and the calls that visible rows of these stages name.
STAGES: dict[str, tuple[str, ...]] = {
    "intents": ("intents",),
    "explanations": ("explanations",),
    "judging": ("tag_verdicts", "explanation_verdicts"),
}
CITED: dict[str, str] = {
    "intents": "SELECT call_id FROM intent_plans WHERE {shown} UNION SELECT call_id FROM tag_proposals WHERE {shown} "
    "UNION SELECT call_id FROM intent_tags WHERE {shown}",
    "explanations": "SELECT call_id FROM explanations WHERE {shown} UNION SELECT style_call_id FROM explanations WHERE {shown}",
    "judging": "SELECT unnest(levels).call_id FROM tag_verdicts WHERE {shown} "
    "UNION SELECT unnest(levels).call_id FROM explanation_verdicts WHERE {shown}",
}
CALLS = """
WITH cited (call_id) AS ({cited}),
mine AS (SELECT * FROM llm_calls WHERE {shown} AND list_contains($stages, stage))
SELECT call_id, attempt, user_id, prompt_id, model, model_hash, prompt_tokens, cached_tokens, completion_tokens, seconds, called_at
FROM mine WHERE attempt IN (SELECT attempt FROM mine SEMI JOIN cited USING (call_id))
QUALIFY row_number() OVER (PARTITION BY call_id ORDER BY attempt) = 1
ORDER BY call_id
"""
UNITS = {
    "prompt_tokens_computed": "tokens",
    "prompt_tokens_submitted": "tokens",
    "prompt_tokens_cached": "tokens",
    "completion_tokens": "tokens",
    "calls": "calls",
    "call_seconds": "seconds",
}


class Costs(NamedTuple):
    """What one part of a method's night cost. `by_user`: measure -> a value per user asked for, in their order.

    `is_shared`: no call was made for one user alone, so that users do not differ. `busy_seconds`: time in which at least one call of
    the method was open, per user of the night.
    """

    by_user: Mapping[str, Sequence[float]]
    is_shared: bool
    busy_seconds: float
    call_count: int


def read_calls(connection: duckdb.DuckDBPyConnection, part: str, *, ds: str, scenario: str, method: str) -> list[dict[str, Any]]:
    """The calls of one part of a visible night: all those of the attempts whose answers stand in visible rows, refused ones too."""
    terms = {"ds": ds, "scenario": scenario, "method": method, "stages": list(STAGES[part])}
    return fetch_rows(connection, CALLS.format(cited=CITED[part].format(shown=SHOWN), shown=SHOWN), terms)


def sum_costs(calls: Sequence[Mapping[str, Any]], *, user_ids: Sequence[str], night_user_count: int) -> Costs:
    """The calls as costs per user. What an engine does not say to have cached counts as computed.

    two users, 100 tokens for u1, 40 shared  ->  u1 120, u2 20
    """
    totals = {user_id: dict.fromkeys(UNITS, 0.0) for user_id in user_ids}
    shared = dict.fromkeys(UNITS, 0.0)
    for call in calls:
        into = shared if call["user_id"] is None else totals.get(call["user_id"])
        if into is not None:
            for measure, value in measures(call).items():
                into[measure] += value
    by_user = {
        measure: [totals[user_id][measure] + shared[measure] / max(1, night_user_count) for user_id in user_ids] for measure in UNITS
    }
    is_shared = all(call["user_id"] is None for call in calls)
    return Costs(by_user, is_shared, busy_seconds(calls) / max(1, night_user_count), len(calls))


def measures(call: Mapping[str, Any]) -> dict[str, float]:
    """What one call adds to each measure."""
    cached = call["cached_tokens"] or 0
    return {
        "prompt_tokens_computed": call["prompt_tokens"] - cached,
        "prompt_tokens_submitted": call["prompt_tokens"],
        "prompt_tokens_cached": cached,
        "completion_tokens": call["completion_tokens"],
        "calls": 1,
        "call_seconds": call["seconds"],
    }


def busy_seconds(calls: Iterable[Mapping[str, Any]]) -> float:
    """Seconds in which at least one of the calls was open, each from `called_at` minus `seconds` to `called_at`.

    0 to 5 and 3 to 6 and 10 to 11  ->  7
    """
    spans = sorted((call["called_at"].timestamp() - call["seconds"], call["called_at"].timestamp()) for call in calls)
    busy, until = 0.0, float("-inf")
    for start, end in spans:
        busy += max(0.0, end - max(start, until))
        until = max(until, end)
    return busy
