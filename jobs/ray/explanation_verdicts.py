"""Makes explanation_verdicts of one night: how good each explanation is, by the panel and by V1's one-shot judge, on Ray.

    python -m jobs.ray.explanation_verdicts --warehouse W --ds 2017-10-30 --publish-id p0123456789abcdef

`judging_daily` submits it through Ray's job API. Only explanations that this generation made are judged:
one that is shared from an older generation was judged there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recgpt_ops.judges.shard import VerdictPlan
from recgpt_ops.judging import judge_night, run_verdict_shard
from recgpt_ops.ledger.summaries import ShardSummary
from recgpt_ops.runs import NightRun, StageCounts, run_stage
from recgpt_ops.settings import Settings


def run_shard(warehouse_root: str, settings: Settings, plan: VerdictPlan, stage: dict[str, Path], board: Any) -> ShardSummary:
    """One shard, from its explanations to its staged file."""
    return run_verdict_shard(warehouse_root, settings, plan, stage, board)


def work(run: NightRun, counts: StageCounts) -> None:
    """One stage of the night: judge, check how many failed, publish."""
    judge_night(run, counts, kind="explanation", task=run_shard)


def main(argv: Sequence[str] | None = None) -> int:
    """The job's command line; returns its exit code."""
    return run_stage("explanation_verdicts", argv, work)


if __name__ == "__main__":
    raise SystemExit(main())
