"""Publishing a generation: conform, stage, check the staged bytes, commit exactly those, certificate.

    rows of a job -> final files below the table -> one pass over them: digests and Great Expectations -> one commit -> a certificate
    per scope (the ds of a night, every bucket of a state table, the import of a feed); a scope without rows has one too

Nothing that a reader sees is changed: a generation is a partition of its own. A retry finds the marker of what landed and does nothing.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NotRequired, TypedDict, Unpack

import pyarrow as pa
import pyarrow.dataset as pads
from deltalake import DeltaTable

from recgpt_ops.delta.certificates import Certificate, certificates, code_version, find_certificates, record_certificates
from recgpt_ops.delta.check_columns import CheckColumns, contract_checks
from recgpt_ops.delta.commits import commit_parts, landed_scopes, take_back
from recgpt_ops.delta.digests import DigestPass, Sums, volatile_columns
from recgpt_ops.delta.faults import told_plainly
from recgpt_ops.delta.other_writers import ROW_DIGEST, Append, commit_by, hold_to_commit, whole_file
from recgpt_ops.delta.quarantine import QuarantineRow, quarantine_rows
from recgpt_ops.delta.reading import DataFile, files_dataset, generation_files, table_files
from recgpt_ops.delta.schemas import conform
from recgpt_ops.delta.staging import PartFile, remove_parts, stage_directory, staged_batches, staged_files, write_parts
from recgpt_ops.delta.violations import Violation, known_keys, violation_message
from recgpt_ops.delta.warehouse import Warehouse, create_table
from recgpt_ops.effects import effect
from recgpt_ops.errors import ContractError, NightError
from recgpt_ops.tables import Contract, load_contract

__all__ = ["Certificate", "certificates", "publish_arrow", "publish_files", "stage_directory"]

SCOPE_COLUMNS = {"night": "ds", "state": "bucket", "feed": "import_id"}
SCAN_ROWS = 131_072


@dataclass(frozen=True)
class Generation:
    """What is published, and the counts that go into its certificates."""

    contract: Contract
    publish_id: str
    scopes: Sequence[str]
    fence: int | None
    input_digest: str
    arrived_cut_ds: str | None = None
    quarantined_count: int = 0
    calls_made: int = 0
    calls_reused: int = 0
    input_row_count: int | None = None

    @property
    def scope_column(self) -> str:
        """The column whose values are the scopes."""
        return SCOPE_COLUMNS[self.contract.kind]

    @property
    def where(self) -> str:
        """Table and first scopes, as errors name them."""
        return f"{self.contract.table_id}, {', '.join(self.scopes[:3])}"


class Terms(TypedDict):
    """What a job says of the generation it publishes: the fields of `Generation`. `fence` is the night's attempt, None for a feed.

    `input_row_count` is for an import: the rows that its files hold. What a night's stage read is known from its certificates.
    """

    publish_id: str
    scopes: Sequence[str]
    fence: int | None
    input_digest: str
    arrived_cut_ds: NotRequired[str | None]
    quarantined_count: NotRequired[int]
    calls_made: NotRequired[int]
    calls_reused: NotRequired[int]
    input_row_count: NotRequired[int]


Landing = tuple[dict[str, Sums] | None, tuple[str, ...]]  # sums of what landed, None when they must be read; warnings of the checks


def publish_files(
    warehouse: Warehouse, table: str, directory: Path, *, append: Append | None = None, **terms: Unpack[Terms]
) -> list[Certificate]:
    """Publishes the Parquet files of a `stage_directory` and removes it; returns one certificate per scope, in the order of `scopes`.

    `append` is Spark's own writer, which then makes the commit; by default the files are written and committed by delta-rs.
    """
    generation = Generation(load_contract(table), **terms)
    try:
        files = staged_files(generation.contract, directory)
        if append is not None:
            return publish_generation(warehouse, generation, partial(land_by, append, warehouse, generation, files))
        return publish_generation(warehouse, generation, partial(land, warehouse, generation, staged_batches(generation.contract, files)))
    finally:
        with effect("stage.remove", table):
            shutil.rmtree(directory, ignore_errors=True)  # rows of users must not lie about, published or not


def publish_arrow(warehouse: Warehouse, table: str, rows: pa.Table, **terms: Unpack[Terms]) -> list[Certificate]:
    """`publish_files` for rows in memory."""
    generation = Generation(load_contract(table), **terms)
    return publish_generation(warehouse, generation, partial(land, warehouse, generation, iter([conform(generation.contract, rows)])))


def publish_generation(warehouse: Warehouse, generation: Generation, bring: Callable[[], Landing]) -> list[Certificate]:
    """The whole story, from staged rows to certificates; `bring` checks and commits them, if nobody has before."""
    name = generation.contract.name
    found = find_certificates(warehouse, name, generation.publish_id, scopes=generation.scopes, input_digest=generation.input_digest)
    if len(found) < len(generation.scopes):
        create_table(warehouse, name)
        delta = warehouse.open(name)
        if not landed_scopes(delta, generation.scopes, generation.publish_id):
            sums, warnings = bring()
        else:
            sums, warnings = None, ()
        if sums is None:  # an attempt before this one, or beside it, was first: what it committed is what counts
            sums = committed_sums(warehouse, generation)
        counts = file_counts(warehouse, generation)
        made = [
            make_certificate(generation, scope, sums.get(scope, Sums()), file_count=counts[scope], warnings=warnings)
            for scope in generation.scopes
            if scope not in found
        ]
        found |= {certificate.partition: certificate for certificate in record_certificates(warehouse, made)}
    return [found[scope] for scope in generation.scopes]


def land(warehouse: Warehouse, generation: Generation, batches: Iterable[pa.Table]) -> Landing:
    """Stages, checks and commits; the sums of what landed, or None when another attempt's files did, and the warnings."""
    contract = generation.contract
    root = Path(warehouse.path(contract.name))
    with told_plainly(generation.where, root=str(root)):
        parts = write_parts(contract, batches, root, publish_id=generation.publish_id)
    try:
        sums, violations = check_files(generation, data_files(root, parts))
        refuse_violations(warehouse, generation, violations)
        landed = commit_parts(
            warehouse,
            contract,
            parts,
            scopes=generation.scopes,
            publish_id=generation.publish_id,
            fence=generation.fence,
            metadata=commit_metadata(generation),
            guard=(lambda delta: refuse_known_keys(delta, generation, root, parts)) if contract.kind == "feed" and parts else None,
        )
    except BaseException:
        take_back(warehouse, contract, parts)
        raise
    if not landed:
        remove_parts(root, parts)
    return (sums if landed or not parts else None), tuple(violation_message(violation) for violation in violations)


