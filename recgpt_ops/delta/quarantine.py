"""Rows that could not be imported or computed, each with what was wrong."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from recgpt_ops.delta.records import append_records
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.ids import row_id


class QuarantineRow(NamedTuple):
    """One row of the table `quarantine`. `reason` is a snake_case word that is counted, `raw` the row as it came."""

    table_name: str
    row_key: str
    stage: str
    reason: str
    detail: str
    raw: str
    ds: str | None = None
    scenario: str | None = None
    method: str | None = None
    import_id: str | None = None
    user_id: str | None = None
    attempt: int | None = None

    @property
    def quarantine_id(self) -> str:
        """One row an attempt, so that what went wrong with a row each time can be read (022).

        An import has no attempts: there the same fault of the same row is one row, however often it is met.
        """
        night = () if self.attempt is None else (self.scenario, self.attempt)
        return row_id((self.table_name, self.row_key, self.stage, self.ds, self.method, self.reason, self.raw, *night))


def quarantine_rows(warehouse: Warehouse, rows: Sequence[QuarantineRow]) -> int:
    """Writes the rows that are not in quarantine yet; returns how many that were."""
    now = datetime.now(UTC)
    return append_records(
        warehouse,
        "quarantine",
        [{"quarantine_id": row.quarantine_id, **row._asdict(), "quarantined_at": now} for row in rows],
    )
