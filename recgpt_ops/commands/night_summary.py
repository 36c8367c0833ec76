"""What is shown after a night: each stage's figures, what each method made, quarantine, the tags of each user, where to look next."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow.compute as pc

from recgpt_ops.commands.night_results import night_results, results_text
from recgpt_ops.commands.night_run import NightResult
from recgpt_ops.commands.options import Format
from recgpt_ops.commands.output import plain, render_rows
from recgpt_ops.delta.records import read_rows
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.planning.budget import Planned, spent_text
from recgpt_ops.progress import STAGES, clock

STAGE_COLUMNS = (
    "stage", "seconds", "rows_in", "rows_out", "quarantined", "calls_made", "calls_reused", "submitted_tokens", "computed_tokens",
    "written_tokens", "job_peak_mb", "all_peak_mb",
)  # fmt: skip
TOKENS = ("prompt_tokens", "cached_tokens", "computed_tokens", "completion_tokens", "whitespace_waste_tokens")
SHOWN_USERS = 20


def write_summary(warehouse: Warehouse, result: NightResult, ds: str, *, budget: Mapping[str, Planned], form: Format, option: str) -> None:
    """Writes the summary of a night: for people, or as one JSON object; csv holds the stages. `option` names the warehouse."""
    stages = [{**row, "all_peak_mb": result.peak_mb.get(row["stage"])} for row in done_stages(warehouse, result.publish_id)]
    tags = tags_by_user(warehouse, result.publish_id)
    tokens, loads = token_account(stages), engine_loads(stages)
    quarantined = quarantine_reasons(warehouse, ds, stages)
    results = night_results(warehouse, result.publish_id, stages)
    if form == "csv":
        sys.stdout.write(render_rows([figures(row) for row in stages], STAGE_COLUMNS, form="csv"))
    elif form == "json":
        told = {
            "ds": ds, "publish_id": result.publish_id, "stages": [figures(row) for row in stages], "tokens": tokens, "engine_loads": loads,
            "quarantined": quarantined, "planned": {stage: planned._asdict() for stage, planned in budget.items()}, **results, "tags": tags,
        }  # fmt: skip
        sys.stdout.write(json.dumps(plain(told), ensure_ascii=False, indent=1) + "\n")
    else:
        text = summary_text(
            warehouse, ds, stages, tags, tokens=tokens, loads=loads, quarantined=quarantined, results=results, budget=budget, option=option
        )
        sys.stdout.write(text)


def done_stages(warehouse: Warehouse, publish_id: str) -> list[dict[str, Any]]:
    """The `done` row of each stage of one generation, in the order of the night."""
    rows = read_rows(warehouse, "nights", where=(pc.field("publish_id") == publish_id) & (pc.field("state") == "done"))
    return sorted(rows, key=lambda row: STAGES.index(row["stage"]) if row["stage"] in STAGES else len(STAGES))


def figures(row: Mapping[str, Any]) -> dict[str, Any]:
    """A stage's row under the names people read; no tokens where no call was made."""
    account = json.loads(row["detail"]).get("account", {})
    return {
        "stage": row["stage"],
        "seconds": round(row["seconds"], 1),
        "rows_in": row["counts_in"],
        "rows_out": row["counts_out"],
        "quarantined": row["quarantined_count"],
        "calls_made": row["calls_made"],
        "calls_reused": row["calls_reused"],
        "submitted_tokens": account.get("prompt_tokens"),
        "computed_tokens": account.get("computed_tokens"),
        "written_tokens": account.get("completion_tokens"),
        "job_peak_mb": round(row["peak_memory_mb"]),
        "all_peak_mb": None if row["all_peak_mb"] is None else round(row["all_peak_mb"]),
    }


