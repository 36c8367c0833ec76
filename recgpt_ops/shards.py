"""Shards of model calls side by side on Ray, watched by their job: how far they are, what they add up to.

    summary = run_shards(run, what="users", task=run_shard, plans=plans, extra=(stage,), inputs=8, calls=330, limits=limits)

`task(warehouse_root, settings, plan, *extra, board)` runs in a Ray worker and returns its ShardSummary; `shard_engine` gives it the
engine that all shards of a night share.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import ray

from recgpt_ops.delta.generations import publish_files
from recgpt_ops.ledger import has_answers
from recgpt_ops.ledger.summaries import CallLimits, ShardSummary, check_failures, ledger_root, resume_text, stage_outcome
from recgpt_ops.llm.ray_session import ray_session
from recgpt_ops.llm.requests import Engine
from recgpt_ops.runs import NightRun, StageCounts, report_progress
from recgpt_ops.settings import Settings

POLL_SECONDS = 1.0
STALE_SECONDS = 5.0  # a wait is told about once a second; one that is not told any more is over


class ProgressBoard:
    """How far each shard is, kept where every shard and the job can reach it."""

    def __init__(self) -> None:
        """Nobody has begun."""
        self.waited: dict[str, tuple[float, float]] = {}  # seconds, and when they were told
        self.shards: dict[str, tuple[int, int]] = {}

    def wait(self, shard: str, seconds: float) -> None:
        """A shard waits for the engine to be loaded."""
        self.waited[shard] = (seconds, time.monotonic())

    def tell(self, shard: str, inputs: int, calls: int) -> None:
        """Inputs finished and calls answered by one shard so far."""
        self.shards[shard] = (inputs, calls)

    def total(self) -> tuple[float, int, int]:
        """Longest wait for the engine that still goes on (else 0), then inputs and calls of all shards."""
        inputs, calls = sum(inputs for inputs, _ in self.shards.values()), sum(calls for _, calls in self.shards.values())
        now = time.monotonic()
        return max((seconds for seconds, told in self.waited.values() if now - told < STALE_SECONDS), default=0.0), inputs, calls


def shard_engine(settings: Settings, warehouse_root: str, *, run: str, ds: str, method: str, stage: str, shard: str, board: Any) -> Engine:
    """The night's engine, for a shard's own process. It loads ahead of the first call where calls are sure to come.

    A rebuild, which the ledger answers, loads no engine at all. `run` is the publish_id; `board` is told how long loading takes.
    """
    from recgpt_ops.llm.engine import connect_engine  # the engine's client belongs into the shard's process, not into the job's

    return connect_engine(
        settings,
        warehouse_root,
        run=run,
        preload=not has_answers(ledger_root(settings, warehouse_root), ds=ds, method=method, stage=stage, shard=shard),
        progress=lambda seconds: board.wait.remote(f"{method} {shard}", seconds),
    )


def run_shards(
    run: NightRun,
    *,
    what: str,
    task: Callable[..., ShardSummary],
    plans: Sequence[Any],
    extra: Sequence[Any],
    inputs: int,
    calls: int,
    limits: CallLimits,
    turn: Callable[[Any], str] = lambda plan: "",
) -> ShardSummary:
    """All shards side by side, with progress; the first error ends the others and comes out as it was raised.

    `what` names the inputs, of which there are `inputs`; `calls` is the most that they may need. `limits` are those of each shard's
    calls: a stage that finds answers on record says what a kill has cost at most. `plans` come ordered by `turn`:
    those of one turn run side by side, turn after turn, so that they share the engine's memory among themselves only.
    """
    summary = ShardSummary()
    if told := resume_text(ledger_root(run.settings, run.warehouse.root), ds=run.ds, stage=run.stage, limits=limits):
        sys.stdout.write(told + "\n")
        sys.stdout.flush()
    with ray_session(f"{run.stage}, ds={run.ds}"):
        board: Any = ray.remote(ProgressBoard).options(num_cpus=0).remote()
        remote = ray.remote(task).options(num_cpus=1, max_retries=2)
        for _, some in groupby(plans, key=turn):
            waiting = [remote.remote(run.warehouse.root, run.settings, plan, *extra, board) for plan in some]
            while waiting:
                ready, waiting = ray.wait(waiting, timeout=POLL_SECONDS)
                waited, inputs_done, calls_done = ray.get(board.total.remote())
                if calls_done:
                    report_progress(run, f"{inputs_done} of {inputs} {what}, model calls", calls_done, calls)
                elif waited:
                    report_progress(run, "loading the engine, seconds so far", int(waited), None)
                else:  # the first prompts are read together, which takes a minute or two on a small machine
                    report_progress(run, "first prompts are being read, model calls", 0, calls)
                for part in ray.get(ready):
                    summary += part
    return summary


def publish_shards(
    run: NightRun, counts: StageCounts, summary: ShardSummary, *, what: str, stage: Mapping[str, Path], input_digest: str
) -> None:
    """Counts what the shards did, refuses too many failures, and publishes each staged table (table -> folder) of the run.

    `counts` has its inputs and outputs already; `what` names the inputs.
    """
    counts.quarantined_count = summary.failed
    counts.calls_made, counts.calls_reused = summary.account.calls_made, summary.account.calls_reused
    counts.detail = summary.as_dict() | counts.detail
    limits = run.settings.quarantine
    check_failures(summary, stage=run.stage, what=what, ds=run.ds, max_ratio=limits.stage_max_ratio)
    counts.detail |= stage_outcome(summary.failed, summary.inputs, degraded_ratio=limits.stage_degraded_ratio)
    for table, directory in stage.items():
        publish_files(
            run.warehouse,
            table,
            directory,
            publish_id=run.publish_id,
            scopes=[run.ds],
            fence=run.attempt,
            input_digest=input_digest,
            quarantined_count=counts.quarantined_count,
            calls_made=counts.calls_made,
            calls_reused=counts.calls_reused,
        )


def compile_schemas(run: NightRun, schemas: Mapping[str, str]) -> None:
    """Stops the run, before an engine is loaded, for a schema (where it stands -> text) that its grammar cannot take."""
    if schemas and run.settings.engine.kind == "vllm":
        from recgpt_ops.llm.engine import tokenizer_directory
        from recgpt_ops.llm.grammars import check_schemas  # torch

        check_schemas(schemas, model_dir=tokenizer_directory(run.settings, run.warehouse.root))
