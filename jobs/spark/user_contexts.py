"""Makes user_contexts: one compressed context per user that this night computes, and method.

python -m jobs.spark.user_contexts --warehouse W --ds 2017-10-30 --publish-id P
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence

from recgpt_ops.contexts.buckets import days_before
from recgpt_ops.contexts.context_rows import ContextShape
from recgpt_ops.contexts.contexts import TABLE, ContextWriter, stage_contexts
from recgpt_ops.contexts.feeds import feeds_version
from recgpt_ops.contexts.places import Surroundings, computed_users, night_places, signal_lines, weather_class
from recgpt_ops.contexts.signals import situation_id
from recgpt_ops.delta.generations import publish_files, stage_directory
from recgpt_ops.delta.quarantine import QuarantineRow, quarantine_rows
from recgpt_ops.delta.reading import read_generation
from recgpt_ops.errors import ContractError
from recgpt_ops.ledger.summaries import stage_outcome
from recgpt_ops.llm.engine import tokenizer_directory
from recgpt_ops.recipes import load_recipe
from recgpt_ops.runs import NightRun, StageCounts, run_stage
from recgpt_ops.spark import own_append, spark_session


def main(argv: Sequence[str] | None = None) -> int:
    """The job's command line; returns its exit code."""
    return run_stage(TABLE, argv, work)


def work(run: NightRun, counts: StageCounts) -> None:
    """One stage of the night."""
    recipes = {method: load_recipe(method, engine=run.settings.engine) for method in run.methods}
    tokenizer_dir = tokenizer_directory(run.settings, run.warehouse.root)
    counts.input_digest = feeds_version(run.warehouse, run.ds, *(recipes[method].digest for method in sorted(recipes)), tokenizer_dir.name)
    session = spark_session(run.settings.spark)
    writer = ContextWriter(
        ds=run.ds,
        serve_ds=days_before(run.ds, -1),
        scenario=run.scenario,
        publish_id=run.publish_id,
        zone=run.warehouse.zone,
        tokenizer_dir=str(tokenizer_dir),
        shapes={
            method: ContextShape(
                recipe.context_budget_tokens, recipe.group_count, recipe.types_per_group, recipe.group_days, recipe.recent_days
            )
            for method, recipe in recipes.items()
        },
        surroundings=surroundings_of(run, night_places(session, run.warehouse, run.ds, run.publish_id)),
    )
    stage = stage_directory(run.warehouse, TABLE, run.publish_id)
    audience = computed_users(session, run.warehouse, run.ds, run.publish_id)
    staged = stage_contexts(session, run.warehouse, audience, writer, stage)
    counts.counts_in, counts.quarantined_count = staged.row_count, len(staged.failed)
    counts.counts_out = staged.row_count - len(staged.failed)
    quarantine_contexts(run, staged.failed)
    if len(staged.failed) > run.settings.quarantine.stage_max_ratio * staged.row_count:
        shutil.rmtree(stage, ignore_errors=True)
        raise ContractError(
            f"user_contexts, ds={run.ds}: {len(staged.failed)} of {staged.row_count} users could not be given a context, "
            f"more than the share of {run.settings.quarantine.stage_max_ratio} in quarantine.stage_max_ratio; nothing was published; "
            f"look with `recgpt query \"select reason, detail from quarantine where ds = '{run.ds}'\"`"
        )
    publish_files(
        run.warehouse, TABLE, stage, publish_id=run.publish_id, scopes=[run.ds], fence=run.attempt, input_digest=counts.input_digest,
        quarantined_count=len(staged.failed), append=own_append(run.settings.spark, session),
    )  # fmt: skip
    counts.detail = stage_outcome(
        len(staged.failed), staged.row_count, degraded_ratio=run.settings.quarantine.stage_degraded_ratio
    ) | {
        "context_tokens": staged.context_tokens, "plain_tokens": staged.plain_tokens, "cut_lines": staged.cut_line_count,
    }  # fmt: skip


def surroundings_of(run: NightRun, places: Sequence[tuple[str, str]]) -> Surroundings:
    """Signal lines and situation of every place, from this generation of environment_signals."""
    rows = read_generation(run.warehouse, "environment_signals", ds=run.ds, publish_id=run.publish_id, scenario=run.scenario).to_pylist()
    serve_ds = days_before(run.ds, -1)
    return {
        place: (signal_lines(rows, place), situation_id(place[1], place[0], serve_ds, weather=weather_class(rows, place)))
        for place in places
    }


def quarantine_contexts(run: NightRun, failed: Sequence[Mapping[str, str]]) -> None:
    """Puts the users whose row could not be made into quarantine; everybody else goes on (001)."""
    rows = [
        QuarantineRow(
            TABLE, row["user_id"], TABLE, row["reason"], row["detail"], json.dumps(row, sort_keys=True), ds=run.ds,
            scenario=run.scenario, method=row["method"], user_id=row["user_id"], attempt=run.attempt,
        )
        for row in failed
    ]  # fmt: skip
    quarantine_rows(run.warehouse, rows)


if __name__ == "__main__":
    raise SystemExit(main())
