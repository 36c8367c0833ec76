"""Certificates: what each generation consisted of when it was committed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import reduce
from importlib.metadata import version

import pyarrow.dataset as pads

from recgpt_ops.delta.reading import read_rows
from recgpt_ops.delta.records import append_records
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.errors import InputsChangedError
from recgpt_ops.ids import row_id


@dataclass(frozen=True)
class Certificate:
    """One row of the table `certificates`, and the warnings of the checks, which only the run that made it knows."""

    table_name: str
    partition: str
    publish_id: str
    arrived_cut_ds: str | None
    row_count: int
    key_digest: str
    row_digest: str
    input_digest: str
    file_count: int
    quarantined_count: int
    calls_made: int
    calls_reused: int
    fence: int | None
    code_version: str
    made_at: datetime
    warnings: tuple[str, ...] = ()

    @property
    def certificate_id(self) -> str:
        """One certificate per table, partition and generation."""
        return row_id((self.table_name, self.partition, self.publish_id))


COLUMNS = tuple(field.name for field in fields(Certificate) if field.name != "warnings")


def code_version() -> str:
    """Version of this package, as it stands in certificates."""
    return version("recgpt-ops")


def certificates(warehouse: Warehouse, *, table: str | None = None, publish_id: str | None = None) -> list[Certificate]:
    """The certificates of a table, of a generation, or of both; oldest first."""
    terms = []
    if table is not None:
        terms.append(pads.field("table_name") == table)
    if publish_id is not None:
        terms.append(pads.field("publish_id") == publish_id)
    where = reduce(lambda left, right: left & right, terms) if terms else None
    found = [Certificate(**row) for row in read_rows(warehouse, "certificates", columns=COLUMNS, where=where)]  # type: ignore[arg-type]  # columns of the contract
    return sorted(found, key=lambda certificate: (certificate.made_at, certificate.table_name, certificate.partition))


def find_certificates(
    warehouse: Warehouse, table: str, publish_id: str, *, scopes: Sequence[str], input_digest: str
) -> dict[str, Certificate]:
    """The certificates that a generation already has, by scope; other inputs under the same publish_id are refused."""
    found = {
        certificate.partition: certificate
        for certificate in certificates(warehouse, table=table, publish_id=publish_id)
        if certificate.partition in scopes
    }
    for scope, certificate in sorted(found.items()):
        if certificate.input_digest != input_digest:
            raise InputsChangedError(
                f"{table}, {scope}: generation {publish_id} was made from inputs {certificate.input_digest}, now they are {input_digest}; "
                "start a new generation with --rebuild"
            )
    return found


def record_certificates(warehouse: Warehouse, made: Sequence[Certificate]) -> list[Certificate]:
    """Writes them with the time of writing; those already there are left alone."""
    stamped = [replace(certificate, made_at=datetime.now(UTC)) for certificate in made]
    append_records(
        warehouse,
        "certificates",
        [
            {"certificate_id": certificate.certificate_id, **{name: getattr(certificate, name) for name in COLUMNS}}
            for certificate in stamped
        ],
    )
    return stamped
