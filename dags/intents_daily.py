"""intents_daily makes intent tags out of contexts, and finds candidate items for them.

**Delivers** `intent_plans`, `tag_proposals` and `intent_tags` (one job, because planner, experts and arbiter of one user share a
prompt prefix), then `candidate_items`.

**Reads** `user_contexts` and `night_users` of its publish_id, and the feed `items` as of `ds`.

**Starts** when `contexts_daily` has landed `user_contexts` of a day, with that day as partition key. Methods, audience and
scenario come from `nights` and `night_users` of that attempt, not from this run's parameters. It then starts
`explanations_daily` by the Asset `candidate_items_v1`, with the same partition key and the same publish_id.

**By hand**, to finish a night whose contexts are there: trigger with `{"ds": "2017-10-30", "publish_id": "p..."}`;
`recgpt status --ds 2017-10-30` lists the publish_ids.

| parameter | meaning | default |
| --- | --- | --- |
| `ds` | business date, YYYY-MM-DD | the partition key |
| `publish_id` | the generation to finish | what the event of `user_contexts_v1` carries |
| `warehouse` | root of the warehouse | what the event carries, else the setting `warehouse` |

**Backfill**: not here; backfill `contexts_daily`, this DAG follows. Airflow refuses a backfill of an asset-started DAG.

**When a task fails** readers see no change. The jobs run on Ray under an id made of publish_id and job, so a retry waits for
the job of the first try rather than starting a second one; answers that were recorded are not asked for again. A user whose
answer stayed malformed goes to `quarantine` and gets status failed; the night goes on with the others.

**Do not** stop the Ray job by hand to speed things up: the retry would start it again. Mark the run failed; that stops it.

Runbook: infra/docs/runbooks/intents_daily.md
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, PartitionedAssetTimetable

from dags.common.assets import table_asset
from dags.common.defaults import DEFAULT_ARGS, FOLLOWING_PARAMS
from dags.common.late import late_alert
from dags.common.ray_jobs import ray_task
from dags.common.tags import Tag, tags

with DAG(
    dag_id="intents_daily",
    doc_md=__doc__,
    schedule=PartitionedAssetTimetable(assets=table_asset("user_contexts")),
    catchup=False,
    max_active_runs=1,  # nights share the engine; two at once would only wait for each other, with half the prefix cache each
    tags=tags(Tag.DAILY, Tag.RAY, Tag.INTENTS),
    default_args=DEFAULT_ARGS,
    deadline=late_alert(),
    params=FOLLOWING_PARAMS,
) as dag:
    intents = ray_task("jobs/ray/intents.py", limit=timedelta(hours=6))
    candidate_items = ray_task("jobs/ray/candidate_items.py", limit=timedelta(hours=2))

    intents >> candidate_items