def land_by(append: Append, warehouse: Warehouse, generation: Generation, staged: Sequence[Path]) -> Landing:
    """Checks what a job staged and has Spark's own writer commit its rows. Their sums are read back, because the bytes are Spark's."""
    contract = generation.contract
    with told_plainly(generation.where):
        files = [whole_file(contract, path) for path in staged]
        sums, violations = check_files(generation, files)
        strangers = files_dataset(contract, files).count_rows(filter=pads.field("publish_id") != generation.publish_id)
    if strangers:
        raise NightError(
            f"{generation.where}: {strangers} staged rows are of another generation than {generation.publish_id}; run the stage again"
        )
    refuse_violations(warehouse, generation, violations)
    scope = generation.scopes[0]
    checked = {"recgpt.scope": scope, ROW_DIGEST: sums.get(scope, Sums()).row_digest}
    commit_by(
        append,
        warehouse,
        contract,
        files,
        scopes=generation.scopes,
        publish_id=generation.publish_id,
        fence=generation.fence,
        metadata=commit_metadata(generation) | checked,
    )
    return None, tuple(violation_message(violation) for violation in violations)


def commit_metadata(generation: Generation) -> dict[str, str]:
    """What the log says of a generation's commit."""
    return {"recgpt.publish_id": generation.publish_id, "recgpt.input_digest": generation.input_digest}


def check_files(generation: Generation, files: Sequence[DataFile]) -> tuple[dict[str, Sums], list[Violation]]:
    """One pass over the files as they lie on the disk: sums per scope, and every rule that they break."""
    from recgpt_ops.delta.checks import run_checks  # Great Expectations takes seconds to import

    contract = generation.contract
    dataset = files_dataset(contract, files)
    digest_pass, columns = DigestPass(contract, generation.scope_column), CheckColumns(contract_checks(contract))
    for batch in dataset.to_batches(batch_size=SCAN_ROWS):
        rows = pa.Table.from_batches([batch])
        digest_pass.add(rows)
        columns.add(rows)
    strange = sorted(map(str, set(digest_pass.sums) - set(generation.scopes)))
    if strange:
        raise ContractError(
            f"{contract.table_id}: rows of {generation.scope_column} {strange[0]!r}, "
            f"but this publishes {', '.join(generation.scopes[:5])}; "
            "name every scope that the job makes"
        )
    written, read = sum(file.row_count for file in files), sum(sums.row_count for sums in digest_pass.sums.values())
    if written != read:
        raise NightError(f"{contract.table_id}: {written} rows were staged, {read} were read back; run the stage again")
    return digest_pass.sums, run_checks(contract, columns, dataset)


