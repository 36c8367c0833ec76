"""The whole verification, check after check; each is told apart in the one line that a difference is.

found = verify_warehouse(warehouse, ds=None, ledger=Path("_ledger"), ledger_days=14)
found.differences, found.not_verifiable, found.summary
"""

from __future__ import annotations

from pathlib import Path

from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.errors import UsageError
from recgpt_ops.tables import all_contracts
from recgpt_ops.verification.calls import check_calls
from recgpt_ops.verification.files import RESTORE, check_keys, sound_files
from recgpt_ops.verification.findings import Findings
from recgpt_ops.verification.generations import check_generations
from recgpt_ops.verification.pointers import check_certificates, check_publications
from recgpt_ops.verification.quarantines import check_quarantine
from recgpt_ops.verification.recordings import check_ledger
from recgpt_ops.verification.references import check_call_ids, check_explanations, check_users
from recgpt_ops.verification.scope import find_scope
from recgpt_ops.verification.tables import open_tables


def verify_warehouse(warehouse: Warehouse, findings: Findings, *, ds: str | None, ledger: Path, ledger_days: int) -> Findings:
    """Recomputes everything from the tables. With `ds` one night and what it names; feeds are then left out.

    `ledger_days` is the retention of the ledger. What maintenance dropped is counted, and missed only where something visible names it.
    """
    if not warehouse.exists("certificates"):
        raise UsageError(f"warehouse {warehouse.root}: nothing was certified in it yet; run `recgpt import` first")
    with open_tables(warehouse) as tables:
        for contract in all_contracts().values():
            if contract.kind == "record":
                partitions = {"ds": {ds}} if ds is not None and "ds" in contract.partition_by else {}
                files = sound_files(findings, tables, contract, **partitions)
                check_keys(findings, tables, contract, files, where=contract.name, next_step=RESTORE)
        scope = find_scope(findings, tables, ds)
        check_generations(findings, tables, scope)
        check_certificates(findings, tables, scope)
        check_publications(findings, tables, scope)
        check_users(findings, tables, scope)
        check_explanations(findings, tables, scope)
        check_quarantine(findings, tables, scope)
        check_calls(findings, tables, scope)
        check_call_ids(findings, tables, scope)
        check_ledger(findings, tables, scope, ledger=ledger, keep_days=ledger_days)
    return findings
