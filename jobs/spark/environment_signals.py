"""Makes environment_signals: season, holidays, trends and weather for every place that the night's users are served in.

python -m jobs.spark.environment_signals --warehouse W --ds 2017-10-30 --publish-id P
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from recgpt_ops.contexts.buckets import days_before
from recgpt_ops.contexts.feeds import arrived_events, current_items, feeds_version
from recgpt_ops.contexts.places import night_places
from recgpt_ops.contexts.signals import load_weather, place_signals
from recgpt_ops.contexts.trends import count_trends
from recgpt_ops.delta.generations import publish_arrow
from recgpt_ops.delta.schemas import arrow_schema
from recgpt_ops.runs import NightRun, StageCounts, run_stage
from recgpt_ops.spark import spark_session
from recgpt_ops.tables import load_contract

TABLE = "environment_signals"


def main(argv: Sequence[str] | None = None) -> int:
    """The job's command line; returns its exit code."""
    return run_stage(TABLE, argv, work)


def work(run: NightRun, counts: StageCounts) -> None:
    """One stage of the night."""
    settings = run.settings.signals
    session = spark_session(run.settings.spark)
    places = night_places(session, run.warehouse, run.ds, run.publish_id)
    trends: list[tuple[str, float]] = []
    if places and settings.trend_count:
        events, items = arrived_events(session, run.warehouse, run.ds), current_items(session, run.warehouse, run.ds)
        found = count_trends(events, items, run.ds, trend_count=settings.trend_count).collect()
        trends = [(row["name"], row["value"]) for row in found]
    weather = load_weather(settings.weather_connector)
    serve_ds = days_before(run.ds, -1)
    key = {"ds": run.ds, "publish_id": run.publish_id, "scenario": run.scenario}
    rows = [
        {**key, **signal}
        for region, locale in places
        for signal in place_signals(
            region, locale, serve_ds, holiday_days=settings.holiday_days, weather=weather(region, locale, serve_ds), trends=trends
        )
    ]
    counts.counts_in, counts.counts_out = len(places), len(rows)
    counts.input_digest = feeds_version(run.warehouse, run.ds)
    publish_arrow(
        run.warehouse, TABLE, pa.Table.from_pylist(rows, schema=arrow_schema(load_contract(TABLE))), publish_id=run.publish_id,
        scopes=[run.ds], fence=run.attempt, input_digest=counts.input_digest,
    )  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main())
