"""What a night shows its readers, in a form in which two nights can be compared: keys, rows, certificates, pointers, calls."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from recgpt_ops.delta.certificates import certificates
from recgpt_ops.delta.pointer import visible_publications
from recgpt_ops.delta.reading import generation_files, read_rows
from recgpt_ops.delta.sql import connect
from recgpt_ops.delta.warehouse import open_warehouse
from recgpt_ops.ledger.summaries import ledger_root
from recgpt_ops.maintenance.maintain import Ages, maintain
from recgpt_ops.settings import load_settings
from recgpt_ops.tables import all_contracts
from recgpt_ops.verification.findings import Findings
from recgpt_ops.verification.verify import verify_warehouse
from recgpt_ops.views import shown_name

Key = tuple[str, ...]


class Shown(NamedTuple):
    """By table the multiset of keys and of whole rows without what differs from run to run; certificates, visible methods, calls.

    And what `recgpt verify` finds.
    """

    keys: dict[str, Counter[Key]]
    rows: dict[str, Counter[str]]
    certificates: Counter[Key]
    visible: Counter[str]
    calls: Counter[str]
    faults: list[str]

    @property
    def row_count(self) -> int:
        """Rows of all tables."""
        return sum(keys.total() for keys in self.keys.values())


class Difference(NamedTuple):
    """Against the night that nobody killed: keys that are missing, keys that are too many, and what else is not equal."""

    lost: int
    doubled: int
    others: list[str]


def shown(root: Path) -> Shown:
    """Everything that a reader sees of the night and of the history that it was made from."""
    warehouse = open_warehouse(str(root))
    settings = load_settings(warehouse=str(root))
    connection = connect(warehouse)
    keys: dict[str, Counter[Key]] = {}
    rows: dict[str, Counter[str]] = {}
    made = Counter[Key]()
    for contract in all_contracts().values():
        if contract.kind not in {"night", "state"}:
            continue
        name = contract.name
        found = connection.sql(f"SELECT * FROM {shown_name(contract)}").to_arrow_table().to_pylist()
        keys[name] = Counter(tuple(str(row[column]) for column in contract.digest_key) for row in found)
        rows[name] = Counter(told(row, contract.volatile) for row in found)
        certified = certificates(warehouse, table=contract.name)
        made.update((row.table_name, row.partition, row.publish_id, str(row.row_count), row.row_digest) for row in certified)
    visible = Counter(f"{ds} {method} {row['publish_id']}" for (ds, _, method), row in visible_publications(warehouse).items())
    calls = Counter(str(row["call_id"]) for row in read_rows(warehouse, "llm_calls"))
    findings = verify_warehouse(
        warehouse,
        Findings(),
        ds=None,
        ledger=ledger_root(settings, warehouse.root),
        ledger_days=settings.ledger.keep_days,
    )
    return Shown(keys, rows, made, visible, calls, [difference.line for difference in findings.differences])


def orphans(root: Path) -> list[str]:
    """What is left below a warehouse, after maintenance that spares no age, of which no table's log knows."""
    warehouse, ages = open_warehouse(str(root)), Ages(timedelta(0), timedelta(days=1), timedelta(0))
    for _ in range(2):  # files of generations that the first drops go with the second's vacuum
        maintain(warehouse, ledger=root / "_ledger", ages=ages, now=datetime.now(UTC), say=lambda _: None)
    tables = [name for name in all_contracts() if warehouse.exists(name)]
    named = {Path(file.path) for table in tables for file in generation_files(warehouse, table)}
    left = [path for table in tables for path in Path(warehouse.path(table)).rglob("*.parquet") if "_delta_log" not in path.parts]
    staged = [path for path in (root / "_staging").rglob("*") if path.is_file()]
    return [f"orphan {path.relative_to(root)}" for path in sorted({*left, *staged} - named)]


def told(row: dict[str, Any], volatile: tuple[str, ...]) -> str:
    """A row in one spelling."""
    return json.dumps({name: value for name, value in row.items() if name not in volatile}, sort_keys=True, default=str)


def compare(night: Shown, unkilled: Shown) -> Difference:
    """How a night that was killed and run again differs from one that was not."""
    tables = sorted(night.keys.keys() | unkilled.keys.keys())
    pairs = [(night.keys.get(table, Counter()), unkilled.keys.get(table, Counter())) for table in tables]
    lost = sum((wanted - found).total() for found, wanted in pairs) + (unkilled.visible - night.visible).total()
    doubled = sum((found - wanted).total() for found, wanted in pairs) + (night.visible - unkilled.visible).total()
    others = [table for table in tables if night.rows.get(table) != unkilled.rows.get(table)]
    others += ["certificates"] if night.certificates != unkilled.certificates else []
    others += ["llm_calls"] if night.calls != unkilled.calls else []
    return Difference(lost, doubled, others + night.faults)
