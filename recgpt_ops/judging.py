"""The stage of the two verdict tables: plans, shards on Ray, how many failed, publishing. What is judged differs, the stage does not.

jobs/ray/tag_verdicts.py, jobs/ray/explanation_verdicts.py  ->  judge_night(run, counts, kind=..., task=...)
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from recgpt_ops.delta.certificates import certificates
from recgpt_ops.delta.warehouse import open_warehouse
from recgpt_ops.errors import NightError
from recgpt_ops.ids import row_id
from recgpt_ops.judges.dimensions import Kind
from recgpt_ops.judges.landing import SOURCES, as_detail, candidates, count_subjects, land_shard
from recgpt_ops.judges.rules import check_judging, find_cutoffs, is_self_judged, judge_settings, judging_digest, planned_calls
from recgpt_ops.judges.shard import TABLES, VerdictPlan, compute_shard
from recgpt_ops.ledger.segments import shard_names
from recgpt_ops.ledger.summaries import ShardSummary, call_limits, ledger_root, make_stage
from recgpt_ops.recipes import load_recipe
from recgpt_ops.runs import NightRun, StageCounts
from recgpt_ops.settings import Settings
from recgpt_ops.shards import publish_shards, run_shards, shard_engine

SOURCE_JOBS: dict[Kind, str] = {"tag": "intents", "explanation": "explanations"}


def run_verdict_shard(warehouse_root: str, settings: Settings, plan: VerdictPlan, stage: dict[str, Path], board: Any) -> ShardSummary:
    """One shard, from the rows it judges to its staged file. Run again after a lost node, it reads its answers from the ledger."""
    from recgpt_ops.llm.engine import connect_engine, engine_tokenizer  # models' files belong into the shard's process

    warehouse = open_warehouse(warehouse_root)
    settings, table, method = judge_settings(settings), TABLES[plan.kind], plan.method
    cutoffs = None
    if settings.judging.level_from == "label_logprobs":  # found, or missed, before an engine begins to load
        cutoffs = find_cutoffs(warehouse_root, connect_engine(settings, warehouse_root, run=plan.publish_id).identity)
    engine = shard_engine(
        settings, warehouse_root, run=plan.publish_id, ds=plan.ds, method=method, stage=table, shard=plan.shard, board=board
    )
    result = compute_shard(
        plan,
        candidates(warehouse, plan, ratio=settings.judging.judge_share_ratio),
        settings=settings,
        cutoffs=cutoffs,
        engine=engine,
        tokenizer=engine_tokenizer(settings, warehouse_root),
        ledger_root=ledger_root(settings, warehouse_root),
        limits=call_limits(settings),
        on_progress=lambda judged, account: board.tell.remote(f"{method} {plan.shard}", judged, account.calls_made + account.calls_reused),
    )
    return land_shard(warehouse, plan, result, stage=stage, engine=engine)


def judge_night(run: NightRun, counts: StageCounts, *, kind: Kind, task: Callable[..., ShardSummary]) -> None:
    """One verdict table of one night, every method of the run that makes explanations; `task` is the job's `run_shard`."""
    table, source, judging = TABLES[kind], SOURCES[kind], run.settings.judging
    check_judging(run.settings)
    methods = [method for method in run.methods if load_recipe(method).explanations != "none"]
    judged = certificates(run.warehouse, table=source, publish_id=run.publish_id)
    if not judged and methods:
        raise NightError(f"{table}, ds={run.ds}: {source} has no generation {run.publish_id}; run jobs.ray.{SOURCE_JOBS[kind]} first")
    counts.input_digest = row_id([judging_digest(run.settings), *(made.row_digest for made in judged)])
    plans = [
        VerdictPlan(
            kind, run.ds, run.scenario, run.publish_id, run.attempt, shard, method, is_self_judged(run.settings), run.why == "replay"
        )
        for method in methods
        for shard in shard_names(judge_settings(run.settings).engine.shard_count)
    ]
    subjects = {plan: count_subjects(run.warehouse, plan, ratio=judging.judge_share_ratio) for plan in plans}
    inputs = sum(subjects.values()) * len(judging.judge_methods)
    calls = sum(planned_calls(kind, count, settings=run.settings) for count in subjects.values())
    stage = make_stage(run.warehouse, run.publish_id, (table,))
    summary = ShardSummary()
    if plans:  # also those of which nothing is judged: their rows are counted as excluded
        limits = call_limits(judge_settings(run.settings))
        summary = run_shards(run, what="verdicts", task=task, plans=plans, extra=(stage,), inputs=inputs, calls=calls, limits=limits)
    counts.counts_in, counts.counts_out = inputs, summary.rows[table]
    told = as_detail(summary.tallies, kind, methods=methods, judge_methods=judging.judge_methods)
    counts.detail |= told | {"planned_calls": calls, "level_from": judging.level_from}
    publish_shards(run, counts, summary, what="verdicts", stage=stage, input_digest=counts.input_digest)
