"""The last step of a night: who failed is written down, and the pointer moves, one commit a method.

night_users of P: u1 computed, u2 computed, u3 carried        intent_tags of P: u1 only (u2 is in quarantine)
-> night_users of Q: u1 computed, u2 failed, u3 carried       publications: the pointer names Q; u1's rows are still made_by P
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import pyarrow as pa

from recgpt_ops.delta.generations import certificates, publish_arrow
from recgpt_ops.delta.pointer import move_pointer
from recgpt_ops.delta.reading import read_generation
from recgpt_ops.errors import NightError
from recgpt_ops.ids import publish_id_of, row_id
from recgpt_ops.nights import InputVersion, first_inputs
from recgpt_ops.runs import NightRun, StageCounts

RESULT_TABLE = "intent_tags"  # a computed user without a row here has failed


def publish_night(run: NightRun, counts: StageCounts) -> None:
    """Makes the generation of `run` visible for each of its methods."""
    audience = read_generation(run.warehouse, "night_users", ds=run.ds, publish_id=run.publish_id)
    failed = failed_users(run, audience)
    versions = {method: InputVersion(parts) for method, parts in first_inputs(run.warehouse, run.publish_id).items()}
    counts.counts_in = audience.num_rows
    counts.counts_out = audience.num_rows - sum(map(len, failed.values()))
    counts.detail["failed_users"] = {method: len(users) for method, users in failed.items()}
    counts.input_digest = row_id(version.digest for version in versions.values())
    shown = write_failed(run, audience, failed) if any(failed.values()) else run.publish_id
    counts.detail["shown_publish_id"] = shown
    for method in run.methods:
        point_at(run, method, shown, versions[method])


def failed_users(run: NightRun, audience: pa.Table) -> dict[str, set[str]]:
    """Per method: users that this generation should have computed and has no result of."""
    tags = read_generation(run.warehouse, RESULT_TABLE, ds=run.ds, publish_id=run.publish_id, columns=["method", "user_id"])
    has_result = {(row["method"], row["user_id"]) for row in tags.to_pylist()}
    failed: dict[str, set[str]] = {method: set() for method in run.methods}
    for row in audience.select(["method", "user_id", "status", "made_by"]).to_pylist():
        is_ours = row["status"] == "computed" and row["made_by"] == run.publish_id
        if is_ours and (row["method"], row["user_id"]) not in has_result:
            failed[row["method"]].add(row["user_id"])
    return failed


def write_failed(run: NightRun, audience: pa.Table, failed: Mapping[str, set[str]]) -> str:
    """The audience once more, as a generation of its own in which failed users say so; returns its publish_id."""
    second = publish_id_of(f"{run.publish_id}/failed")
    rows = [
        {**row, "publish_id": second, "status": "failed" if row["user_id"] in failed[row["method"]] else row["status"]}
        for row in audience.to_pylist()
    ]
    publish_arrow(
        run.warehouse,
        "night_users",
        pa.Table.from_pylist(rows, schema=audience.schema),
        publish_id=second,
        scopes=[run.ds],
        fence=run.attempt,
        input_digest=certificates_digest(run, [run.publish_id]),
        quarantined_count=sum(map(len, failed.values())),
    )
    return second


def point_at(run: NightRun, method: str, publish_id: str, version: InputVersion) -> None:
    """Moves one method's pointer; a newer attempt that has published already is a reason to fail, not to overwrite."""
    outcome = move_pointer(
        run.warehouse,
        ds=run.ds,
        scenario=run.scenario,
        method=method,
        fence=run.attempt,
        publish_id=publish_id,
        input_digest=version.digest,
        certificate_sha256=certificates_digest(run, sorted({run.publish_id, publish_id})),
        why=run.why,
        published_by=run.run_id,
    )
    if outcome == "fenced":
        raise NightError(
            f"publish_night, ds={run.ds}, method={method}: attempt {run.attempt} comes after a newer one, which readers go on seeing; "
            f"nothing to mend, `recgpt status --ds {run.ds}` shows both"
        )


def certificates_digest(run: NightRun, publish_ids: Sequence[str]) -> str:
    """One digest of everything that was checked when these generations landed: the tables, their keys and their rows."""
    digest = hashlib.sha256()
    found = [certificate for publish_id in publish_ids for certificate in certificates(run.warehouse, publish_id=publish_id)]
    for certificate in sorted(found, key=lambda one: (one.table_name, one.partition, one.publish_id)):
        digest.update(row_id((certificate.table_name, certificate.partition, certificate.key_digest, certificate.row_digest)).encode())
    return digest.hexdigest()
