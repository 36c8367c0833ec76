"""The state tables between nights: which generation of each bucket counts, and building those that need a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from recgpt_ops.contexts.behaviors import count_unmatched
from recgpt_ops.contexts.buckets import STATE_TABLES, StateTable, bucket_span, calendar_buckets
from recgpt_ops.contexts.feeds import arrived_events
from recgpt_ops.contexts.histories import buckets_to_build, build_histories, touched_buckets
from recgpt_ops.delta.certificates import Certificate, standing_certificates
from recgpt_ops.delta.generations import publish_files, stage_directory
from recgpt_ops.delta.inputs import feed_digests
from recgpt_ops.delta.reading import state_generations
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.effects import effect
from recgpt_ops.spark import read_delta
from recgpt_ops.tables import load_contract

FEED = "behavior_events"


class Refresh(NamedTuple):
    """What a refresh did. `unmatched_return`: returned pieces that no purchase accounts for; None when nothing was built."""

    built_buckets: list[str]
    kept_bucket_count: int
    row_count: int
    unmatched_return: int | None
    input_digest: str


def refresh_buckets(
    session: SparkSession, warehouse: Warehouse, table: StateTable, *, ds: str, publish_id: str, fence: int, max_bucket_entries: int
) -> Refresh:
    """Builds and publishes a new generation of every bucket of the night that needs one; nothing is written when none does."""
    found = standing_certificates(warehouse, table)
    earlier = {made.arrived_cut_ds for made in found if made.arrived_cut_ds is not None and made.arrived_cut_ds <= ds}
    digest_at = feed_digests(warehouse, FEED, {ds, *earlier})
    events = arrived_events(session, warehouse, ds)
    cuts = usable_cuts(found, ds, digest_at)
    touched = touched_buckets(events, table, ds, since=common_cut(table, ds, cuts)).collect()
    buckets = buckets_to_build(table, ds, touched={row["bucket"]: row["newest_arrived_ds"] for row in touched}, cuts=cuts)
    if not buckets:
        return Refresh([], len(cuts), 0, None, digest_at[ds])
    contract = load_contract(table)
    rows = (
        build_histories(events, table, buckets, max_bucket_entries=max_bucket_entries)
        .withColumn("publish_id", F.lit(publish_id))
        .withColumn("arrived_cut_ds", F.lit(ds))
        .select(*contract.column_names)
    )
    stage = stage_directory(warehouse, table, publish_id)
    with effect("stage.write", table):
        rows.write.mode("overwrite").parquet(str(stage))
        stage.mkdir(exist_ok=True)  # no rows may leave no folder
    made = publish_files(
        warehouse, table, stage, publish_id=publish_id, scopes=buckets, fence=fence, input_digest=digest_at[ds], arrived_cut_ds=ds
    )
    unmatched = count_unmatched(events).collect()[0]["unmatched_return"]
    kept = len(set(cuts) - set(buckets))
    return Refresh(buckets, kept, sum(certificate.row_count for certificate in made), unmatched, digest_at[ds])


def usable_cuts(found: Sequence[Certificate], ds: str, digest_at: Mapping[str, str]) -> dict[str, str]:
    """Bucket -> cut of the generation a night of `ds` reads; `found` oldest first.

    A generation is of no use when events that arrived by its cut were imported after it was made: the feed's digest at the cut
    is then another one.
    """
    newest: dict[str, tuple[str, Certificate]] = {}
    for certificate in found:
        cut = certificate.arrived_cut_ds
        if cut is not None and cut <= ds and (certificate.partition not in newest or cut >= newest[certificate.partition][0]):
            newest[certificate.partition] = (cut, certificate)
    return {bucket: cut for bucket, (cut, certificate) in newest.items() if digest_at[cut] == certificate.input_digest}


def common_cut(table: StateTable, ds: str, cuts: Mapping[str, str]) -> str | None:
    """The oldest cut of the night's buckets: only what arrived after it can matter. None when a calendar bucket has no generation."""
    if any(bucket not in cuts for bucket in calendar_buckets(table, ds)):
        return None
    return min(cuts.values())


def night_buckets(session: SparkSession, warehouse: Warehouse, ds: str) -> DataFrame:
    """The bucket rows that a night of `ds` reads, all three tables together; other generations' files are not opened."""
    together: DataFrame | None = None
    for table in STATE_TABLES:
        if not warehouse.exists(table):
            continue
        scopes = bucket_scopes(state_generations(warehouse, table, arrived_cut_ds=ds), table, ds)
        rows = read_delta(session, warehouse.path(table)).filter(in_scopes(scopes)).select("bucket", "user_id", "action", "entries")
        together = rows if together is None else together.unionByName(rows)
    assert together is not None, "the three state jobs come before this one"
    return together


def bucket_scopes(generations: Mapping[str, str], table: StateTable, ds: str) -> dict[str, list[str]]:
    """publish_id -> the buckets to read of it, only those within the night's span; `generations` is bucket -> publish_id."""
    first_ds, last_ds = bucket_span(table, ds)
    scopes: dict[str, list[str]] = {}
    for bucket, publish_id in sorted(generations.items()):
        if (first_ds or "")[: len(bucket)] <= bucket <= last_ds[: len(bucket)]:
            scopes.setdefault(publish_id, []).append(bucket)
    return scopes


def in_scopes(scopes: Mapping[str, Sequence[str]]) -> Column:
    """Rows of exactly those generations; a filter over partition columns alone, so other files are not opened."""
    chosen = F.lit(False)
    for publish_id, buckets in scopes.items():
        chosen = chosen | ((F.col("publish_id") == publish_id) & F.col("bucket").isin(*buckets))
    return chosen
