"""Certificates: what each generation consisted of when it was committed, and what it was made from.

out     rows, their keys and their content as digests, files; the quarantine rows of its stage; model calls
in      the certificates of the same generation that its stage read: their rows and keys; for an import the rows that came
itself  a digest of all these, which the pointer's row holds in turn
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from functools import reduce
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from recgpt_ops.delta.digests import DigestPass, Sums
from recgpt_ops.delta.reading import dropped_places, read_arrow, read_rows
from recgpt_ops.delta.records import append_records
from recgpt_ops.delta.schemas import TIMESTAMP
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.errors import InputsChangedError
from recgpt_ops.ids import row_id
from recgpt_ops.tables import Contract, load_contract


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
    input_row_count: int | None = None
    input_key_digest: str | None = None
    volatile_digest: str | None = None
    quarantine_digest: str | None = None
    certificate_sha256: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def certificate_id(self) -> str:
        """One certificate per table, partition and generation."""
        return row_id((self.table_name, self.partition, self.publish_id))


class Place(NamedTuple):
    """One generation of one table, as a certificate names it."""

    table: str
    partition: str
    publish_id: str

    def __str__(self) -> str:
        contract = load_contract(self.table)
        if contract.kind == "feed":
            return f"{self.table}, import {self.publish_id}"
        return f"{self.table}, {contract.partition_by[0]}={self.partition}, generation {self.publish_id}"


COLUMNS = tuple(field.name for field in fields(Certificate) if field.name != "warnings")
MADE_WITH = tuple(name for name in COLUMNS if name != "certificate_sha256")


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


def place_of(certificate: Certificate) -> Place:
    """What a certificate is about."""
    return Place(certificate.table_name, certificate.partition, certificate.publish_id)


def standing_certificates(warehouse: Warehouse, table: str) -> list[Certificate]:
    """The certificates of a table, oldest first, but for those of generations that maintenance has dropped."""
    dropped = dropped_places(warehouse)
    return [certificate for certificate in certificates(warehouse, table=table) if place_of(certificate) not in dropped]


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
    """Writes them, complete and with the time of writing; those already there are left alone."""
    there = certificates(warehouse)
    beside = [one for one in there if one.publish_id in {certificate.publish_id for certificate in made}]
    made_at = later_than(there, read_rows(warehouse, "quarantine", columns=["quarantined_at"]))
    stamped = [complete(warehouse, replace(certificate, made_at=made_at), beside) for certificate in made]
    append_records(
        warehouse,
        "certificates",
        [
            {"certificate_id": certificate.certificate_id, **{name: getattr(certificate, name) for name in COLUMNS}}
            for certificate in stamped
        ],
    )
    return stamped


def later_than(there: Sequence[Certificate], quarantined: Iterable[Mapping[str, Any]]) -> datetime:
    """Now, or just after the newest record where the clock was set back since: what is newest is told by these times."""
    newest = max((row["quarantined_at"] for row in quarantined), default=datetime.min.replace(tzinfo=UTC))
    if there:
        newest = max(newest, there[-1].made_at)
    return max(datetime.now(UTC), newest + timedelta(microseconds=1))


def complete(warehouse: Warehouse, certificate: Certificate, beside: Sequence[Certificate]) -> Certificate:
    """The certificate with what it was made from, what went into quarantine, and the digest of all of it.

    `beside` are the certificates that its generation has already.
    """
    rows_in, keys_in = certificate.input_row_count, certificate.input_key_digest
    if sources := input_certificates(certificate, beside):
        rows_in, keys_in = sum(source.row_count for source in sources), keys_digest(sources)
    kept = replace(
        certificate, input_row_count=rows_in, input_key_digest=keys_in, quarantine_digest=quarantine_digest(warehouse, certificate)
    )
    return replace(kept, certificate_sha256=certificate_sha256(kept))


def input_certificates(certificate: Certificate, generation: Iterable[Certificate]) -> list[Certificate]:
    """The certificates that a night table's stage read, of those of its generation; [] for a feed or a state table.

    A table of the same job is none of them, nor is one that was certified later.
    """
    contract = load_contract(certificate.table_name)
    if contract.kind != "night":
        return []
    sources = []
    for source in generation:
        table = load_contract(source.table_name)
        is_read = table.kind == "night" and contract.name in table.readers and table.producer != contract.producer
        if is_read and (source.publish_id, source.partition) == (certificate.publish_id, certificate.partition):
            sources.append(source)
    return [source for source in sources if source.made_at <= certificate.made_at]


def keys_digest(sources: Iterable[Certificate]) -> str:
    """One digest of the keys of several generations."""
    return row_id(row_id((one.table_name, one.partition, one.key_digest)) for one in sorted(sources, key=lambda one: one.table_name))


def quarantine_digest(warehouse: Warehouse, certificate: Certificate) -> str | None:
    """Digest of the rows in quarantine that belong to a certificate and were there when it was made; None for a state table."""
    where = quarantine_of(certificate)
    return None if where is None else quarantined_digest(read_arrow(warehouse, "quarantine", where=where))


def quarantine_of(certificate: Certificate) -> pc.Expression | None:
    """Which rows these are: those of its import, or of its stage, day and attempt; a fault that an earlier import met is that import's."""
    contract = load_contract(certificate.table_name)
    if contract.kind == "state":
        return None
    where = pads.field("quarantined_at") <= pa.scalar(certificate.made_at, TIMESTAMP)
    if contract.kind == "feed":
        return where & (pads.field("table_name") == contract.name) & (pads.field("import_id") == certificate.publish_id)
    where &= (pads.field("ds") == certificate.partition) & (pads.field("attempt") == certificate.fence)
    return where & pads.field("stage").isin([contract.name, stage_of(contract)])


def quarantined_digest(rows: pa.Table, *, connection: duckdb.DuckDBPyConnection | None = None) -> str:
    """One digest of some rows in quarantine, volatile columns included; `connection` as in `DigestPass`."""
    digests = DigestPass(load_contract("quarantine"), None, connection=connection)
    digests.add(rows)
    sums = digests.sums.get("", Sums())
    return row_id((sums.row_digest, sums.volatile_digest))


def stage_of(contract: Contract) -> str:
    """The stage that makes a table: the name of its job."""
    return Path(contract.producer).stem


def certificate_sha256(certificate: Certificate) -> str:
    """Digest of one certificate, over all its columns but this one."""
    return row_id(getattr(certificate, name) for name in MADE_WITH)


def contents_digest(found: Iterable[Certificate]) -> str:
    """One digest of what some generations hold: their tables, keys and rows. Equal runs have equal ones."""
    return joint_digest((one, (one.key_digest, one.row_digest)) for one in found)


def generation_digest(found: Iterable[Certificate]) -> str:
    """What a row of `publications` holds of the certificates of what it shows: each of them whole, the time it was made included.

    Those from before a certificate had a digest of its own are told by what they say of their rows.
    """
    return joint_digest(
        (one, (one.key_digest, one.row_digest) if one.certificate_sha256 is None else (one.certificate_sha256,)) for one in found
    )


def joint_digest(told: Iterable[tuple[Certificate, tuple[str, ...]]]) -> str:
    """One digest over certificates, in whatever order they come, each with what counts of it."""
    digest = hashlib.sha256()
    for one, content in sorted(told, key=lambda pair: (pair[0].table_name, pair[0].partition, pair[0].publish_id)):
        digest.update(row_id((one.table_name, one.partition, *content)).encode())
    return digest.hexdigest()
