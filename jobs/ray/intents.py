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

import ray

from recgpt_ops.agents.budget import planned_calls
from recgpt_ops.agents.constraints import recipe_schemas
from recgpt_ops.agents.landing import TABLES, ShardSummary, check_failures, context_rows, count_contexts, land_shard, make_stage
from recgpt_ops.agents.shard import STAGE, CallLimits, ShardPlan, compute_shard, shard_names
from recgpt_ops.contexts.words import clean_text, short_title
from recgpt_ops.delta.catalog import catalog_words
from recgpt_ops.delta.certificates import certificates
from recgpt_ops.delta.generations import publish_files
from recgpt_ops.delta.inputs import feeds_digest
from recgpt_ops.delta.warehouse import open_warehouse
from recgpt_ops.errors import NightError
from recgpt_ops.ids import row_id
from recgpt_ops.ledger import has_answers
from recgpt_ops.llm.ray_session import ray_session
from recgpt_ops.recipes import Recipe, load_recipe
from recgpt_ops.runs import NightRun, StageCounts, report_progress, run_stage
from recgpt_ops.settings import Settings

POLL_SECONDS = 1.0


class ProgressBoard:
    """How far each shard is, kept where every shard and the job can reach it."""

    def __init__(self) -> None:
        """Nobody has begun."""
        self.waited: dict[str, float] = {}
        self.shards: dict[str, tuple[int, int]] = {}

    def wait(self, shard: str, seconds: float) -> None:
        """A shard waits for the engine to be loaded."""
        self.waited[shard] = seconds

    def tell(self, shard: str, users: int, calls: int) -> None:
        """Users finished and calls answered by one shard so far."""
        self.shards[shard] = (users, calls)

    def total(self) -> tuple[float, int, int]:
        """Longest wait for the engine, then users and calls of all shards."""
        users, calls = sum(users for users, _ in self.shards.values()), sum(calls for _, calls in self.shards.values())
        return max(self.waited.values(), default=0.0), users, calls


def run_shard(warehouse_root: str, settings: Settings, plan: ShardPlan, stage: dict[str, Path], board: Any) -> ShardSummary:
    """One shard, from its contexts to its staged files. Run again after a lost node, it reads its answers from the ledger."""
    from recgpt_ops.llm.embedder import load_embedder  # torch belongs into the shard's process, not into the job's
    from recgpt_ops.llm.engine import connect_engine, engine_tokenizer
    from recgpt_ops.llm.models import models_root

    warehouse = open_warehouse(warehouse_root)
    shard = f"{plan.recipe.name} {plan.shard}"
    ledger_root = Path(settings.ledger.root or Path(warehouse_root) / "_ledger")
    engine = connect_engine(
        settings,
        warehouse_root,
        run=plan.publish_id,
        # Beside the embedder, where calls are sure to come; a rebuild, which the ledger answers, loads no engine at all.
        preload=not has_answers(ledger_root, ds=plan.ds, method=plan.recipe.name, stage=STAGE, shard=plan.shard),
        progress=lambda seconds: board.wait.remote(shard, seconds),
    )
    result = compute_shard(
        plan,
        context_rows(warehouse, plan),
        words=catalog_words(warehouse, plan.ds, clean_type=clean_text, clean_title=short_title),
        engine=engine,
        embedder=load_embedder(settings.embedder, models_root=models_root(warehouse_root)),
        tokenizer=engine_tokenizer(settings, warehouse_root),
        ledger_root=ledger_root,
        limits=CallLimits(settings.engine.max_in_flight, settings.ledger.flush_count, settings.ledger.flush_seconds),
        on_progress=lambda users, account: board.tell.remote(shard, users, account.calls_made + account.calls_reused),
    )
    return land_shard(warehouse, plan, result, stage=stage, engine=engine)


