"""Where the tables lie, and who the warehouse belongs to: its business time zone and default locale.

    <root>/<table>_v<N>/        one Delta table each
    <root>/_staging/ _ledger/ _progress/ _models/      no tables; Delta's vacuum leaves names that begin with _ alone

Zone and locale stand in the properties of the feed tables, so that a copy that holds only feeds and the ledger still knows them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import CommitFailedError

from recgpt_ops.delta.faults import told_plainly
from recgpt_ops.delta.schemas import arrow_schema
from recgpt_ops.effects import effect
from recgpt_ops.errors import NightError, UsageError
from recgpt_ops.tables import load_contract

ZONE, LOCALE = "recgpt.business_time_zone", "recgpt.default_locale"
FEEDS = ("behavior_events", "items", "user_profiles")
MAX_TRIES = 20

# Everything that some reader cannot do is off. No statistics of columns: an erased id must not stay in the log.
PROPERTIES: dict[str, str | None] = {
    "delta.enableDeletionVectors": "false",
    "delta.columnMapping.mode": "none",
    "delta.dataSkippingNumIndexedCols": "0",
}


@dataclass(frozen=True)
class Warehouse:
    """All tables of one tenant and data set."""

    root: str

    def path(self, table: str) -> str:
        """Folder of a table, whether it exists or not."""
        return str(Path(self.root) / load_contract(table).table_id)

    def exists(self, table: str) -> bool:
        """Whether the table was created."""
        return DeltaTable.is_deltatable(self.path(table))

    def open(self, table: str) -> DeltaTable:
        """The newest version of a table; UsageError when it was never created."""
        if not self.exists(table):
            producer = load_contract(table).producer
            raise UsageError(f"{table}: there is no such table in warehouse {self.root}; {producer} makes it")
        with told_plainly(table, root=self.path(table)):
            return DeltaTable(self.path(table))

    @property
    def zone(self) -> str:
        """The business time zone; UsageError before the first import."""
        return self._identity()[0]

    @property
    def locale(self) -> str:
        """The language of users and items that name none; UsageError before the first import."""
        return self._identity()[1]

    def _identity(self) -> tuple[str, str]:
        found = read_identity(self)
        if found is None:
            raise UsageError(f"warehouse {self.root} holds no data yet; run `recgpt import` first")
        return found


def open_warehouse(root: str, *, create: bool = False) -> Warehouse:
    """The warehouse at `root`, an absolute path from here on; `create` makes the folder. UsageError when it is missing or locked."""
    path = Path(root).expanduser().absolute()
    if create:
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"warehouse {path} cannot be made: {error.strerror}; mend that or name another with --warehouse") from None
    if not os.path.isdir(path):  # a name that is too long is no folder, where Path.is_dir raises
        what = "is a file" if os.path.exists(path) else "does not exist"
        raise UsageError(f"warehouse {path} {what}; run `recgpt import` to make one, or name another with --warehouse")
    needed = os.R_OK | os.X_OK | (os.W_OK if create else 0)
    if not os.access(path, needed):
        raise UsageError(f"warehouse {path} cannot be {'written' if create else 'read'} by this user; mend its rights or name another")
    return Warehouse(str(path))


def read_identity(warehouse: Warehouse) -> tuple[str, str] | None:
    """(zone, locale) from the first feed table there is; None when nothing was imported."""
    for table in FEEDS:
        if warehouse.exists(table):
            properties = warehouse.open(table).metadata().configuration
            if ZONE in properties and LOCALE in properties:
                return properties[ZONE], properties[LOCALE]
    return None


def fix_identity(warehouse: Warehouse, *, zone: str, locale: str) -> None:
    """Writes zone and locale into the feed tables, which are created; another pair later is refused."""
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        raise UsageError(f"{zone!r} is no time zone; name one such as America/New_York") from None
    found = read_identity(warehouse)
    if found is not None and found != (zone, locale):
        raise UsageError(
            f"warehouse {warehouse.root} is fixed to zone {found[0]} and locale {found[1]}, but this import says {zone} and {locale}; "
            "import into another --warehouse"
        )
    for table in FEEDS:
        create_with(warehouse, table, {ZONE: zone, LOCALE: locale})


def create_table(warehouse: Warehouse, table: str) -> None:
    """Creates an empty table from its contract; does nothing when it is there. A feed takes the warehouse's zone and locale along."""
    create_with(warehouse, table, {ZONE: warehouse.zone, LOCALE: warehouse.locale} if table in FEEDS else {})


def create_with(warehouse: Warehouse, table: str, properties: dict[str, str]) -> None:
    """`create_table` with further properties; `mode="ignore"` lets two jobs create it at the same time."""
    if warehouse.exists(table):
        add_new_columns(warehouse, table)
        return
    contract = load_contract(table)
    with told_plainly(table, root=warehouse.root), effect("table.create", table):
        DeltaTable.create(
            warehouse.path(table),
            schema=arrow_schema(contract),
            mode="ignore",
            partition_by=list(contract.partition_by),
            name=contract.table_id,
            description=contract.description,
            configuration={**PROPERTIES, **properties},
            raise_if_key_not_exists=False,  # recgpt.* is not Delta's
        )


def add_new_columns(warehouse: Warehouse, table: str) -> None:
    """Gives a table that an older version of this project made the nullable columns that its contract has got since."""
    contract = load_contract(table)
    for _ in range(MAX_TRIES):
        delta = warehouse.open(table)
        present = {field.name for field in delta.schema().fields}
        missing = [field for field in arrow_schema(contract) if field.name not in present and contract.column(field.name).nullable]
        if not missing:
            return
        try:
            with told_plainly(table, root=warehouse.root), effect("table.create", table):
                delta.alter.add_columns(list(Schema.from_arrow(pa.schema(missing)).fields))
        except CommitFailedError:
            continue  # somebody committed in between, perhaps these very columns
    raise NightError(f"{table}: other jobs kept committing for {MAX_TRIES} tries while columns were added; run it again")
