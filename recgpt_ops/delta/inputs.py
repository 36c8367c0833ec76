"""What a night reads from the feeds, as digests of content: the order of rows, files and imports plays no part.

Rows of a feed never change once they landed, so its keys (and the hash of the text, where there is one) tell everything. Two or three
columns are read; an import of later days, a compaction or a copy of the warehouse leaves the digest of a night as it is.
"""

from __future__ import annotations

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
    contract = load_contract(table)
    since, columns = READ_BY_NIGHTS[table]
    files = [file for file in generation_files(warehouse, table) if file.partition.get("arrived_month", "") <= ds[:7]]
    text = text_sql(contract, columns)
    query = (
        "SELECT count(*), sum((k & 18446744073709551615::uhugeint)::hugeint), sum((k >> 64)::hugeint) "
        f'FROM (SELECT md5_number({text}) AS k FROM feed WHERE "{since}" <= ?)'
    )
    with told_plainly(f"{contract.table_id}, ds={ds}"), duckdb.connect() as connection:
        connection.register("feed", files_dataset(contract, files))
        count, low, high = connection.execute(query, [ds]).fetchone() or (0, None, None)
    return sums_digest(count, int(low or 0), int(high or 0))