def data_files(root: Path, parts: Sequence[PartFile]) -> list[DataFile]:
    """Staged files as the readers of a table know them."""
    return [DataFile(str(root / part.path), part.partition, part.row_count, part.size_bytes) for part in parts]


def refuse_violations(warehouse: Warehouse, generation: Generation, violations: Sequence[Violation]) -> None:
    """Puts the rows that broke a rule graded fail into quarantine and raises; warnings pass."""
    failed = [violation for violation in violations if violation.grade == "fail"]
    if not failed:
        return
    contract = generation.contract
    scope = generation.scopes[0]
    rows = [
        QuarantineRow(
            table_name=contract.name,
            row_key=key,
            stage=contract.name,
            reason=f"check_{violation.rule}",
            detail=violation_message(violation, show_key=False),
            raw=raw,
            ds=scope if contract.kind == "night" else None,
            import_id=generation.publish_id if contract.kind == "feed" else None,
            attempt=generation.fence,
            scenario=fields.get("scenario"),
            method=fields.get("method"),
            user_id=fields.get("user_id"),
        )
        for violation in failed
        for key, raw in violation.rows
        for fields in [json.loads(raw)]
    ]
    quarantine_rows(warehouse, rows)
    told = "; ".join(violation_message(violation) for violation in failed)
    raise ContractError(
        f"{contract.table_id}, {scope}: {told}; nothing was published, the rows are in quarantine under stage {contract.name!r}"
    )


def refuse_known_keys(delta: DeltaTable, generation: Generation, root: Path, parts: Sequence[PartFile]) -> None:
    """A feed holds each key once: rows whose key an earlier import brought must be left out by the job, not added again."""
    contract = generation.contract
    count, first = known_keys(contract, data_files(root, parts), table_files(delta, contract))
    if count:
        raise ContractError(
            f"{contract.table_id}, {generation.publish_id}: {count} keys are in the table already, the first is {first}; "
            "leave out what is there and import again"
        )


def committed_sums(warehouse: Warehouse, generation: Generation) -> dict[str, Sums]:
    """The sums of a generation that landed without a certificate, from its files."""
    contract = generation.contract
    digest_pass = DigestPass(contract, generation.scope_column)
    for batch in files_dataset(contract, committed_files(warehouse, generation)).to_batches(batch_size=SCAN_ROWS):
        digest_pass.add(pa.Table.from_batches([batch]))
    found = {scope: sums for scope, sums in digest_pass.sums.items() if scope in generation.scopes}
    if contract.kind == "night":
        (scope,) = generation.scopes
        digest = found.get(scope, Sums()).row_digest
        hold_to_commit(warehouse.open(contract.name), contract, scope=scope, publish_id=generation.publish_id, row_digest=digest)
    return found


def committed_files(warehouse: Warehouse, generation: Generation) -> list[DataFile]:
    """The committed files that may hold rows of a generation; of a feed all, because files of several imports may be one by now."""
    if generation.contract.kind == "feed":
        return generation_files(warehouse, generation.contract.name)
    partitions = {generation.scope_column: generation.scopes, "publish_id": generation.publish_id}
    return generation_files(warehouse, generation.contract.name, **partitions)


def file_counts(warehouse: Warehouse, generation: Generation) -> Counter[str]:
    """Committed files by scope; a feed's are known by the import in their names."""
    files = committed_files(warehouse, generation)
    if generation.contract.kind == "feed":
        return Counter(generation.publish_id for file in files if f"-{generation.publish_id}-" in Path(file.path).name)
    return Counter(file.partition[generation.scope_column] for file in files)


def make_certificate(generation: Generation, scope: str, sums: Sums, *, file_count: int, warnings: tuple[str, ...]) -> Certificate:
    """One scope's certificate from its sums."""
    return Certificate(
        table_name=generation.contract.name,
        partition=scope,
        publish_id=generation.publish_id,
        arrived_cut_ds=generation.arrived_cut_ds,
        row_count=sums.row_count,
        key_digest=sums.key_digest,
        row_digest=sums.row_digest,
        input_digest=generation.input_digest,
        file_count=file_count,
        quarantined_count=generation.quarantined_count,
        calls_made=generation.calls_made,
        calls_reused=generation.calls_reused,
        fence=generation.fence,
        code_version=code_version(),
        made_at=datetime.now(UTC),
        input_row_count=generation.input_row_count,
        volatile_digest=sums.volatile_digest if volatile_columns(generation.contract) else None,
        warnings=warnings,
    )
