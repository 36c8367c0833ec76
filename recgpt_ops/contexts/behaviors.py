"""Reliable behaviors: what people meant to do, with what they sent back taken away (RecGPT V1, section 2.1).

Ordinary clicks are noise and dropped. A return nets the newest earlier purchases of the same user and item:

    bought 3 on May 1, bought 2 on May 5, returned 4 on May 9   ->   bought 1 on May 1

An entry of which nothing is left disappears; returned pieces that were never bought are counted as unmatched.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

RELIABLE_ACTIONS = ("detail_view", "review_read", "favorite", "cart", "purchase", "search", "coupon", "campaign")


def reliable_behaviors(events: DataFrame) -> DataFrame:
    """The kept events, purchases with the quantity that was not returned. Columns and their order stay those of `events`.

    Only pairs of user and item that have a return take the way over windows; all others are never sorted.
    """
    pairs = returned_pairs(events).select("user_id", F.col("item_id").alias("bought_item_id"))
    never_returned = (
        events.filter(is_reliable())
        .withColumn("bought_item_id", F.when(F.col("action") == "purchase", F.col("item_id")))
        .join(pairs, ["user_id", "bought_item_id"], "left_anti")
        .select(*events.columns)
    )
    return never_returned.unionByName(net_returns(events))


def is_reliable() -> Column:
    """Whether an event is kept at all; returns are not, they only take away."""
    return F.col("action").isin(*RELIABLE_ACTIONS)


def is_trade() -> Column:
    """Whether an event moves pieces of an item."""
    return F.col("action").isin("purchase", "return")


def returned_pairs(events: DataFrame) -> DataFrame:
    """Every (user_id, item_id) that has at least one return."""
    return events.filter(F.col("action") == "return").select("user_id", "item_id").distinct()


def net_returns(events: DataFrame) -> DataFrame:
    """Purchases of pairs with a return, each with the quantity that is left; those with nothing left are gone.

    Pieces lie on a stack. With P the running sum of signed quantities, its height is S = P - min(0, running min of P): a
    return that finds the stack empty takes nothing. A purchase lies from the height before it (S - quantity) up to S, and
    of it remains what no later height went below: max(0, min(S now and later) - height before).
    """
    own_and_later = pair_in_time().rowsBetween(Window.currentRow, Window.unboundedFollowing)
    height_before = F.col("height") - F.col("signed_quantity")
    left = F.greatest(F.lit(0).cast("long"), F.min("height").over(own_and_later) - height_before)
    return (
        with_height(events)
        .withColumn("left_quantity", left)
        .filter((F.col("action") == "purchase") & (F.col("left_quantity") > 0))
        .select(*[F.col("left_quantity").alias("quantity") if name == "quantity" else F.col(name) for name in events.columns])
    )


def count_unmatched(events: DataFrame) -> DataFrame:
    """One row, `unmatched_return`: returned pieces that no earlier purchase of the same user and item accounts for."""
    deepest = with_height(events).groupBy("user_id", "item_id").agg(F.min("running_sum").alias("lowest"))
    return deepest.agg(F.coalesce(F.sum(F.greatest(F.lit(0).cast("long"), -F.col("lowest"))), F.lit(0)).alias("unmatched_return"))


def with_height(events: DataFrame) -> DataFrame:
    """Purchases and returns of pairs with a return, with `signed_quantity`, `running_sum` and the stack's `height` after each."""
    so_far = pair_in_time().rowsBetween(Window.unboundedPreceding, Window.currentRow)
    pieces = F.coalesce(F.col("quantity"), F.lit(1)).cast("long")  # a trade without a quantity moves one piece
    return (
        events.filter(is_trade())
        .join(returned_pairs(events), ["user_id", "item_id"], "left_semi")
        .withColumn("signed_quantity", F.when(F.col("action") == "return", -pieces).otherwise(pieces))
        .withColumn("running_sum", F.sum("signed_quantity").over(so_far))
        .withColumn("lowest_sum", F.min("running_sum").over(so_far))
        .withColumn("height", F.col("running_sum") - F.least(F.lit(0).cast("long"), F.col("lowest_sum")))
    )


def pair_in_time() -> Window:
    """The trades of one user and item, oldest first; at one instant what was bought comes before what was sent back."""
    return Window.partitionBy("user_id", "item_id").orderBy("event_at", F.col("action") == "return", "event_id")  # type: ignore[return-value]  # pyspark's stubs name the builder and the spec alike
