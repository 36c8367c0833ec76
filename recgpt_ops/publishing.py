"""The last step of a night: who failed is written down, and the pointer moves, one commit a method.

night_users of P: u1 computed, u2 computed, u3 carried        intent_tags of P: u1 only (u2 is in quarantine)
-> night_users of Q: u1 computed, u2 failed, u3 carried       publications: the pointer names Q; u1's rows are still made_by P

A user who failed and whom an older visible night shows is carried instead: made_by and computed_ds are that night's, up to
`quarantine.carry_max_days` back, and reason `retry` says that the user is due again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from recgpt_ops.contexts.reasons import RETRY
from recgpt_ops.delta.certificates import certificates, contents_digest, generation_digest
from recgpt_ops.delta.generations import publish_arrow
from recgpt_ops.delta.pointer import move_pointer, visible_publications
from recgpt_ops.delta.reading import read_generation, read_rows
from recgpt_ops.errors import NightError
from recgpt_ops.ids import publish_id_of, row_id
from recgpt_ops.ledger.summaries import is_degraded
from recgpt_ops.nights import InputVersion, first_inputs
from recgpt_ops.planning.accuracy import actual_numbers, forecast_error
from recgpt_ops.runs import FIRST_STAGE, NightRun, StageCounts

RESULT_TABLE = "intent_tags"  # a computed user without a row here has failed
Row = Mapping[str, Any]


def publish_night(run: NightRun, counts: StageCounts) -> None:
    """Makes the generation of `run` visible for each of its methods."""
    audience = read_generation(run.warehouse, "night_users", ds=run.ds, publish_id=run.publish_id)
    failed = failed_users(run, audience)
    carried = {method: older_results(run, method, users) for method, users in failed.items()}
    without = {method: users - carried[method].keys() for method, users in failed.items()}
    versions = {method: InputVersion(parts) for method, parts in first_inputs(run.warehouse, run.publish_id).items()}
    counts.counts_in = audience.num_rows
    counts.counts_out = audience.num_rows - sum(map(len, without.values()))
    counts.detail |= {
        "failed_users": {method: len(users) for method, users in without.items()},
        "carried_users": {method: len(rows) for method, rows in carried.items()},
        **night_outcome(run, audience, failed),
    }
    counts.input_digest = row_id(version.digest for version in versions.values())
    shown = write_failed(run, audience, failed, carried) if any(failed.values()) else run.publish_id
    counts.detail["shown_publish_id"] = shown
    for method in run.methods:
        point_at(run, method, shown, versions[method])


def failed_users(run: NightRun, audience: pa.Table) -> dict[str, set[str]]:
    """Per method: users that this generation should have computed and has no result of."""
    tags = read_generation(run.warehouse, RESULT_TABLE, ds=run.ds, publish_id=run.publish_id, columns=["method", "user_id"])
    has_result = {(row["method"], row["user_id"]) for row in tags.to_pylist()}
    failed: dict[str, set[str]] = {method: set() for method in run.methods}
    for row in own_rows(run, audience).select(["method", "user_id"]).to_pylist():
        if (row["method"], row["user_id"]) not in has_result:
            failed[row["method"]].add(row["user_id"])
    return failed


def own_rows(run: NightRun, audience: pa.Table) -> pa.Table:
    """The users whom this generation computes itself."""
    return audience.filter((pc.field("status") == "computed") & (pc.field("made_by") == run.publish_id))


def older_results(run: NightRun, method: str, users: set[str]) -> dict[str, Row]:
    """By user the row of the newest visible night that shows a result which is young enough; users without one are left out.

    The day's own visible generation comes first: a rebuild that fails takes nothing away.
    """
    first = (date.fromisoformat(run.ds) - timedelta(days=run.settings.quarantine.carry_max_days)).isoformat()
    nights = {
        ds: str(row["publish_id"])
        for (ds, scenario, name), row in visible_publications(run.warehouse).items()
        if (scenario, name) == (run.scenario, method) and first <= ds <= run.ds
    }
    found: dict[str, Row] = {}
    for ds in sorted(nights, reverse=True):
        if users <= found.keys():
            break
        where = pc.field("user_id").isin(sorted(users - found.keys())) & pc.field("status").isin(["computed", "carried"])
        shown = read_generation(run.warehouse, "night_users", ds=ds, publish_id=nights[ds], scenario=run.scenario, methods=[method])
        found |= {row["user_id"]: row for row in shown.filter(where & (pc.field("computed_ds") >= first)).to_pylist()}
    return found


def night_outcome(run: NightRun, audience: pa.Table, failed: Mapping[str, set[str]]) -> dict[str, Any]:
    """Whether the night is ok or degraded, each degraded stage with how many of its inputs failed, and how far its forecast was off.

    A failed stage never gets this far.
    """
    where = (pc.field("publish_id") == run.publish_id) & (pc.field("state") == "done")
    rows = {str(row["stage"]): row for row in read_rows(run.warehouse, "nights", where=where)}
    stages = {stage: json.loads(str(row["detail"])) for stage, row in rows.items()}
    degraded = {
        stage: f"{detail['inputs_failed']} of {detail['inputs']}" for stage, detail in stages.items() if detail.get("outcome") == "degraded"
    }
    missing, tried = sum(map(len, failed.values())), own_rows(run, audience).num_rows
    if is_degraded(missing, tried, degraded_ratio=run.settings.quarantine.stage_degraded_ratio):
        degraded[run.stage] = f"{missing} of {tried}"
    forecast = stages.get(FIRST_STAGE, {}).get("forecast", {})  # nights from before there were forecasts have none
    error = forecast_error(forecast, {stage: actual_numbers(row, stages[stage]) for stage, row in rows.items()})
    return {"outcome": "degraded" if degraded else "ok", "degraded_stages": degraded} | ({"forecast_error": error} if forecast else {})


def write_failed(run: NightRun, audience: pa.Table, failed: Mapping[str, set[str]], carried: Mapping[str, Mapping[str, Row]]) -> str:
    """The audience once more, as a generation of its own in which failed users say so or are carried; returns its publish_id."""
    second = publish_id_of(f"{run.publish_id}/failed")
    rows = [{**settled_row(row, failed[row["method"]], carried[row["method"]]), "publish_id": second} for row in audience.to_pylist()]
    publish_arrow(
        run.warehouse,
        "night_users",
        pa.Table.from_pylist(rows, schema=audience.schema),
        publish_id=second,
        scopes=[run.ds],
        fence=run.attempt,
        input_digest=contents_digest(certificates(run.warehouse, publish_id=run.publish_id)),
        quarantined_count=sum(map(len, failed.values())),
    )
    return second


def settled_row(row: Row, failed: set[str], carried: Mapping[str, Row]) -> dict[str, Any]:
    """A row of night_users now that it is known who failed; those of others stay as they are."""
    if row["user_id"] not in failed:
        return dict(row)
    older = carried.get(row["user_id"])
    if older is None:
        return {**row, "status": "failed"}
    return {**row, "status": "carried", "reason": RETRY, "made_by": older["made_by"], "computed_ds": older["computed_ds"]}


def point_at(run: NightRun, method: str, publish_id: str, version: InputVersion) -> None:
    """Moves one method's pointer; a newer attempt that has published already is a reason to fail, not to overwrite."""
    shown = [one for part in sorted({run.publish_id, publish_id}) for one in certificates(run.warehouse, publish_id=part)]
    outcome = move_pointer(
        run.warehouse,
        ds=run.ds,
        scenario=run.scenario,
        method=method,
        fence=run.attempt,
        publish_id=publish_id,
        input_digest=version.digest,
        certificate_sha256=generation_digest(shown),
        why=run.why,
        published_by=run.run_id,
    )
    if outcome == "fenced":
        raise NightError(
            f"publish_night, ds={run.ds}, method={method}: attempt {run.attempt} comes after a newer one, which readers go on seeing; "
            f"nothing to mend, `recgpt status --ds {run.ds}` shows both"
        )
