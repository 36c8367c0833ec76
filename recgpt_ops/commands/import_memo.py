"""What was imported before, so that importing the same files again takes a second: `<warehouse>/_imports/<fingerprint>.json`.

Only a shortcut. Without the memo the import itself finds every row already there; a memo counts only as long as the certificates
of what it tells of exist.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path

from recgpt_ops.delta.certificates import certificates
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.imports.report import ImportReport, TableReport


def fingerprint(parts: Iterable[str], files: Iterable[Path]) -> str:
    """sha256 of everything that decides what an import brings: `parts` (mapping digests, options) and the bytes of its files."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() + b"\0")
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def memo_path(warehouse: Warehouse, name: str) -> Path:
    """Where the memo of one fingerprint lies."""
    return Path(warehouse.root) / "_imports" / f"{name}.json"


def recall(warehouse: Warehouse, name: str) -> ImportReport | None:
    """The report of the same import, now with every row already there; None when it has to be read again."""
    path = memo_path(warehouse, name)
    if not path.exists():
        return None
    told = json.loads(path.read_text())
    tables = [TableReport(**{**table, "warnings": tuple(table["warnings"])}) for table in told["tables"]]
    landed = {(certificate.table_name, certificate.publish_id) for certificate in certificates(warehouse)}
    filled = {table for table, _ in landed}
    # An import that brought nothing new has no certificate of its own: other imports had brought its rows.
    if not all((table.table, table.import_id) in landed if table.kept else table.table in filled for table in tables):
        return None
    seen = tuple(replace(table, kept=0, already_there=table.kept + table.already_there) for table in tables)
    return ImportReport(told["source"], seen, 0.0, 0)


def remember(warehouse: Warehouse, name: str, report: ImportReport) -> None:
    """Writes the memo. An import with rows that lay in the future is not remembered: they may land another day."""
    if any("future" in reason for table in report.tables for reason in table.quarantined):
        return
    path = memo_path(warehouse, name)
    path.parent.mkdir(exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps({"source": report.source, "tables": [asdict(table) for table in report.tables]}))
    partial.rename(path)
