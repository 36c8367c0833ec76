"""maintenance_daily removes what the warehouse no longer needs, and tells when nights stay away.

**Delivers** room: generations that nothing visible has named for `night.keep_days` (written down in `dropped_generations`), rows that
dead attempts staged, recorded answers older than `ledger.keep_days`, files that no log names; and checkpoints.

**Reads** `publications`, `night_users`, `explanation_assignments`, `certificates`, `nights`.

**Starts** at noon of setting `night.cron_time_zone`, when the night is over. It may run beside one all the same: what a night writes or
reads is younger than anything that goes.

**By hand**: trigger it, or run `recgpt maintenance --dry-run`, which tells what would go, and `recgpt maintenance`.

| parameter | meaning | default |
| --- | --- | --- |
| `warehouse` | root of the warehouse | setting `warehouse` |

**Backfill**: there is nothing to fill; the next run does what an earlier one did not.

**When a task fails** nothing is lost and nothing that people see changes; a rerun goes on. `check_freshness` fails when the newest
night of a recipe is older than it should be: that is its alarm, and clearing it mends nothing.

**Do not** remove folders of the warehouse by hand to save room: what looks unused may be what a carried user shows.

Runbook: infra/docs/runbooks/maintenance_daily.md
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, CronTriggerTimetable, Param

from dags.common.defaults import DEFAULT_ARGS
from dags.common.submit import upkeep_task
from dags.common.tags import Tag, tags
from recgpt_ops.settings import load_settings

with DAG(
    dag_id="maintenance_daily",
    doc_md=__doc__,
    schedule=CronTriggerTimetable("0 12 * * *", timezone=load_settings().night.cron_time_zone),
    catchup=False,
    max_active_runs=1,  # two would look for the same things to remove
    tags=tags(Tag.DAILY, Tag.UPKEEP),
    default_args=DEFAULT_ARGS,
    params={"warehouse": Param(None, type=["null", "string"], description="Root of the warehouse; the setting's when empty")},
) as dag:
    drop_generations = upkeep_task("jobs/drop_generations.py", limit=timedelta(hours=2))
    # Also when the first failed: an alarm that waits for a full disk to be mended comes too late.
    check_freshness = upkeep_task("jobs/check_freshness.py", limit=timedelta(minutes=10), trigger_rule="all_done")

    drop_generations >> check_freshness
