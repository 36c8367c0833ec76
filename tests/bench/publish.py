"""Times the publishing of a million rows against a bare write with the same rules in SQL.

    python -m tests.bench.publish [--rows 1000000] [--rounds 3]

    ours   publish_arrow: conform, stage, check what was staged (Great Expectations; digests of keys and rows), commit, certificate
    twin   write_deltalake of the same rows; then over its files, by DuckDB: every rule of the contract, uniqueness, one hash of all keys

Both take turns in this process, on tables of their own, after imports and a first small generation. Printed: seconds of each, the
ratio of the medians (at most 3), and how busy the machine was.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

import recgpt_ops.delta.checks  # noqa: F401  # Great Expectations is loaded outside of the clock
from recgpt_ops.delta.certificates import certificates
from recgpt_ops.delta.check_columns import contract_checks
from recgpt_ops.delta.digests import text_sql
from recgpt_ops.delta.generations import publish_arrow
from recgpt_ops.delta.schemas import arrow_schema
from recgpt_ops.delta.violations import breaking_sql
from recgpt_ops.delta.warehouse import Warehouse, fix_identity, open_warehouse
from recgpt_ops.tables import load_contract

MAX_RATIO = 3.0
TABLE, DS = "intent_tags", "2017-10-30"
TAGS_A_USER = 10


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-publish-") as scratch:
        warehouse = open_warehouse(f"{scratch}/warehouse", create=True)
        fix_identity(warehouse, zone="America/New_York", locale="en-US")
        publish_ours(warehouse, tags(1000, "warm"), "warm")
        publish_twin(Path(scratch) / "warm", tags(1000, "warm"))
        ours, twins = [], []
        for number in range(arguments.rounds):
            rows = tags(arguments.rows, f"p{number}")
            ours.append(seconds(lambda rows=rows, name=f"p{number}": publish_ours(warehouse, rows, name)))  # type: ignore[misc]  # a default binds the loop's value
            twins.append(seconds(lambda rows=rows, path=Path(scratch) / f"twin{number}": publish_twin(path, rows)))  # type: ignore[misc]  # as above
            tell(f"round {number + 1}: ours {ours[-1]:.2f} s, twin {twins[-1]:.2f} s, ratio {ours[-1] / twins[-1]:.2f}")
        found = {one.row_count for one in certificates(warehouse, table=TABLE) if one.publish_id != "warm"}
    ratio = statistics.median(ours) / statistics.median(twins)
    tell(
        f"bench-publish: {arguments.rows} rows of {TABLE}, ours {statistics.median(ours):.2f} s, twin {statistics.median(twins):.2f} s, "
        f"ratio {ratio:.2f} (at most {MAX_RATIO}); {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    )
    return 0 if ratio <= MAX_RATIO and found == {arguments.rows} else 1


def tell(line: str) -> None:
    """One line of the report, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def seconds(run: Callable[[], None]) -> float:
    """How long a call takes."""
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def tags(count: int, publish_id: str) -> pa.Table:
    """Rows as a night makes them: ids of 64 hex digits, ten tags a user, scores that differ."""
    users, places = np.arange(count) // TAGS_A_USER, np.arange(count) % TAGS_A_USER
    columns = {
        "ds": pa.repeat(DS, count), "publish_id": pa.repeat(publish_id, count), "scenario": pa.repeat("default", count),
        "method": pa.repeat("v2", count), "user_id": pa.array([f"user-{user:08d}" for user in users]),
        "user_bucket": pa.array(users % 1024, pa.int32()), "tag_id": pa.array([f"{place:064x}" for place in places]),
        "intent_tag_id": pa.array([f"{number:064x}" for number in range(count)]), "locale": pa.repeat("en-US", count),
        "tag": pa.array([f"kind of item {number % 5000}" for number in range(count)]), "rank": pa.array(places + 1, pa.int32()),
        "score": pa.array(np.random.default_rng(7).normal(-2, 1, count)),
        "persona_indexes": pa.array([[1 + place % 3, 4] for place in places], pa.list_(pa.int32())),
        "pool_index": pa.array(places + 1, pa.int32()), "reason": pa.nulls(count, pa.string()),
        "call_id": pa.array([f"{user:064x}" for user in users]),
    }  # fmt: skip
    return pa.table(columns).select(load_contract(TABLE).column_names).cast(arrow_schema(load_contract(TABLE)))


def publish_ours(warehouse: Warehouse, rows: pa.Table, publish_id: str) -> None:
    """The whole of a generation."""
    publish_arrow(warehouse, TABLE, rows, publish_id=publish_id, scopes=[DS], fence=1, input_digest="bench")


def publish_twin(path: Path, rows: pa.Table) -> None:
    """A bare write, then rules and key hash in SQL over what was written."""
    contract = load_contract(TABLE)
    write_deltalake(str(path), rows, partition_by=list(contract.partition_by))
    single = [check for check in contract_checks(contract) if check.rule != "unique"]
    broken = ", ".join(f"count_if({breaking_sql(contract, check)})" for check in single)
    key = ", ".join(f'"{name}"' for name in contract.key)
    number = f"md5_number({text_sql(contract, contract.digest_key)})"
    with duckdb.connect() as connection:
        files = [uri.removeprefix("file://") for uri in DeltaTable(str(path)).file_uris()]
        connection.execute(
            f"CREATE VIEW written AS SELECT * FROM read_parquet({files!r}, hive_partitioning = true, hive_types_autocast = false)"
        )
        counts = connection.execute(f"SELECT bit_xor({number}), {broken} FROM written").fetchone()
        doubled = connection.execute(f"SELECT count(*) FROM (SELECT {key} FROM written GROUP BY ALL HAVING count(*) > 1)").fetchone()
    assert counts is not None
    assert doubled == (0,)
    assert not any(counts[1:])


if __name__ == "__main__":
    raise SystemExit(main())
