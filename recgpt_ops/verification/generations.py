"""Rows against certificates: each generation, bucket and import counted and digested again, in one streamed scan a generation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from recgpt_ops.delta.certificates import Certificate, Place, place_of
from recgpt_ops.delta.digests import DigestPass, Sums, volatile_columns
from recgpt_ops.delta.faults import told_plainly
from recgpt_ops.delta.generations import SCAN_ROWS, SCOPE_COLUMNS
from recgpt_ops.delta.reading import DataFile, files_dataset
from recgpt_ops.errors import RecgptError
from recgpt_ops.tables import Contract, all_contracts
from recgpt_ops.verification.files import RESTORE, check_keys, sound_files
from recgpt_ops.verification.findings import Findings
from recgpt_ops.verification.scope import Scope
from recgpt_ops.verification.tables import Tables


def check_generations(findings: Findings, tables: Tables, scope: Scope) -> None:
    """Every table whose rows are certified; with one night in scope the feeds are left out."""
    for contract in all_contracts().values():
        if contract.kind == "record" or (contract.kind == "feed" and scope.ds is not None):
            continue
        certified = [one for one in scope.certificates if one.table_name == contract.name]
        files = sound_files(findings, tables, contract, **chosen_partitions(contract, certified, scope))
        if contract.kind == "feed":
            check_keys(findings, tables, contract, files, where=contract.name, next_step=RESTORE)
            if files and not certified:  # a copy of the feeds alone
                findings.cannot(f"{contract.name}: none of its imports was certified in this warehouse; to have that, import again")
                continue
            check_rows(findings, tables, scope, contract, certified, files)
            continue
        by_generation: dict[str, list[Certificate]] = defaultdict(list)
        for certificate in certified:
            by_generation[certificate.publish_id].append(certificate)
        for publish_id, some in sorted(by_generation.items()):
            theirs = [file for file in files if file.partition["publish_id"] == publish_id]
            check_rows(findings, tables, scope, contract, some, theirs)
        check_keys(findings, tables, contract, files, where=contract.name, next_step=RESTORE)


def chosen_partitions(contract: Contract, certified: Sequence[Certificate], scope: Scope) -> dict[str, set[str]]:
    """The generations whose files are looked at; all of them unless one night is in scope."""
    return {} if scope.ds is None else {"publish_id": {certificate.publish_id for certificate in certified}}


def check_rows(
    findings: Findings,
    tables: Tables,
    scope: Scope,
    contract: Contract,
    certified: Sequence[Certificate],
    files: Sequence[DataFile],
) -> None:
    """The rows of one generation (of a feed: of all its imports) against its certificates."""
    column = SCOPE_COLUMNS[contract.kind]
    try:
        sums = digest(findings, tables, contract, files, column)
    except RecgptError as error:
        findings.differ(
            f"{contract.name}, {len(files)} files", expected="rows that can be read", got=f"an error ({error})", next_step=RESTORE
        )
        return
    for certificate in certified:
        findings.counts["generations"] += 1
        compare(findings, scope, contract, certificate, sums.pop(certificate.partition, Sums()), files)
    for partition, found in sorted(sums.items()):
        if scope.ds is None or contract.kind != "state":
            publish_id = partition if contract.kind == "feed" else files[0].partition["publish_id"]
            findings.differ(
                str(Place(contract.name, partition, publish_id)),
                expected="a certificate",
                got=f"{found.row_count} rows that nobody certified",
                next_step="run the job that brought them again, which certifies what landed, or restore the table from a backup",
            )


def digest(findings: Findings, tables: Tables, contract: Contract, files: Sequence[DataFile], column: str) -> dict[str, Sums]:
    """The sums of each scope, in one scan in batches."""
    digests, done, total = DigestPass(contract, column, connection=tables.ask()), 0, sum(file.row_count for file in files)
    with told_plainly(contract.table_id):
        for batch in files_dataset(contract, files).to_batches(batch_size=SCAN_ROWS):
            digests.add(pa.Table.from_batches([batch]))
            done += batch.num_rows
            findings.progress(contract.name, done, total)
    findings.counts["rows"] += done
    return digests.sums


def compare(
    findings: Findings,
    scope: Scope,
    contract: Contract,
    certificate: Certificate,
    sums: Sums,
    files: Sequence[DataFile],
) -> None:
    """One certificate against what was found."""
    place = place_of(certificate)
    mine = list(own_files(contract, certificate, files))
    if certificate.row_count and not mine and not sums.row_count and contract.kind != "feed":
        if place in scope.dropped and place not in scope.needed:
            findings.counts["dropped generations"] += 1
            return
        why = "something visible names it" if place in scope.needed else "maintenance did not drop it"
        findings.differ(
            str(place), expected=f"{certificate.row_count} rows, since {why}", got="no file", next_step=next_step(contract, place.partition)
        )
        return
    told = differences(contract, certificate, sums)
    if not told and len(mine) <= certificate.file_count:  # fewer files with the same rows have been compacted
        return
    if not told:
        told = {f"{certificate.file_count} files": f"{len(mine)}"}
    names = ", ".join(Path(file.path).name for file in mine[:2]) + (f" and {len(mine) - 2} more" if len(mine) > 2 else "")
    findings.differ(
        f"{place}{f', file {names}' if names else ''}",
        expected="; ".join(told),
        got="; ".join(told.values()),
        next_step=next_step(contract, place.partition),
    )


def differences(contract: Contract, certificate: Certificate, sums: Sums) -> dict[str, str]:
    """What was certified -> what was found, the most telling one first."""
    volatile = volatile_columns(contract)
    if sums.row_count != certificate.row_count:
        return {f"{certificate.row_count} rows": f"{sums.row_count}"}
    if sums.key_digest != certificate.key_digest:
        return {f"keys {certificate.key_digest[:12]}": f"{sums.key_digest[:12]} (other keys, as many rows)"}
    told = {}
    if sums.row_digest != certificate.row_digest:
        told[f"rows {certificate.row_digest[:12]}"] = f"{sums.row_digest[:12]} (the same keys, other values)"
    if volatile and certificate.volatile_digest is not None and sums.volatile_digest != certificate.volatile_digest:
        told[f"{' and '.join(volatile)} {certificate.volatile_digest[:12]}"] = f"{sums.volatile_digest[:12]} (other values)"
    return told


def own_files(contract: Contract, certificate: Certificate, files: Sequence[DataFile]) -> Iterator[DataFile]:
    """The files that hold a certificate's rows; a feed's are known by the import in their names until they are compacted."""
    for file in files:
        if contract.kind == "feed":
            if f"-{certificate.publish_id}-" in Path(file.path).name:
                yield file
        elif is_of(file.partition, SCOPE_COLUMNS[contract.kind], certificate):
            yield file


def is_of(partition: Mapping[str, str], column: str, certificate: Certificate) -> bool:
    """Whether a file's partition is a certificate's."""
    return (partition[column], partition["publish_id"]) == (certificate.partition, certificate.publish_id)


def next_step(contract: Contract, partition: str) -> str:
    """How rows are mended that are no longer those that were certified."""
    if contract.kind == "night":
        return f"restore the file from a backup, or make the night anew beside it: recgpt night --ds {partition} --rebuild"
    return RESTORE