def token_account(stages: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Tokens of all stages, by kind; from the account that each stage with calls puts into its detail."""
    total: Counter[str] = Counter()
    for row in stages:
        account = json.loads(row["detail"]).get("account", {})
        total.update({name: int(account.get(name, 0)) for name in TOKENS})
    return {name: total[name] for name in TOKENS}


def engine_loads(stages: Sequence[Mapping[str, Any]]) -> int:
    """How many times an engine was loaded for this night; once a model, unless one died."""
    return sum(int(json.loads(row["detail"]).get("engine_loads", 0)) for row in stages)


def quarantine_reasons(warehouse: Warehouse, ds: str, stages: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Rows of this attempt in quarantine, by table and reason."""
    if not stages:
        return {}
    where = (pc.field("ds") == ds) & (pc.field("attempt") == stages[0]["attempt"])
    return dict(Counter(f"{row['table_name']}: {row['reason']}" for row in read_rows(warehouse, "quarantine", where=where)))


def degraded_lines(stages: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line when the night is degraded: published, but with more failures than is well. Nothing when it is not."""
    for row in stages:
        detail = json.loads(row["detail"])
        if row["stage"] == "publish_night" and detail.get("outcome") == "degraded":
            told = ", ".join(f"{stage} ({of})" for stage, of in detail["degraded_stages"].items())
            carried = sum(detail["carried_users"].values())
            shown = f" {carried} users show an older result meanwhile." if carried else ""
            return [
                f"DEGRADED: published, though more failed than quarantine.stage_degraded_ratio: {told}.{shown} See `recgpt quarantine`."
            ]
    return []


def tags_by_user(warehouse: Warehouse, publish_id: str) -> list[dict[str, Any]]:
    """Method, user and the user's tags of this generation, by rank."""
    rows: list[dict[str, Any]] = read_rows(
        warehouse, "intent_tags", columns=["method", "user_id", "rank", "tag"], where=pc.field("publish_id") == publish_id
    )
    tags: dict[tuple[str, str], list[str]] = {}
    for row in sorted(rows, key=lambda row: (row["method"], row["user_id"], row["rank"])):
        tags.setdefault((row["method"], row["user_id"]), []).append(row["tag"])
    return [{"method": method, "user_id": user_id, "tags": ranked} for (method, user_id), ranked in tags.items()]


def summary_text(
    warehouse: Warehouse,
    ds: str,
    stages: Sequence[Mapping[str, Any]],
    tags: Sequence[Mapping[str, Any]],
    *,
    tokens: Mapping[str, int],
    loads: int,
    quarantined: Mapping[str, int],
    results: Mapping[str, Sequence[Mapping[str, Any]]],
    budget: Mapping[str, Planned],
    option: str,
) -> str:
    """The summary for people."""
    shown = [{**row, "tags": ", ".join(row["tags"])} for row in tags[:SHOWN_USERS]]
    more = f"... and {len(tags) - SHOWN_USERS} more users\n" if len(tags) > SHOWN_USERS else ""
    held_back = ", ".join(f"{name} {count}" for name, count in quarantined.items()) or "nothing"
    seconds = clock(sum(row["seconds"] for row in stages))
    peak = max((row["all_peak_mb"] or row["peak_memory_mb"] for row in stages), default=0.0)
    waste = f", {tokens['whitespace_waste_tokens']:,} of them white space" if tokens["whitespace_waste_tokens"] else ""
    return "\n".join(
        [
            render_rows([figures(row) for row in stages], STAGE_COLUMNS, form="table"),
            f"Stages took {seconds} together and at most {peak:,.0f} MB of memory, all processes counted. Engine loads: {loads}.",
            f"Quarantined: {held_back}.",
            *degraded_lines(stages),
            f"Tokens: {tokens['prompt_tokens']:,} submitted, {tokens['cached_tokens']:,} of them from the prefix cache, "
            f"{tokens['computed_tokens']:,} computed; {tokens['completion_tokens']:,} written{waste}.",
            spent_text(
                budget,
                calls_made=sum(row["calls_made"] for row in stages),
                calls_reused=sum(row["calls_reused"] for row in stages),
                prompt_tokens=tokens["prompt_tokens"],
            ),
            "",
            results_text(results),
            render_rows(shown, ("method", "user_id", "tags"), form="table") + more,
            f"The tables are in {warehouse.root}, one folder each. Next:",
            f"  recgpt report --ds {ds}{option}     the night as a page: every user, tag, explanation and verdict",
            f"  recgpt query \"select method, user_id, rank, tag from intent_tags where ds = '{ds}' order by 1, 2, 3\"{option}",
            f"  recgpt query \"select user_id, text from user_contexts where ds = '{ds}' limit 1\"{option}     what the model read",
            f"  recgpt status --ds {ds}{option}",
            "  make airflow     the same DAGs in Airflow's pages",
            "",
        ]
    )
