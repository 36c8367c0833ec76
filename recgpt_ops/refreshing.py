"""The stage that behavior_days, behavior_months and behavior_years share: refresh the buckets that something new touches."""

from __future__ import annotations

from recgpt_ops.contexts.buckets import StateTable
from recgpt_ops.contexts.state import refresh_buckets
from recgpt_ops.runs import NightRun, StageCounts
from recgpt_ops.spark import spark_session


def refresh_table(run: NightRun, counts: StageCounts, *, table: StateTable) -> None:
    """One stage of the night. `counts_in` are buckets, built or kept as they are; `counts_out` the rows of those built."""
    spark = run.settings.spark
    done = refresh_buckets(
        spark_session(spark), run.warehouse, table, ds=run.ds, publish_id=run.publish_id, fence=run.attempt,
        max_bucket_entries=spark.max_bucket_entries,
    )  # fmt: skip
    counts.counts_in = len(done.built_buckets) + done.kept_bucket_count
    counts.counts_out = done.row_count
    counts.input_digest = done.input_digest
    counts.detail = {
        "built_buckets": len(done.built_buckets), "kept_buckets": done.kept_bucket_count, "unmatched_return": done.unmatched_return
    }  # fmt: skip
