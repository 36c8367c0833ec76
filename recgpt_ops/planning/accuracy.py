"""How far a night's forecast was off, stored with the night and told by `recgpt status`.

forecast: intents 300 calls, 400 s        night: 330 calls, 380 s        ->  calls +0.10, seconds -0.05
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MEASURES = ("calls", "prompt_tokens", "completion_tokens", "seconds")
Numbers = Mapping[str, float]


def actual_numbers(row: Mapping[str, Any], detail: Mapping[str, Any]) -> dict[str, float]:
    """What a finished stage took, under the forecast's names."""
    account = detail.get("account", {})
    return {
        "calls": row["calls_made"],
        "prompt_tokens": account.get("prompt_tokens", 0),
        "completion_tokens": account.get("completion_tokens", 0),
        "seconds": row["seconds"],
    }


def forecast_error(forecast: Mapping[str, Numbers], actual: Mapping[str, Numbers]) -> dict[str, Any]:
    """Forecast, actual and error (actual / forecast - 1; None for a forecast of 0 that was wrong) of all stages that ended."""
    told: dict[str, Any] = {}
    for measure in MEASURES:
        planned = sum(forecast[stage][measure] for stage in forecast if stage in actual)
        taken = sum(actual[stage][measure] for stage in forecast if stage in actual)
        error = taken / planned - 1 if planned else (0.0 if not taken else None)
        told[measure] = {"forecast": round(planned, 1), "actual": round(taken, 1), "error": None if error is None else round(error, 3)}
    return told


def error_text(error: Mapping[str, Mapping[str, float | None]]) -> str:
    """`calls 300 foretold, 330 made (+10 %)`, one after the other."""
    return ", ".join(
        f"{name.replace('_', ' ')} {numbers['forecast']:,.0f} foretold, {numbers['actual']:,.0f} in fact"
        + (f" ({numbers['error']:+.0%})" if numbers["error"] is not None else "")
        for name, numbers in error.items()
    )
