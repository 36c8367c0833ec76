"""What sells more than usual, counted from the events: the last 7 days against the 28 days before."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from recgpt_ops.contexts.buckets import days_before

RECENT_DAYS, USUAL_DAYS = 7, 28
MIN_RECENT_PURCHASES = 20  # below it the ratio is chance
MIN_RECENT_USERS = 5  # one household's party is no trend
MIN_RATIO = 1.2


def count_trends(events: DataFrame, items: DataFrame, ds: str, *, trend_count: int) -> DataFrame:
    """(name, value): the item types whose purchases a day grew most, highest first, ties by name; at most `trend_count`.

    `value` = purchases a day over the 7 days up to `ds`, divided by purchases a day over the 28 days before those. A type
    that nobody bought in those 28 days has no ratio and is left out. Without types, titles stand in.
    """
    recent_from, usual_from = days_before(ds, RECENT_DAYS - 1), days_before(ds, RECENT_DAYS + USUAL_DAYS - 1)
    is_recent = F.col("event_ds") >= recent_from
    named = items.select("item_id", F.coalesce("item_type", "title").alias("name"))
    counted = (
        events.filter((F.col("action") == "purchase") & F.col("event_ds").between(usual_from, ds))
        .join(named, "item_id")
        .groupBy("name")
        .agg(
            F.count(F.when(is_recent, 1)).alias("recent_count"),
            F.count(F.when(~is_recent, 1)).alias("usual_count"),
            F.countDistinct(F.when(is_recent, F.col("user_id"))).alias("recent_users"),
        )
    )
    value = (F.col("recent_count") / RECENT_DAYS) / (F.nullif(F.col("usual_count"), F.lit(0)) / USUAL_DAYS)
    has_support = (F.col("recent_count") >= MIN_RECENT_PURCHASES) & (F.col("recent_users") >= MIN_RECENT_USERS)
    return (
        counted.filter(has_support)
        .select("name", value.alias("value"))
        .filter(F.col("value") >= MIN_RATIO)  # null, where there is no ratio, is no trend
        .orderBy(F.desc("value"), "name")
        .limit(trend_count)
    )
