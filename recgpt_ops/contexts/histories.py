"""Histories: reliable behaviors grouped by time bucket, user and action (RecGPT V1, section 2.3, step 1).

    2017-10-28  u1 bought apples (2), apples (1), bread (1)
    ->  (2017-10-28, u1, purchase)  entries [(bread, 1 event), (apples, 2 events, 3 pieces)]   newest first

The buckets are the state: a night builds again only those that something new touches, each as a new generation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from recgpt_ops.contexts.behaviors import is_reliable, is_trade, reliable_behaviors, returned_pairs
from recgpt_ops.contexts.buckets import BUCKET_CHARS, StateTable, bucket_span, calendar_buckets


def build_histories(events: DataFrame, table: StateTable, buckets: Sequence[str], *, max_bucket_entries: int) -> DataFrame:
    """The rows of `buckets`, all columns of the table but publish_id and arrived_cut_ds.

    `events` are all events the night may read, because a return may stand in another bucket than its purchase. Entries are cut
    to the newest `max_bucket_entries` before anything is collected, so that one busy user costs a sort and no more (076).
    """
    bucket = bucket_of(table)
    first, last = min(buckets), max(buckets)
    touching = events.filter(is_trade() | bucket.between(first, last))
    entries = (
        reliable_behaviors(touching)
        .withColumn("bucket", bucket)
        .filter(F.col("bucket").isin(*buckets))
        .groupBy("bucket", "user_id", "user_bucket", "action", "item_id", entry_query().alias("query"))
        .agg(
            F.count(F.lit(1)).alias("entry_events"),
            F.sum("quantity").alias("entry_quantity"),
            F.max("event_at").alias("entry_last_event_at"),
        )
    )
    newest_first = Window.partitionBy("bucket", "user_id", "action").orderBy(
        F.desc("entry_last_event_at"), F.asc_nulls_first("item_id"), F.asc_nulls_first("query")
    )
    place = F.col("place")
    entry = F.struct(
        place,
        F.col("item_id"),
        F.col("query"),
        F.col("entry_events").alias("event_count"),
        F.col("entry_quantity").alias("quantity"),
        F.col("entry_last_event_at").alias("last_event_at"),
    )
    return (
        entries.withColumn("place", F.row_number().over(newest_first))
        .groupBy("bucket", "user_id", "user_bucket", "action")
        .agg(
            F.array_sort(F.collect_list(F.when(place <= max_bucket_entries, entry))).alias("placed_entries"),
            F.count(F.lit(1)).alias("entry_count"),
            F.sum("entry_events").alias("event_count"),
            F.max("entry_last_event_at").alias("last_event_at"),
        )
        .select(
            "bucket",
            "user_id",
            "user_bucket",
            "action",
            F.transform("placed_entries", without_place).alias("entries"),
            "entry_count",
            "event_count",
            "last_event_at",
        )
    )


def without_place(placed: Column) -> Column:
    """An entry without the place that it was sorted by."""
    names = ("item_id", "query", "event_count", "quantity", "last_event_at")
    return F.struct(*[placed[name].alias(name) for name in names])


def bucket_of(table: StateTable) -> Column:
    """The bucket an event falls into."""
    return F.substring("event_ds", 1, BUCKET_CHARS[table])


def entry_query() -> Column:
    """What an entry without an item is about: the words searched for, or the campaign."""
    return F.when(F.col("item_id").isNull(), F.coalesce(F.col("query"), F.col("campaign_id")))


def touched_buckets(events: DataFrame, table: StateTable, ds: str, *, since: str | None) -> DataFrame:
    """(bucket, newest_arrived_ds): when something last arrived that changes the bucket; after `since`, or at any time.

    A return, or a late purchase, changes every bucket in which the same user bought the same item.
    """
    first_ds, last_ds = bucket_span(table, ds)
    in_span = F.col("event_ds") <= last_ds if first_ds is None else F.col("event_ds").between(first_ds, last_ds)
    bucket = bucket_of(table).alias("bucket")
    is_new = F.lit(True) if since is None else (F.col("arrived_month") >= since[:7]) & (F.col("arrived_ds") > since)
    direct = events.filter(is_new & in_span & is_reliable()).select(bucket, "arrived_ds")
    trades = events.filter(is_trade()).join(returned_pairs(events), ["user_id", "item_id"], "left_semi")
    newest = trades.filter(is_new).groupBy("user_id", "item_id").agg(F.max("arrived_ds").alias("arrived_ds"))
    netted = (
        trades.filter(in_span & (F.col("action") == "purchase"))
        .select("user_id", "item_id", bucket)
        .join(newest, ["user_id", "item_id"])
        .select("bucket", "arrived_ds")
    )
    return direct.unionByName(netted).groupBy("bucket").agg(F.max("arrived_ds").alias("newest_arrived_ds"))


def buckets_to_build(table: StateTable, ds: str, *, touched: Mapping[str, str], cuts: Mapping[str, str]) -> list[str]:
    """The buckets that need a new generation, oldest first.

    `touched` is bucket -> newest arrived_ds, `cuts` bucket -> arrived_cut_ds of the generation that the night would read. A
    calendar bucket without data is built too: that it is empty is then certified.
    """
    needed = {*calendar_buckets(table, ds), *touched}
    return sorted(bucket for bucket in needed if bucket not in cuts or touched.get(bucket, "") > cuts[bucket])
