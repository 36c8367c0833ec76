"""Makes behavior_months: the bucket rows of a night's months, as new generations where something arrived that touches them.

python -m jobs.spark.behavior_months --warehouse W --ds 2017-10-30 --publish-id P
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from recgpt_ops.contexts.state import refresh_buckets
from recgpt_ops.runs import NightRun, StageCounts, run_stage
from recgpt_ops.spark import spark_session

TABLE: Final = "behavior_months"


def main(argv: Sequence[str] | None = None) -> int:
    """The job's command line; returns its exit code."""
    return run_stage(TABLE, argv, work)


def work(run: NightRun, counts: StageCounts) -> None:
    """One stage of the night."""
    spark = run.settings.spark
    done = refresh_buckets(
        spark_session(spark), run.warehouse, TABLE, ds=run.ds, publish_id=run.publish_id, fence=run.attempt,
        max_bucket_entries=spark.max_bucket_entries,
    )  # fmt: skip
    counts.counts_in = len(done.built_buckets) + done.kept_bucket_count
    counts.counts_out = done.row_count
    counts.input_digest = done.input_digest
    counts.detail = {
        "built_buckets": len(done.built_buckets), "kept_buckets": done.kept_bucket_count, "unmatched_return": done.unmatched_return
    }  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main())
