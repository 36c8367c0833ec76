"""explanations_daily writes why an item fits a person's interest, in a few words, and says which users each text is shown to.

**Delivers** `explanations` (one text per interest, item text, situation and language; nothing of a user is inside, so it is
written once and shared) and `explanation_assignments` (which user sees which text), both by one job.

**Reads** `candidate_items`, `intent_tags`, `user_contexts` and `environment_signals` of its publish_id, and older visible
`explanations`, whose texts are taken over where the writing has not changed.

**Starts** when `intents_daily` has landed `candidate_items` of a day, with that day as partition key. Methods, audience and
scenario come from `nights` and `night_users` of that attempt. It then starts `judging_daily` by the Asset `explanations_v1`,
with the same partition key and the same publish_id.

**By hand**, to finish a night whose candidates are there: trigger with `{"ds": "2017-10-30", "publish_id": "p..."}`;
`recgpt status --ds 2017-10-30` lists the publish_ids.

| parameter | meaning | default |
| --- | --- | --- |
| `ds` | business date, YYYY-MM-DD | the partition key |
| `publish_id` | the generation to finish | what the event of `candidate_items_v1` carries |
| `warehouse` | root of the warehouse | what the event carries, else the setting `warehouse` |

**Backfill**: not here; backfill `contexts_daily`, this DAG follows. Airflow refuses a backfill of an asset-started DAG.

**When a task fails** readers see no change. The job runs on Ray under an id made of publish_id and job, so a retry waits for
the job of the first try; answers that were recorded are not asked for again. A text that stayed malformed goes to
`quarantine`: its item is shown without an explanation.

**Do not** mend a text by hand: the next night shares it only where the writing is the same. Change the template or the recipe.

Runbook: infra/docs/runbooks/explanations_daily.md
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
    dag_id="explanations_daily",
    doc_md=__doc__,
    schedule=PartitionedAssetTimetable(assets=table_asset("candidate_items")),
    catchup=False,
    max_active_runs=1,  # nights share the engine, as in intents_daily
    tags=tags(Tag.DAILY, Tag.RAY, Tag.EXPLANATIONS),
    default_args=DEFAULT_ARGS,
    deadline=late_alert(),
    params=FOLLOWING_PARAMS,
) as dag:
    ray_task("jobs/ray/explanations.py", limit=timedelta(hours=6))
