"""Makes intent_plans, tag_proposals and intent_tags of one night: planner, experts and arbiter for every user, on Ray.

    python -m jobs.ray.intents --warehouse W --ds 2017-10-30 --publish-id p0123456789abcdef

`intents_daily` submits it through Ray's job API. One job for three tables, because a barrier between them would throw the prefix
that planner and arbiter share out of the engine's cache. Users are split into shards by `user_bucket`; Ray places them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from recgpt_ops.agents.budget import planned_calls
from recgpt_ops.agents.constraints import recipe_schemas
from recgpt_ops.agents.landing import TABLES, context_rows, count_contexts, land_shard
from recgpt_ops.agents.shard import STAGE, ShardPlan, compute_shard
from recgpt_ops.contexts.words import clean_text, short_title
from recgpt_ops.delta.catalog import catalog_words
from recgpt_ops.delta.certificates import certificates
from recgpt_ops.delta.inputs import feeds_digest
from recgpt_ops.delta.reading import read_generation
from recgpt_ops.delta.warehouse import open_warehouse
from recgpt_ops.errors import NightError
from recgpt_ops.ids import row_id
from recgpt_ops.ledger.segments import shard_names
from recgpt_ops.ledger.summaries import ShardSummary, call_limits, ledger_root, make_stage
from recgpt_ops.recipes import Recipe, load_recipe
from recgpt_ops.runs import NightRun, StageCounts, run_stage
from recgpt_ops.settings import Settings
from recgpt_ops.shards import compile_schemas, publish_shards, run_shards, shard_engine


def run_shard(warehouse_root: str, settings: Settings, plan: ShardPlan, stage: dict[str, Path], board: Any) -> ShardSummary:
    """One shard, from its contexts to its staged files. Run again after a lost node, it reads its answers from the ledger."""
    from recgpt_ops.llm.embedder import load_embedder  # torch belongs into the shard's process, not into the job's
    from recgpt_ops.llm.engine import engine_tokenizer
    from recgpt_ops.llm.models import models_root

    warehouse = open_warehouse(warehouse_root)
    method = plan.recipe.name
    engine = shard_engine(
        settings, warehouse_root, run=plan.publish_id, ds=plan.ds, method=method, stage=STAGE, shard=plan.shard, board=board
    )
    result = compute_shard(
        plan,
        context_rows(warehouse, plan),
        words=catalog_words(warehouse, plan.ds, clean_type=clean_text, clean_title=short_title),
        signal_rows=read_generation(
            warehouse, "environment_signals", ds=plan.ds, publish_id=plan.publish_id, scenario=plan.scenario
        ).to_pylist(),
        engine=engine,
        embedder=load_embedder(settings.embedder, models_root=models_root(warehouse_root)),
        tokenizer=engine_tokenizer(settings, warehouse_root),
        ledger_root=ledger_root(settings, warehouse_root),
        limits=call_limits(settings),
        on_progress=lambda users, account: board.tell.remote(f"{method} {plan.shard}", users, account.calls_made + account.calls_reused),
    )
    return land_shard(warehouse, plan, result, stage=stage, engine=engine)


def make_plans(run: NightRun, recipes: Sequence[Recipe]) -> list[tuple[ShardPlan, int]]:
    """Every shard of every recipe with the number of its users; shards without users are left out."""
    plans = [
        ShardPlan(run.ds, run.scenario, run.publish_id, run.attempt, shard, recipe, ask_again=run.why == "replay")
        for recipe in recipes
        for shard in shard_names(run.settings.engine.shard_count)
    ]
    counted = [(plan, count_contexts(run.warehouse, plan)) for plan in plans]
    return [(plan, users) for plan, users in counted if users]


def work(run: NightRun, counts: StageCounts) -> None:
    """One stage of the night: compute, check how many failed, publish the three tables."""
    recipes = [load_recipe(method, engine=run.settings.engine) for method in run.methods]
    compile_schemas(run, {where: schema for recipe in recipes for where, schema in recipe_schemas(recipe).items()})
    contexts = certificates(run.warehouse, table="user_contexts", publish_id=run.publish_id)
    if not contexts:
        raise NightError(f"intents, ds={run.ds}: user_contexts has no generation {run.publish_id}; run jobs.spark.user_contexts first")
    catalog = feeds_digest(run.warehouse, run.ds)["items"]
    counts.input_digest = row_id([catalog, *(made.row_digest for made in contexts), *(recipe.digest for recipe in recipes)])
    plans = make_plans(run, recipes)
    users = sum(count for _, count in plans)
    has_weather = run.settings.signals.weather_connector is not None
    calls = sum(planned_calls(plan.recipe, count, weather=has_weather).total for plan, count in plans)
    stage = make_stage(run.warehouse, run.publish_id, TABLES)
    summary = ShardSummary()
    if plans:
        shards = [plan for plan, _ in plans]
        # One method after the other: side by side they would push each other's contexts out of the prefix cache, and none would show
        # what it costs by itself.
        summary = run_shards(
            run,
            what="users",
            task=run_shard,
            plans=shards,
            extra=(stage,),
            inputs=users,
            calls=calls,
            limits=call_limits(run.settings),
            turn=lambda plan: plan.recipe.name,
        )
    counts.counts_in, counts.counts_out = users, summary.rows["intent_tags"]
    counts.detail |= {
        "planned_calls": calls,
        "sampling": {recipe.name: asdict(recipe.sampling) for recipe in recipes},
        "recipes": {recipe.name: recipe.digest for recipe in recipes},
    }
    publish_shards(run, counts, summary, what="users", stage=stage, input_digest=counts.input_digest)


def main(argv: Sequence[str] | None = None) -> int:
    """The job's command line; returns its exit code."""
    return run_stage("intents", argv, work)


if __name__ == "__main__":
    raise SystemExit(main())
