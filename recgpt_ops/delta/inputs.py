"""What a night reads from the feeds, as digests of content: the order of rows, files and imports plays no part.

Rows of a feed never change once they landed, so its keys (and the hash of the text, where there is one) tell everything. Two or three
columns are read; an import of later days, a compaction or a copy of the warehouse leaves the digest of a night as it is.
"""

from __future__ import annotations

from collections.abc import Collection

import duckdb

from recgpt_ops.delta.digests import sums_digest, text_sql
from recgpt_ops.delta.faults import told_plainly
from recgpt_ops.delta.reading import files_dataset, generation_files
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.tables import load_contract

# feed -> the column that says from which ds on a row counts, and the columns that tell the rows apart
READ_BY_NIGHTS = {
    "behavior_events": ("arrived_ds", ("event_id",)),
    "items": ("valid_from_ds", ("item_id", "valid_from_ds", "text_hash")),
    "user_profiles": ("valid_from_ds", ("user_id", "valid_from_ds", "text_hash")),
}


def feeds_digest(warehouse: Warehouse, ds: str) -> dict[str, str]:
    """Feed -> digest of the rows that a night of `ds` may read: arrived, or valid, by `ds`. A feed that is not there counts as empty."""
    return {table: feed_digest(warehouse, table, ds) for table in READ_BY_NIGHTS}


def feed_digest(warehouse: Warehouse, table: str, ds: str) -> str:
    """The digest of one feed as of `ds`."""
    return feed_digests(warehouse, table, [ds])[ds]


def feed_digests(warehouse: Warehouse, table: str, days: Collection[str]) -> dict[str, str]:
    """The digests of one feed as of each of some days, in one pass: the sums of a day are those of the day before and its own."""
    contract = load_contract(table)
    since, columns = READ_BY_NIGHTS[table]
    last = max(days)
    files = [file for file in generation_files(warehouse, table) if file.partition.get("arrived_month", "") <= last[:7]]
    text = text_sql(contract, columns)
    query = (
        "SELECT since, count(*), sum((k & 18446744073709551615::uhugeint)::hugeint), sum((k >> 64)::hugeint) "
        f'FROM (SELECT "{since}" AS since, md5_number({text}) AS k FROM feed WHERE "{since}" <= ?) GROUP BY since'
    )
    with told_plainly(f"{contract.table_id}, ds={last}"), duckdb.connect() as connection:
        connection.register("feed", files_dataset(contract, files))
        sums = connection.execute(query, [last]).fetchall()
    return {day: sums_digest(*(sum(int(row[place]) for row in sums if row[0] <= day) for place in (1, 2, 3))) for day in days}
