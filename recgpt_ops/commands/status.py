"""`recgpt status`: which nights there are, and how far each is."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recgpt_ops.commands.options import FormatOption, WarehouseOption, checked_ds, existing_warehouse, settings_for
from recgpt_ops.commands.output import render_rows

if TYPE_CHECKING:
    from recgpt_ops.delta.warehouse import Warehouse

EXAMPLE = "Example: recgpt status --ds 2017-10-30"
NIGHT_COLUMNS = (
    "ds", "scenario", "method", "attempt", "state", "outcome", "visible", "publish_id", "stages_done", "seconds", "calls_made", "last_at",
)  # fmt: skip
STAGE_COLUMNS = (
    "attempt", "stage", "state", "outcome", "planned_seconds", "seconds", "counts_in", "counts_out", "quarantined_count", "planned_calls",
    "calls_made", "calls_reused", "peak_memory_mb", "publish_id", "recorded_at", "error",
)  # fmt: skip
STATES = ("running", "failed", "done")  # a later one settles an earlier one of the same stage and attempt


def status(
    ds: Annotated[str | None, typer.Option("--ds", metavar="DATE", help="One night, stage by stage.")] = None,
    form: FormatOption = "table",
    warehouse: WarehouseOption = None,
) -> None:
    """Shows the nights of the warehouse, one row an attempt and method; with --ds the stages of one night, and what readers see of it."""
    opened = existing_warehouse(settings_for(warehouse))
    ds = None if ds is None else checked_ds(ds)
    from recgpt_ops.delta.pointer import visible_publications
    from recgpt_ops.delta.records import read_rows

    records = read_rows(opened, "nights")
    columns: tuple[str, ...]
    if ds is None:
        rows, columns = night_rows(records, visible_publications(opened)), NIGHT_COLUMNS
    else:
        rows, columns = stage_rows(records, ds), STAGE_COLUMNS
    sys.stdout.write(render_rows(rows, columns, form=form))
    if ds is not None and form == "table":
        sys.stdout.write(forecast_errors(records, ds) + visible_results(opened, records, ds))
    if not rows and form == "table":
        what = "no night has run yet" if ds is None else f"no night of {ds} has run yet"
        sys.stdout.write(f"{what}; start one by `recgpt night --ds {ds or '2017-10-30'} --users 8`\n")


def settled(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """One record a stage and attempt: the state it reached. The same stage of the same attempt may have been retried."""
    last: dict[tuple[object, ...], Mapping[str, Any]] = {}
    for row in sorted(records, key=lambda row: (STATES.index(row["state"]), row["recorded_at"])):
        last[row["ds"], row["scenario"], row["stage"], row["attempt"]] = row
    return sorted(last.values(), key=lambda row: (row["ds"], row["scenario"], row["attempt"], row["recorded_at"]))


def night_rows(records: Sequence[Mapping[str, Any]], visible: Mapping[tuple[str, str, str], Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row an attempt and method, oldest first."""
    import json

    attempts: dict[tuple[str, str, int], list[Mapping[str, Any]]] = {}
    for row in settled(records):
        attempts.setdefault((row["ds"], row["scenario"], row["attempt"]), []).append(row)
    rows = []
    for (ds, scenario, attempt), stages in attempts.items():
        for method in json.loads(stages[0]["detail"])["methods"]:
            pointer = visible.get((ds, scenario, method))
            rows.append(
                {
                    "ds": ds,
                    "scenario": scenario,
                    "method": method,
                    "attempt": attempt,
                    "state": state_of(stages),
                    "outcome": outcome_of(stages),
                    "visible": pointer is not None and pointer["fence"] == attempt,
                    "publish_id": stages[0]["publish_id"],
                    "stages_done": sum(row["state"] == "done" for row in stages),
                    "seconds": sum(row["seconds"] for row in stages),
                    "calls_made": sum(row["calls_made"] for row in stages),
                    "last_at": stages[-1]["recorded_at"],
                }
            )
    return rows


def visible_results(warehouse: Warehouse, records: Sequence[Mapping[str, Any]], ds: str) -> str:
    """What the generations made that readers see of `ds`, each with its methods; empty where nothing is visible."""
    from recgpt_ops.commands.night_results import night_results, results_text
    from recgpt_ops.delta.pointer import visible_publications

    fences = {(scenario, method): row["fence"] for (day, scenario, method), row in visible_publications(warehouse).items() if day == ds}
    generations: dict[str, list[Mapping[str, Any]]] = {}
    for row in settled(records):
        if row["ds"] == ds and row["state"] == "done":
            generations.setdefault(row["publish_id"], []).append(row)
    told = ""
    for publish_id, stages in generations.items():
        scenario, attempt = stages[0]["scenario"], stages[0]["attempt"]
        results = night_results(warehouse, publish_id, stages)
        shown = {method for (place, method), fence in fences.items() if (place, fence) == (scenario, attempt)}
        seen = {name: [row for row in rows if row["method"] in shown] for name, rows in results.items()}
        if seen["methods"]:
            told += f"\nReaders of {scenario} see generation {publish_id}:\n{results_text(seen)}"
    return told


def state_of(stages: Sequence[Mapping[str, Any]]) -> str:
    """Failed if its last word was that, done once it was published, else running (or given up without a word)."""
    if stages[-1]["state"] == "failed":
        return "failed"
    return "done" if any(row["stage"] == "publish_night" and row["state"] == "done" for row in stages) else "running"


def outcome_of(stages: Sequence[Mapping[str, Any]]) -> str | None:
    """What came of an attempt: ok or degraded when it was published, failed when it was not; None while nothing is known."""
    import json

    if state_of(stages) == "failed":
        return "failed"
    told = [json.loads(row["detail"]).get("outcome") for row in stages if row["stage"] == "publish_night" and row["state"] == "done"]
    return told[0] if told else None


def stage_rows(records: Sequence[Mapping[str, Any]], ds: str) -> list[dict[str, Any]]:
    """One row a stage and attempt of one night; `error` is the one line of a failed stage, `planned_*` what the night's forecast said."""
    import json

    forecasts: dict[object, Mapping[str, Any]] = {}
    rows = []
    for row in settled(records):
        if row["ds"] != ds:
            continue
        detail = json.loads(row["detail"])
        forecasts.setdefault((row["scenario"], row["attempt"]), detail.get("forecast", {}))  # the first stage has it
        planned = forecasts[row["scenario"], row["attempt"]].get(row["stage"], {})
        told = {"planned_seconds": planned.get("seconds"), "planned_calls": planned.get("calls")}
        rows.append(
            {name: row.get(name) for name in STAGE_COLUMNS} | told | {"outcome": detail.get("outcome"), "error": detail.get("error")}
        )
    return rows


def forecast_errors(records: Sequence[Mapping[str, Any]], ds: str) -> str:
    """How far the forecast of each published attempt of a night was off, a line each."""
    import json

    from recgpt_ops.planning.accuracy import error_text

    details = [(row["attempt"], json.loads(row["detail"])) for row in settled(records) if row["ds"] == ds and row["state"] == "done"]
    return "".join(
        f"Forecast of attempt {attempt}: {error_text(detail['forecast_error'])}\n"
        for attempt, detail in details
        if "forecast_error" in detail
    )
