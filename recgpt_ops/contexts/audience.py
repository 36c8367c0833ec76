"""Who is in a night, and whose rows each user shows. DataFrames in, rows of night_users out.

    base      the night_users rows that count so far: of this ds when it has a visible generation, else of the newest night before
    chosen    users to compute now, by the policy or by name
    result    chosen users (computed, or skipped without any history), and the other base rows carried by reference

The audience shrinks only by erase: a row of the base that is not chosen is kept.
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from recgpt_ops.contexts.behaviors import is_reliable
from recgpt_ops.contexts.buckets import days_before
from recgpt_ops.contexts.feeds import user_hash
from recgpt_ops.contexts.reasons import RETRIED, RETRY
from recgpt_ops.tables import load_contract

TABLE = "night_users"


class NightKey(NamedTuple):
    """The night and the generation that is being made."""

    ds: str
    scenario: str
    method: str
    publish_id: str
    attempt: int


def active_users(events: DataFrame, ds: str) -> DataFrame:
    """Users of whom a kept event arrived on `ds`: new behavior."""
    return events.filter((F.col("arrived_ds") == ds) & is_reliable()).select("user_id").distinct()


def smallest_users(profiles: DataFrame, count: int) -> DataFrame:
    """The `count` users with the smallest sha256(user_id)."""
    return profiles.select("user_id").orderBy(user_hash()).limit(count)


def choose_by_policy(
    profiles: DataFrame, base: DataFrame, *, active: DataFrame, situations: DataFrame, ds: str, is_same_ds: bool, max_users: int,
    max_age_days: int,
) -> DataFrame:  # fmt: skip
    """(user_id, reason): at most `max_users` users who need to be computed, smallest hash first.

    New behavior comes first, then a changed situation, then age. A user that failed before is tried again, for the
    same reason where no older result was there to be carried. Who was never computed enters with the first new behavior. `situations`
    is (user_id, is_changed) for users of the base.
    """
    known = base.select("user_id", "status", "computed_ds", F.col("reason").alias("former_reason"))
    has_rows = F.col("status").isin("computed", "carried")
    is_old = has_rows & (F.col("computed_ds") <= days_before(ds, max_age_days))
    reason = (
        F.when(F.col("is_active"), "new_behavior")
        .when(has_rows & F.col("is_changed"), "situation_changed")
        .when(is_old, "max_age")
        .when(F.col("status") == "failed", F.col("former_reason"))
        .when(F.col("former_reason") == RETRY, RETRIED)
    )
    is_done = F.lit(is_same_ds) & (F.col("status") == "computed")
    return (
        profiles.select("user_id")
        .join(known, "user_id", "left")
        .join(active.select("user_id", F.lit(True).alias("is_active")), "user_id", "left")
        .join(situations, "user_id", "left")
        .withColumn("reason", reason)
        .filter(F.col("reason").isNotNull() & ~F.coalesce(is_done, F.lit(False)))
        .orderBy(user_hash())
        .limit(max_users)
        .select("user_id", "reason")
    )


def choose_by_name(named: DataFrame, base: DataFrame, *, is_same_ds: bool) -> DataFrame:
    """(user_id, reason) of the named users; of a night that is visible already only those it lacks or failed on."""
    done = base.filter(F.lit(is_same_ds) & ~has_failed()).select("user_id")
    return named.distinct().join(done, "user_id", "left_anti").select("user_id", F.lit("forced").alias("reason"))


def choose_anew(named: DataFrame) -> DataFrame:
    """(user_id, reason) of the named users, whatever a visible night has of them: their missing stages are run again."""
    return named.distinct().select("user_id", F.lit("forced").alias("reason"))


def has_failed() -> Column:
    """Whether a row of night_users is of a user whom its night could not compute, carried or not."""
    return (F.col("status") == "failed") | (F.col("reason") == RETRY)


def choose_again(base: DataFrame) -> DataFrame:
    """(user_id, reason) of everyone this night computed or tried; carried users stay with the night that made them."""
    tried = F.col("status").isin("computed", "failed", "skipped") | has_failed()
    again = F.when(F.col("reason") == RETRY, RETRIED).otherwise(F.col("reason"))
    return base.filter(tried).select("user_id", again.alias("reason"))


def first_choice(choices: list[DataFrame]) -> DataFrame:
    """One reason per user: that of the first list that names the user."""
    ranked = [choice.withColumn("choice_rank", F.lit(rank)) for rank, choice in enumerate(choices)]
    together = ranked[0]
    for choice in ranked[1:]:
        together = together.unionByName(choice)
    by_rank = Window.partitionBy("user_id").orderBy("choice_rank")
    return together.withColumn("place", F.row_number().over(by_rank)).filter(F.col("place") == 1).select("user_id", "reason")


def audience_rows(profiles: DataFrame, base: DataFrame, chosen: DataFrame, *, with_history: DataFrame, key: NightKey) -> DataFrame:
    """The rows of night_users: chosen users of whom something is known are computed, without a history skipped, all others kept.

    before: base (u1, computed, ds 10-29), chosen (u2, forced)
    after:  (u1, carried, made by the night of 10-29), (u2, computed, made by this generation)
    """
    status = F.when((F.col("reason") == "forced") & F.col("has_history").isNull(), "skipped").otherwise("computed")
    now = (
        chosen.join(profiles.select("user_id", "user_bucket", "locale", "region"), "user_id")
        .join(with_history.select("user_id", F.lit(True).alias("has_history")), "user_id", "left")
        .withColumn("status", status)
        .withColumn("made_by", F.lit(key.publish_id))
        .withColumn("computed_ds", F.lit(key.ds))
    )
    kept = base.join(chosen.select("user_id"), "user_id", "left_anti").withColumn("status", kept_status(key.ds))
    return with_key(now, key).unionByName(with_key(kept, key))


def kept_status(ds: str) -> Column:
    """A row that another night computed is carried from now on."""
    return F.when((F.col("status") == "computed") & (F.col("computed_ds") < ds), "carried").otherwise(F.col("status"))


def with_key(rows: DataFrame, key: NightKey) -> DataFrame:
    """The rows under the key of this generation, columns in contract order."""
    keyed = {
        "ds": F.lit(key.ds),
        "publish_id": F.lit(key.publish_id),
        "scenario": F.lit(key.scenario),
        "method": F.lit(key.method),
        "attempt": F.lit(key.attempt),
    }
    return rows.select(*[keyed[name].alias(name) if name in keyed else F.col(name) for name in load_contract(TABLE).column_names])
