"""Spark's part of an import: identities of rows, reading them in parallel, what is there already, validity periods.

Two steps, each written as Parquet because nothing else keeps a DataFrame from being computed again:

    landed -> read:   every row with its verdict (kept, dropped, quarantined) and typed columns
    read   -> fresh:  the kept rows that are new, in the shape of the contract
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from recgpt_ops.delta.faults import storage_errno
from recgpt_ops.ids import NULL, SEPARATOR
from recgpt_ops.imports.landing import META, Landed
from recgpt_ops.imports.reading import Reading, read_batches, spark_ddl
from recgpt_ops.tables import load_contract

FIRST_DS = "0001-01-01"
CONTENT = {"items": ("locale", "title", "category", "item_type", "brand"), "user_profiles": ("locale", "region", "text_hash")}
KEY = {"items": "item_id", "user_profiles": "user_id"}


def landed_frame(session: SparkSession, landed: Landed, names: dict[str, str] | None = None) -> DataFrame:
    """What was landed. With `names` (source column -> our word) its columns are called so; else c0, c1, ..."""
    frame = session.read.parquet(str(landed.directory))
    if names is None:
        return frame
    return frame.select(*(name for name, _ in META), *(F.col(landed.column(source)).alias(name) for source, name in names.items()))


def joined(columns: Sequence[str | Column]) -> Column:
    """Texts joined for a hash, as `ids.row_id` does: null is NUL, the unit separator between."""
    texts = [F.coalesce(F.col(c) if isinstance(c, str) else c, F.lit(NULL)) for c in columns]
    return F.concat_ws(SEPARATOR, *texts)


def with_row_identity(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Adds `identity` for rows without a natural key: the raw values, and which of the equal rows of its file this one is.

        line 2: u1,tea,1   line 3: u1,milk,1   line 4: u1,tea,1    ->    u1,tea,1 #1   u1,milk,1 #1   u1,tea,1 #2

    `columns` are sorted by the source's names, so that a file with other column order gives the same events. A row that could not
    be split is told by its text.
    """
    values = F.when(F.col("fault").isNotNull(), F.coalesce("raw", joined(columns))).otherwise(joined(columns))
    equal = Window.partitionBy(F.xxhash64("identity"), "file", "identity").orderBy("line")  # the number first: it is quick to compare
    numbered = frame.withColumn("identity", values).withColumn("ordinal", F.row_number().over(equal).cast("string"))
    return numbered.withColumn("identity", F.concat_ws(SEPARATOR, "identity", "ordinal")).drop("ordinal")