def run_shards(run: NightRun, plans: Sequence[ShardPlan], stage: dict[str, Path], *, users: int, calls: int) -> ShardSummary:
    """All shards side by side, with progress; the first error ends the others and comes out as it was raised."""
    summary = ShardSummary()
    with ray_session(f"intents, ds={run.ds}"):
        board: Any = ray.remote(ProgressBoard).options(num_cpus=0).remote()
        task = ray.remote(run_shard).options(num_cpus=1, max_retries=2)
        waiting = [task.remote(run.warehouse.root, run.settings, plan, stage, board) for plan in plans]
        while waiting:
            ready, waiting = ray.wait(waiting, timeout=POLL_SECONDS)
            waited, users_done, calls_done = ray.get(board.total.remote())
            if calls_done:
                report_progress(run, f"{users_done} of {users} users, model calls", calls_done, calls)
            else:
                report_progress(run, "loading the engine, seconds so far", int(waited), None)
            for part in ray.get(ready):
                summary += part
    return summary


def make_plans(run: NightRun, recipes: Sequence[Recipe]) -> list[tuple[ShardPlan, int]]:
    """Every shard of every recipe with the number of its users; shards without users are left out."""
    plans = [
        ShardPlan(run.ds, run.scenario, run.publish_id, run.attempt, shard, recipe)
        for recipe in recipes
        for shard in shard_names(run.settings.engine.shard_count)
    ]
    counted = [(plan, count_contexts(run.warehouse, plan)) for plan in plans]
    return [(plan, users) for plan, users in counted if users]


def compile_schemas(run: NightRun, recipes: Sequence[Recipe]) -> None:
    """Stops the run, before an engine is loaded, for a schema that its grammar cannot take; recipes without schemas cost nothing."""
    schemas = {where: schema for recipe in recipes for where, schema in recipe_schemas(recipe).items()}
    if schemas and run.settings.engine.kind == "vllm":
        from recgpt_ops.llm.engine import tokenizer_directory
        from recgpt_ops.llm.grammars import check_schemas  # torch

        check_schemas(schemas, model_dir=tokenizer_directory(run.settings, run.warehouse.root))


def work(run: NightRun, counts: StageCounts) -> None:
    """One stage of the night: compute, check how many failed, publish the three tables."""
    recipes = [load_recipe(method, engine=run.settings.engine) for method in run.methods]
    compile_schemas(run, recipes)
    contexts = certificates(run.warehouse, table="user_contexts", publish_id=run.publish_id)
    if not contexts:
        raise NightError(f"intents, ds={run.ds}: user_contexts has no generation {run.publish_id}; run jobs.spark.user_contexts first")
    catalog = feeds_digest(run.warehouse, run.ds)["items"]
    counts.input_digest = row_id([catalog, *(made.row_digest for made in contexts), *(recipe.digest for recipe in recipes)])
    plans = make_plans(run, recipes)
    users = sum(count for _, count in plans)
    calls = sum(planned_calls(plan.recipe, count).total for plan, count in plans)
    stage = make_stage(run.warehouse, run.publish_id)
    summary = run_shards(run, [plan for plan, _ in plans], stage, users=users, calls=calls) if plans else ShardSummary()
    counts.counts_in, counts.counts_out, counts.quarantined_count = users, summary.rows["intent_tags"], summary.failed
    counts.calls_made, counts.calls_reused = summary.account.calls_made, summary.account.calls_reused
    counts.detail |= summary.as_dict() | {
        "planned_calls": calls,
        "sampling": {recipe.name: asdict(recipe.sampling) for recipe in recipes},
        "recipes": {recipe.name: recipe.digest for recipe in recipes},
    }
    check_failures(summary, ds=run.ds, max_ratio=run.settings.quarantine.stage_max_ratio)
    for table in TABLES:
        publish_files(
            run.warehouse,
            table,
            stage[table],
            publish_id=run.publish_id,
            scopes=[run.ds],
            fence=run.attempt,
            input_digest=counts.input_digest,
            quarantined_count=summary.failed,
            calls_made=counts.calls_made,
            calls_reused=counts.calls_reused,
        )


def main(argv: Sequence[str] | None = None) -> int:
    """The job's command line; returns its exit code."""
    return run_stage("intents", argv, work)


if __name__ == "__main__":
    raise SystemExit(main())
