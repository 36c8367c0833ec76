"""Feeds as a night may read them: what had arrived, and the version of an item or a profile that holds."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from recgpt_ops.delta.inputs import feeds_digest
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.ids import row_id
from recgpt_ops.spark import read_delta


def arrived_events(session: SparkSession, warehouse: Warehouse, ds: str) -> DataFrame:
    """The events that the night of `ds` may read: happened and arrived by its end. Later partitions are not opened."""
    return visible_events(read_delta(session, warehouse.path("behavior_events")), ds)


def visible_events(events: DataFrame, ds: str) -> DataFrame:
    """Nothing at or after the end of `ds`, and nothing that arrived later (062)."""
    return events.filter((F.col("arrived_month") <= ds[:7]) & (F.col("arrived_ds") <= ds) & (F.col("event_ds") <= ds))


def as_of(versions: DataFrame, ds: str, *, key: str) -> DataFrame:
    """One row per key: the version that holds on `ds`, if one does.

    The newest version that has begun replaces those before it; where it has ended too, nothing holds.
    """
    newest_first = Window.partitionBy(key).orderBy(F.desc("valid_from_ds"))
    return (
        versions.filter(F.col("valid_from_ds") <= ds)
        .withColumn("version_rank", F.row_number().over(newest_first))
        .filter((F.col("version_rank") == 1) & (F.col("valid_to_ds").isNull() | (F.col("valid_to_ds") >= ds)))
        .drop("version_rank")
    )


def current_items(session: SparkSession, warehouse: Warehouse, ds: str) -> DataFrame:
    """The items as of `ds`."""
    return as_of(read_delta(session, warehouse.path("items")), ds, key="item_id")


def current_profiles(session: SparkSession, warehouse: Warehouse, ds: str) -> DataFrame:
    """The profiles as of `ds`; only users with one can be in a night."""
    return as_of(read_delta(session, warehouse.path("user_profiles")), ds, key="user_id")


def user_hash() -> Column:
    """Sort key of "the N users with the smallest sha256(user_id)", equal to ids.user_order."""
    return F.sha2(F.col("user_id"), 256)


def feeds_version(warehouse: Warehouse, ds: str, *more: str) -> str:
    """One digest of everything the night of `ds` reads of the feeds, and of what else a stage depends on."""
    digests = sorted(feeds_digest(warehouse, ds).items())
    return row_id([*(value for pair in digests for value in pair), *more])
