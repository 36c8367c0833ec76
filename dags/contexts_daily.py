"""contexts_daily makes what the planner reads, out of what people did.

**Delivers** `user_contexts` of one business date `ds`, and before it the audience (`night_users`), the time buckets
(`behavior_days`, `behavior_months`, `behavior_years`) and the surroundings (`environment_signals`).

**Reads** the feeds `behavior_events`, `items`, `user_profiles`, as far as they had arrived by `ds`.

**Starts** at midnight of the business time zone (setting `night.cron_time_zone`; at 4 o'clock where its clocks change at midnight)
for the day that just ended, where setting `night.is_scheduled` says so (else what the clock starts is skipped, and people, backfills
and `recgpt night` ask for nights); then starts `intents_daily` by the Asset `user_contexts_v1`, with the same partition key and the
same publish_id.

**By hand**: trigger with `{"ds": "2017-10-30"}`. Any combination is possible:

| parameter | meaning | default |
| --- | --- | --- |
| `ds` | business date, YYYY-MM-DD | the partition key |
| `users` | the N users with the smallest sha256(user_id) that have a profile | the audience policy |
| `user_ids` | these users, added to those of `users` | none |
| `methods` | recipes in infra/methods/ | setting `night.methods` |
| `scenario` | where the result is shown | setting `night.scenario` |
| `why` | `night`, `more_users`, `rebuild` (everybody again, from the recorded answers) or `replay` (the named users alone) | `night` |
| `warehouse` | root of the warehouse | setting `warehouse` |

**Backfill**: `airflow backfill create --dag-id contexts_daily --from-date 2017-10-01 --to-date 2017-10-07 --max-active-runs 1`;
both dates are included (where nights start at 4 o'clock, name the day after the last), and the later DAGs follow by themselves.

**When a task fails** readers see no change: they go on seeing the generation that the pointer names. A cleared task or run
writes the same generation (publish_id is made of the run's id), and stages that are done are not done again. Two runs of one
day do no harm: each has its own generation, and the pointer takes the newer attempt.

**Do not** edit rows of `nights` or `publications`: they are the record that a resume reads.

Runbook: infra/docs/runbooks/contexts_daily.md
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, CronPartitionTimetable, Param

from dags.common.dates import due_hour
from dags.common.defaults import DEFAULT_ARGS
from dags.common.late import late_alert
from dags.common.submit import spark_task
from dags.common.tags import Tag, tags
from recgpt_ops.settings import load_settings

ZONE = load_settings().night.cron_time_zone

with DAG(
    dag_id="contexts_daily",
    doc_md=__doc__,
    schedule=CronPartitionTimetable(
        f"0 {due_hour(ZONE)} * * *", timezone=ZONE, run_offset=-1, key_format="%Y-%m-%d"
    ),  # fires when ds is over, so the key is the day before
    catchup=False,
    max_active_runs=1,  # days share the bucket tables; one after the other each day finds the buckets of the day before
    tags=tags(Tag.DAILY, Tag.SPARK, Tag.CONTEXTS),
    default_args=DEFAULT_ARGS,
    deadline=late_alert(),
    params={
        "ds": Param(None, type=["null", "string"], format="date", description="Business date; the partition key when empty"),
        "users": Param(None, type=["null", "integer"], minimum=1, description="The N users with the smallest sha256(user_id)"),
        "user_ids": Param([], type="array", items={"type": "string"}, description="These users, added to `users`"),
        "methods": Param([], type="array", items={"type": "string"}, description="Recipes; the setting's when empty"),
        "scenario": Param(None, type=["null", "string"], description="Where the result is shown; the setting's when empty"),
        "why": Param("night", enum=["night", "rebuild", "more_users", "replay"], description="What the attempt is for"),
        "warehouse": Param(None, type=["null", "string"], description="Root of the warehouse; the setting's when empty"),
        "run_id": Param(None, type=["null", "string"], description="Set by `recgpt night`: the name under which this run is recorded"),
    },
) as dag:
    # Claims the attempt and writes down methods and audience; every later job finds both by the publish_id, so it comes first.
    night_users = spark_task("night_users", limit=timedelta(minutes=30), is_head=True)
    buckets = [
        spark_task("behavior_days", limit=timedelta(hours=2), is_head=True),
        spark_task("behavior_months", limit=timedelta(hours=2), is_head=True),
        spark_task("behavior_years", limit=timedelta(hours=4), is_head=True),
    ]
    environment_signals = spark_task("environment_signals", limit=timedelta(hours=1), is_head=True)
    user_contexts = spark_task("user_contexts", limit=timedelta(hours=4), is_head=True)

    night_users >> [*buckets, environment_signals] >> user_contexts
