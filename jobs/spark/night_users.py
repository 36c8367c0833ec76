"""Makes night_users: the audience of a night, per method. The first job of a night; it claims the attempt.

python -m jobs.spark.night_users --warehouse W --ds 2017-10-30 --publish-id P --users 8
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recgpt_ops.contexts.audience import TABLE, NightKey
from recgpt_ops.contexts.feeds import feeds_version
from recgpt_ops.contexts.night_audience import Wanted, night_audience, split_audience
from recgpt_ops.contexts.signals import load_weather
from recgpt_ops.delta.generations import publish_files, stage_directory
from recgpt_ops.effects import effect
from recgpt_ops.errors import UsageError
from recgpt_ops.nights import NOBODY, input_version, standing
from recgpt_ops.planning.forecast import StageForecast, as_detail, done_users, forecast_night, planned_users
from recgpt_ops.runs import NightRun, StageCounts, run_stage
from recgpt_ops.spark import own_append, spark_session


def main(argv: Sequence[str] | None = None) -> int:
    """The job's command line; returns its exit code."""
    return run_stage(TABLE, argv, work)


def work(run: NightRun, counts: StageCounts) -> None:
    """One stage of the night."""
    session = spark_session(run.settings.spark)
    wanted = Wanted(run.users, run.user_ids, run.why)
    weather = load_weather(run.settings.signals.weather_connector)
    stage = stage_directory(run.warehouse, TABLE, run.publish_id)
    for number, method in enumerate(run.methods):
        key = NightKey(run.ds, run.scenario, method, run.publish_id, run.attempt)
        rows = night_audience(session, run.warehouse, key, wanted, policy=run.settings.audience, weather=weather)
        with effect("stage.write", TABLE):
            rows.write.mode("append" if number else "overwrite").parquet(str(stage))
    stage.mkdir(exist_ok=True)  # no rows may leave no folder
    by_status = session.read.parquet(str(stage)).groupBy("status").count().collect()
    statuses = {row["status"]: row["count"] for row in by_status}
    if not statuses:
        raise UsageError(
            f"night_users, ds={run.ds}: there is nobody to compute; no kept event arrived on that date and no earlier night is visible; "
            "name users with --user or --users, or take a date with events"
        )
    counts.counts_out = sum(statuses.values())
    counts.detail["users_by_status"] = statuses
    counts.detail["inputs"] = {
        method: dict(input_version(run.warehouse, run.settings, ds=run.ds, method=method).parts) for method in run.methods
    }
    counts.detail["forecast"] = as_detail(forecast(run, *split_audience(session.read.parquet(str(stage)), run.publish_id)))
    counts.input_digest = feeds_version(run.warehouse, run.ds)
    publish_files(
        run.warehouse, TABLE, stage, publish_id=run.publish_id, scopes=[run.ds], fence=run.attempt, input_digest=counts.input_digest,
        append=own_append(run.settings.spark, session),
    )  # fmt: skip


def forecast(run: NightRun, own_rows: Sequence[Mapping[str, Any]], carried: int) -> list[StageForecast]:
    """What the rest of the night will take, before any of it runs; `own_rows` are bounded by the policy or by who was named."""
    found = standing(run.warehouse, run.settings, ds=run.ds, scenario=run.scenario, methods=run.methods, asked=NOBODY)
    users = planned_users(own_rows, publish_id=run.publish_id, done=done_users(run.warehouse, found))
    return forecast_night(run.warehouse, run.settings, ds=run.ds, methods=run.methods, users=users, carried=carried, found=found)


if __name__ == "__main__":
    raise SystemExit(main())
