"""judging_daily grades tags and explanations, then shows the night to its readers.

**Delivers** `tag_verdicts` and `explanation_verdicts` (a level per dimension and the grade S, A or B that follows from them, by
each judge of setting `judging.judge_methods`), then one row a method in `publications`, by which readers see the whole night at
once: contexts, tags, candidates, explanations and verdicts.

**Reads** `intent_tags`, `user_contexts`, `explanations` and `explanation_assignments` of its publish_id.

**Starts** when `explanations_daily` has landed `explanations` of a day, with that day as partition key. Methods and scenario
come from `nights` of that attempt.

**By hand**, to finish a night whose explanations are there: trigger with `{"ds": "2017-10-30", "publish_id": "p..."}`;
`recgpt status --ds 2017-10-30` lists the publish_ids.

| parameter | meaning | default |
| --- | --- | --- |
| `ds` | business date, YYYY-MM-DD | the partition key |
| `publish_id` | the generation to finish | what the event of `explanations_v1` carries |
| `warehouse` | root of the warehouse | what the event carries, else the setting `warehouse` |

**Backfill**: not here; backfill `contexts_daily`, this DAG follows. Airflow refuses a backfill of an asset-started DAG.

**When a task fails** readers see no change: the night becomes visible with its last task, `publish_night`, or not at all. A
judge's call that stays unreadable is a status in the verdict, never a grade, and stops nothing.

**Do not** take a low grade for a failed night: verdicts say how good a night is, they hold nothing back from readers.

Runbook: infra/docs/runbooks/judging_daily.md
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, PartitionedAssetTimetable

from dags.common.assets import table_asset
from dags.common.defaults import DEFAULT_ARGS, FOLLOWING_PARAMS
from dags.common.late import late_alert
from dags.common.ray_jobs import ray_task
from dags.common.submit import publish_task
from dags.common.tags import Tag, tags

with DAG(
    dag_id="judging_daily",
    doc_md=__doc__,
    schedule=PartitionedAssetTimetable(assets=table_asset("explanations")),
    catchup=False,
    max_active_runs=1,  # nights share the engine, as in intents_daily
    tags=tags(Tag.DAILY, Tag.RAY, Tag.JUDGING, Tag.PUBLISHES),
    default_args=DEFAULT_ARGS,
    deadline=late_alert(),
    params=FOLLOWING_PARAMS,
) as dag:
    tag_verdicts = ray_task("jobs/ray/tag_verdicts.py", limit=timedelta(hours=4))
    explanation_verdicts = ray_task("jobs/ray/explanation_verdicts.py", limit=timedelta(hours=4))
    # Last, and the only task that changes what readers see; a night that failed before it stays invisible.
    publish_night = publish_task(limit=timedelta(minutes=30))

    tag_verdicts >> explanation_verdicts >> publish_night  # one after the other: both ask the same engine
