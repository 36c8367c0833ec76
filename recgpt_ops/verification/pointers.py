"""The pointer and its chain, and the certificates themselves: what each row says of itself, of the row before and of what it shows."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence

from recgpt_ops.delta.certificates import (
    Certificate,
    Place,
    certificate_sha256,
    generation_digest,
    input_certificates,
    keys_digest,
    place_of,
    stage_of,
)
from recgpt_ops.delta.pointer import app_id, publication_sha256
from recgpt_ops.delta.reading import read_rows
from recgpt_ops.nights import FIRST_STAGE, InputVersion
from recgpt_ops.tables import all_contracts
from recgpt_ops.verification.findings import Findings
from recgpt_ops.verification.scope import Row, Scope, origins
from recgpt_ops.verification.tables import Tables

MOVE = "publications is append-only: restore it from a backup, or publish the night anew by recgpt night --ds {ds} --rebuild"
KEPT = "certificates is append-only: restore it from a backup"


def check_publications(findings: Findings, tables: Tables, scope: Scope) -> None:
    """Every row of `publications` in scope: its own digest, that of the row before, the certificates, the inputs, the fence."""
    chains: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in scope.publications:
        chains[str(row["ds"]), str(row["scenario"]), str(row["method"])].append(row)
    for (ds, scenario, method), rows in sorted(chains.items()):
        rows.sort(key=lambda row: int(str(row["fence"])))
        before: Row | None = None
        for row in rows:
            check_row(findings, scope, row, before)
            before = row
        newest = rows[-1]
        if newest["row_sha256"] is None:
            findings.cannot(f"{told(newest)}: the newest row is from before rows held a digest of themselves")
        marker = tables.warehouse.open("publications").transaction_version(app_id("publish", ds=ds, scenario=scenario, method=method))
        if marker != newest["fence"]:
            findings.differ(
                told(newest), expected=f"the row of fence {marker}, which was committed last", got=f"fence {newest['fence']}",
                next_step=MOVE.format(ds=ds),
            )  # fmt: skip
    check_moves(findings, scope)
    findings.counts["publications"] += len(scope.publications)


def told(row: Row) -> str:
    """How a row of `publications` is named."""
    return f"publications, ds={row['ds']}, scenario={row['scenario']}, method={row['method']}, fence {row['fence']}"


def check_row(findings: Findings, scope: Scope, row: Row, before: Row | None) -> None:
    """One row of the chain."""
    where, step = told(row), MOVE.format(ds=row["ds"])
    if row["row_sha256"] is not None and row["row_sha256"] != (own := publication_sha256(row)):
        findings.differ(where, expected=f"a row of digest {str(row['row_sha256'])[:12]}", got=own[:12], next_step=step)
    previous = None if before is None else publication_sha256(before)
    if row["previous_sha256"] != previous:
        expected = "no row before it" if row["previous_sha256"] is None else f"a row before it of digest {str(row['previous_sha256'])[:12]}"
        findings.differ(where, expected=expected, got="none" if previous is None else previous[:12], next_step=step)
    shown = set(origins(scope.nights, row))
    found = [one for one in scope.every if one.publish_id in shown]
    if not any(place_of(one) == Place("night_users", str(row["ds"]), str(row["publish_id"])) for one in found):
        findings.differ(
            where, expected=f"a generation {row['publish_id']} of night_users", got="none that was certified", next_step=step
        )  # fmt: skip
    elif (digest := generation_digest(found)) != row["certificate_sha256"]:
        findings.differ(
            where, expected=f"certificates of digest {str(row['certificate_sha256'])[:12]}", got=digest[:12], next_step=step
        )  # fmt: skip
    inputs = recorded_inputs(scope, shown, str(row["method"]))
    if inputs is not None and inputs != row["input_digest"]:
        findings.differ(
            where, expected=f"inputs {inputs[:12]}, as `nights` recorded them", got=str(row["input_digest"])[:12], next_step=step
        )  # fmt: skip


def recorded_inputs(scope: Scope, publish_ids: set[str], method: str) -> str | None:
    """Digest of the inputs that the first stage of a run recorded; None when it recorded none."""
    for row in scope.nights:
        if row["publish_id"] in publish_ids and (row["stage"], row["state"]) == (FIRST_STAGE, "done"):
            parts = json.loads(str(row["detail"])).get("inputs", {}).get(method)
            return None if parts is None else InputVersion(parts).digest
    return None


def check_moves(findings: Findings, scope: Scope) -> None:
    """What `nights` says was published stands in `publications`."""
    rows = {(row["ds"], row["scenario"], row["method"], row["fence"]): row["publish_id"] for row in scope.publications}
    for night in scope.nights:
        if (night["stage"], night["state"]) != ("publish_night", "done"):
            continue
        detail = json.loads(str(night["detail"]))
        for method in detail.get("methods", []):
            found = rows.get((night["ds"], night["scenario"], method, night["attempt"]))
            expected = detail.get("shown_publish_id", night["publish_id"])
            if found != expected:
                findings.differ(
                    f"publications, ds={night['ds']}, scenario={night['scenario']}, method={method}, fence {night['attempt']}",
                    expected=f"generation {expected}, as `nights` says", got=f"{found or 'no row'}", next_step=MOVE.format(ds=night["ds"]),
                )  # fmt: skip


def check_certificates(findings: Findings, tables: Tables, scope: Scope) -> None:
    """What each certificate says of itself and of what it was made from, and that every finished stage has one."""
    generations: dict[str, list[Certificate]] = defaultdict(list)
    for one in scope.every:
        generations[one.publish_id].append(one)
    ids = {Place(str(row["table_name"]), str(row["partition"]), str(row["publish_id"])): row["certificate_id"] for row in read_rows(
        tables.warehouse, "certificates", columns=["certificate_id", "table_name", "partition", "publish_id"])}  # fmt: skip
    old = 0
    for one in scope.certificates:
        where = f"certificates, {place_of(one)}"
        if ids[place_of(one)] != one.certificate_id:
            findings.differ(where, expected=f"certificate_id {one.certificate_id[:12]}", got=str(ids[place_of(one)])[:12], next_step=KEPT)
        if one.certificate_sha256 is None:
            old += 1
            continue
        if (own := certificate_sha256(one)) != one.certificate_sha256:
            findings.differ(where, expected=f"a row of digest {one.certificate_sha256[:12]}", got=own[:12], next_step=KEPT)
        check_inputs(findings, one, generations[one.publish_id])
    if old:
        findings.cannot(
            f"certificates: {old} rows are from before a certificate had a digest of its own; what they say of rows is verified, "
            "what they say of inputs, calls and volatile columns is not"
        )
    check_stages(findings, scope, generations)


def check_inputs(findings: Findings, one: Certificate, generation: Sequence[Certificate]) -> None:
    """The rows and keys that a stage read, against the certificates of what it read."""
    sources = input_certificates(one, generation)
    if not sources and one.input_key_digest is None:
        return
    found = (sum(source.row_count for source in sources), keys_digest(sources))
    if found != (one.input_row_count, one.input_key_digest):
        findings.differ(
            f"certificates, {place_of(one)}",
            expected=f"{one.input_row_count} rows of keys {str(one.input_key_digest)[:12]} read",
            got=f"{found[0]} of {found[1][:12]} in {', '.join(source.table_name for source in sources) or 'no table'}",
            next_step=KEPT,
        )


def check_stages(findings: Findings, scope: Scope, generations: dict[str, list[Certificate]]) -> None:
    """Every stage that `nights` calls done has a certificate for each of its tables, under the attempt that it names."""
    tables: dict[str, list[str]] = defaultdict(list)
    for contract in all_contracts().values():
        if contract.kind == "night":
            tables[stage_of(contract)].append(contract.name)
    for night in scope.nights:
        if night["state"] != "done":
            continue
        certified = {one.table_name: one for one in generations[str(night["publish_id"])] if one.partition == night["ds"]}
        for table in tables[str(night["stage"])]:
            place = Place(table, str(night["ds"]), str(night["publish_id"]))
            if table not in certified:
                findings.differ(f"certificates, {place}", expected="one, since `nights` calls the stage done", got="none", next_step=KEPT)
            elif certified[table].fence != night["attempt"]:
                findings.differ(
                    f"certificates, {place}", expected=f"fence {night['attempt']}, the attempt in `nights`",
                    got=f"{certified[table].fence}", next_step=KEPT,
                )  # fmt: skip
