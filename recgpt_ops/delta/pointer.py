"""The pointer and its fence: which generation of a night readers see, moved by one commit that an older attempt cannot make.

    claim_attempt   -> 1, 2, 3 ... per (ds, scenario, method): an empty commit under app_id attempt/<scenario>/<ds>/<method>
    move_pointer    -> one row of `publications` under app_id publish/<scenario>/<ds>/<method>, version = the attempt

delta-rs compares no versions: it refuses a commit only when another one with the same app_id came after the handle was opened. So the
marker is read from a handle and the commit made on that very handle. Opening the table again in between would let an old attempt win.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum

import pyarrow as pa
import pyarrow.dataset as pads
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError

from recgpt_ops.delta.commits import append_rows
from recgpt_ops.delta.faults import told_plainly
from recgpt_ops.delta.reading import read_arrow, read_files, table_files
from recgpt_ops.delta.schemas import arrow_schema
from recgpt_ops.delta.warehouse import Warehouse, create_table
from recgpt_ops.effects import effect
from recgpt_ops.errors import NightError, RecgptError, UsageError
from recgpt_ops.ids import row_id
from recgpt_ops.tables import load_contract

MAX_TRIES = 50


class Outcome(StrEnum):
    """What became of a move: done now, done before by this same attempt and generation, or refused."""

    landed = "landed"
    already_landed = "already_landed"
    fenced = "fenced"


def app_id(what: str, *, ds: str, scenario: str, method: str) -> str:
    """`publish/default/2017-10-30/v2`. A slash inside a name would let two nights share a fence."""
    for name, value in (("ds", ds), ("scenario", scenario), ("method", method)):
        if not value or "/" in value:
            raise UsageError(f"publications: {name} is {value!r}; expected a name without '/'")
    return f"{what}/{scenario}/{ds}/{method}"


def claim_attempt(warehouse: Warehouse, *, ds: str, scenario: str, method: str) -> int:
    """The next attempt number of one night and method, from 1; two claims at the same time get different numbers."""
    app = app_id("attempt", ds=ds, scenario=scenario, method=method)
    contract = load_contract("publications")
    create_table(warehouse, "publications")
    for _ in range(MAX_TRIES):
        delta = warehouse.open("publications")
        attempt = (delta.transaction_version(app) or 0) + 1
        try:
            with told_plainly(f"publications, ds={ds}", root=warehouse.root), effect("attempt.claim", method):
                delta.create_write_transaction(
                    [],
                    mode="append",
                    schema=arrow_schema(contract),
                    commit_properties=CommitProperties(app_transactions=[Transaction(app, attempt)]),
                )
        except CommitFailedError:
            continue  # another run claimed this number; after any other error the number is lost, which harms nothing
        return attempt
    raise NightError(f"publications, ds={ds}: other runs kept claiming attempts for {MAX_TRIES} tries; run it again")


def move_pointer(
    warehouse: Warehouse,
    *,
    ds: str,
    scenario: str,
    method: str,
    fence: int,
    publish_id: str,
    input_digest: str,
    certificate_sha256: str,
    why: str,
    published_by: str,
) -> Outcome:
    """Makes one generation the visible one. `fence` is the attempt; `fenced` when a newer attempt has published."""
    app = app_id("publish", ds=ds, scenario=scenario, method=method)
    contract = load_contract("publications")
    create_table(warehouse, "publications")
    row = {
        "ds": ds, "scenario": scenario, "method": method, "fence": fence, "publish_id": publish_id, "input_digest": input_digest,
        "published_by": published_by, "published_at": datetime.now(UTC), "why": why, "certificate_sha256": certificate_sha256,
    }  # fmt: skip
    for _ in range(MAX_TRIES):
        delta = warehouse.open("publications")
        if (outcome := known_outcome(delta, app, row)) is not None:
            return outcome
        previous = newest_row(delta, row)
        complete = {**row, "previous_sha256": None if previous is None else publication_sha256(previous)}
        complete["row_sha256"] = publication_sha256(complete)
        table = pa.Table.from_pylist([complete], schema=arrow_schema(contract))
        properties = CommitProperties(app_transactions=[Transaction(app, fence)], custom_metadata={"recgpt.publish_id": publish_id})
        try:
            append_rows(warehouse, contract, delta, table, properties=properties)
            return Outcome.landed
        except (CommitFailedError, RecgptError) as error:
            # An error is no proof that nothing was written: look before trying again.
            outcome = known_outcome(warehouse.open("publications"), app, row)
            if outcome is not None:
                return Outcome.landed if outcome is Outcome.already_landed else outcome
            if not isinstance(error, CommitFailedError):
                raise
    raise NightError(f"publications, ds={ds}, method={method}: other runs kept publishing for {MAX_TRIES} tries; run publish_night again")


def known_outcome(delta: DeltaTable, app: str, row: Mapping[str, object]) -> Outcome | None:
    """What the marker of this version says about the move; None when the move is still to be made."""
    seen = delta.transaction_version(app)
    if seen is None or seen < int(str(row["fence"])):
        return None
    newest = newest_row(delta, row)
    same = newest is not None and (newest["fence"], newest["publish_id"]) == (row["fence"], row["publish_id"])
    return Outcome.already_landed if same else Outcome.fenced


def newest_row(delta: DeltaTable, row: Mapping[str, object]) -> dict[str, object] | None:
    """The row of highest fence for the same ds, scenario and method; None for the first."""
    contract = load_contract("publications")
    where = (pads.field("ds") == row["ds"]) & (pads.field("scenario") == row["scenario"]) & (pads.field("method") == row["method"])
    rows: list[dict[str, object]] = read_files(contract, table_files(delta, contract), where=where).sort_by("fence").to_pylist()
    return rows[-1] if rows else None


def publication_sha256(row: Mapping[str, object]) -> str:
    """Digest of one row of `publications`, over all its columns but `row_sha256`, which holds it; the next row holds it too."""
    return row_id(row[name] for name in load_contract("publications").column_names if name != "row_sha256")


def visible_publications(warehouse: Warehouse) -> dict[tuple[str, str, str], dict[str, object]]:
    """(ds, scenario, method) -> the row of `publications` with the highest fence: what readers see."""
    rows = read_arrow(warehouse, "publications").sort_by("fence").to_pylist()
    return {(row["ds"], row["scenario"], row["method"]): row for row in rows}