def read_rows(frame: DataFrame, reading: Reading) -> DataFrame:
    """Every row with verdict and typed columns."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return read_batches(batches, reading)

    return frame.mapInArrow(read, spark_ddl(reading.mapping.table))


def fresh_events(read: DataFrame, *, source: str, import_id: str, existing: DataFrame | None) -> DataFrame:
    """Kept events that are not there yet, as the contract has them. Of rows with one id the first in file order stays."""
    events = read.filter(F.col("verdict") == "kept")
    if events.count() != events.select("event_id").distinct().count():  # rarely: sorting all rows is dear
        first = Window.partitionBy("event_id").orderBy("file", "line")
        events = events.withColumn("place", F.row_number().over(first)).filter(F.col("place") == 1)
    if existing is not None:
        events = events.join(existing.select("event_id"), "event_id", "left_anti")
    dated = events.withColumn("arrived_month", F.substring("arrived_ds", 1, 7))
    return in_contract_order(dated, table="behavior_events", source=source, import_id=import_id)


def there_count(read: DataFrame, existing: DataFrame | None) -> int:
    """How many distinct kept events are in the table already."""
    if existing is None:
        return 0
    ids = read.filter(F.col("verdict") == "kept").select("event_id").distinct()
    return ids.join(existing.select("event_id"), "event_id", "left_semi").count()


def judge_versions(read: DataFrame, *, table: str, existing: DataFrame | None, arrived_ds: str | None) -> DataFrame:
    """Kept items or profiles with their validity, and the final verdict of each: kept, there, dropped or quarantined.

        85123A  CREAM HANGING HEART  first seen 2009-12-01         85123A  CREAM HANGING HEART  from 0001-01-01
        85123A  WHITE HANGING HEART  first seen 2010-03-05    ->   85123A  WHITE HANGING HEART  from 2010-03-05
        85123A  CREAM HANGING HEART  seen again 2010-04-01         dropped: same_again

    Rows without a date of their own count as one day: the last in file order stands, the others are `superseded`. A changed text
    of something that is there takes `arrived_ds` as its first day; without one it goes to quarantine.
    """
    key, day = KEY[table], F.coalesce("valid_from_ds", F.lit(""))
    same = Window.partitionBy(key, "content").orderBy(day, "file", "line")
    frame = read.filter(F.col("verdict") == "kept").withColumn("content", F.sha2(joined(CONTENT[table]), 256))
    frame = frame.withColumn("same_place", F.row_number().over(same))
    if table == "items":  # the price is no part of the content: the latest one known stands
        whole = same.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
        frame = frame.withColumn("price", F.last("price", ignorenulls=True).over(whole))
    frame = frame.filter(F.col("same_place") == 1)
    on_day = Window.partitionBy(key, day).orderBy(F.col("file").desc(), F.col("line").desc())
    frame = frame.withColumn("day_place", F.row_number().over(on_day))
    order = Window.partitionBy(key).orderBy(F.col("day_place") > 1, day)
    frame = frame.withColumn("version", F.row_number().over(order))
    wanted = F.coalesce("valid_from_ds", F.lit(arrived_ds).cast("string"))
    if existing is None:
        verdict, reason = F.lit("kept"), F.lit(None).cast("string")
        starts = F.when(F.col("version") == 1, F.lit(FIRST_DS)).otherwise(wanted)
    else:
        frame = frame.join(known_versions(existing, table), key, "left")
        is_new = F.col("latest_ds").isNull()
        is_later = wanted.isNotNull() & (wanted > F.col("latest_ds")) & (F.col("content") != F.col("latest_content"))
        is_there = ~is_new & F.array_contains("contents", F.col("content")) & ~F.coalesce(is_later, F.lit(False))
        verdict = (
            F.when(is_there, "there").when(~is_new & (wanted.isNull() | F.array_contains("days", wanted)), "quarantined").otherwise("kept")
        )
        reason = F.when(wanted.isNull(), "changed_without_date").otherwise("version_conflict")
        starts = F.when(is_new & (F.col("version") == 1), F.lit(FIRST_DS)).otherwise(wanted)
    superseded = F.col("day_place") > 1
    frame = frame.withColumn("verdict", F.when(superseded, "dropped").otherwise(verdict))
    frame = frame.withColumn("reason", F.when(superseded, "superseded").when(F.col("verdict") == "quarantined", reason))
    detail = F.lit("another text is there already; say with --arrived-ds from which day this one holds")
    return frame.withColumn("detail", F.when(F.col("verdict") == "quarantined", detail)).withColumn("valid_from_ds", starts)


def known_versions(existing: DataFrame, table: str) -> DataFrame:
    """Per item or user: the newest version there is, all contents and all first days."""
    versions = existing.withColumn("content", F.sha2(joined(CONTENT[table]), 256))
    return versions.groupBy(KEY[table]).agg(
        F.max("valid_from_ds").alias("latest_ds"),
        F.max_by("content", "valid_from_ds").alias("latest_content"),
        F.collect_set("content").alias("contents"),
        F.collect_set("valid_from_ds").alias("days"),
    )


def in_contract_order(frame: DataFrame, *, table: str, source: str, import_id: str) -> DataFrame:
    """The contract's columns, with where the rows come from."""
    told = frame.withColumn("source", F.lit(source)).withColumn("import_id", F.lit(import_id))
    return told.select(*(F.col(column.name).cast(column.type) for column in load_contract(table).columns))


def write_parquet(frame: DataFrame, directory: Path) -> None:
    """Computes a frame once and for all.

    A frame without rows leaves a file too: the embedded engine writes none, and what is read back from nothing has no columns.
    """
    try:
        frame.write.mode("overwrite").parquet(str(directory))
    except PySparkException as error:
        number = storage_errno(error)
        if number is None:
            raise
        raise OSError(number, os.strerror(number), str(directory)) from None  # its text may hold rows
    if not any(directory.glob("*.parquet")):
        directory.mkdir(parents=True, exist_ok=True)
        pq.write_table(frame.limit(0).toArrow(), directory / "part-empty.parquet")


def verdict_counts(frame: DataFrame) -> dict[tuple[str, str | None], int]:
    """Rows by verdict and reason."""
    return {(row["verdict"], row["reason"]): row["count"] for row in frame.groupBy("verdict", "reason").count().collect()}


def existing_rows(session: SparkSession, files: Sequence[str]) -> DataFrame | None:
    """The rows of a feed by its data files; None when it has none. Partition columns are left out: nothing here reads them."""
    return session.read.parquet(*files) if files else None
