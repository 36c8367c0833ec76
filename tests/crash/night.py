"""One night of two users by both methods: every job's `main()` in this process, under a watch of its durable effects."""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from recgpt_ops.effects import Watch, watched
from tests.crash.stand_ins import install

DS, PUBLISH_ID, USERS = "2024-03-12", "pcafe0123456789ab", ("anna", "ben")
JOBS = (
    *(f"jobs.spark.{table}" for table in ("night_users", "behavior_days", "behavior_months", "behavior_years")),
    *(f"jobs.spark.{table}" for table in ("environment_signals", "user_contexts")),
    *(f"jobs.ray.{table}" for table in ("intents", "candidate_items", "explanations", "tag_verdicts", "explanation_verdicts")),
    "jobs.publish_night",
)
ENVIRONMENT = {
    "RECGPT_ENGINE__KIND": "fake",
    "RECGPT_ENGINE__MAX_IN_FLIGHT": "2",
    "RECGPT_LEDGER__FLUSH_COUNT": "2",
    "RECGPT_LEDGER__FLUSH_SECONDS": "60",
    "RECGPT_JUDGING__LEVEL_FROM": "generation",
    "RECGPT_QUARANTINE__STAGE_MAX_RATIO": "1.0",
    "RECGPT_SPARK__ENGINE": "connect",
    "RECGPT_SPARK__SHUFFLE_PARTITIONS": "1",
}
BOUND = 4  # calls that one kill may repeat: 2 in flight and a batch of 2 that was not flushed

# What jobs import only when they run: imported before the fork, it is there at once in every night.
HEAVY = ("deltalake", "great_expectations", "pandas", "pyspark.sql.connect.session", "pyspark.sql.connect.dataframe", "transformers")


def prepare(calls: Path, *, spark: str, tokenizer: Path) -> None:
    """Imports everything heavy, so that forks of this process need not. No native thread is started: it would not outlive a fork."""
    os.environ.update(ENVIRONMENT, RECGPT_SPARK__REMOTE=spark, RECGPT_ENGINE__MODEL=str(tokenizer))
    install(calls)
    for module in (*HEAVY, *JOBS):
        importlib.import_module(module)


def run_jobs(
    warehouse: Path,
    calls: Path,
    *,
    watch: Callable[[str], Watch],
    jobs: Sequence[str] = JOBS,
    before_job: Callable[[str], None] | None = None,
    attempt: Sequence[str] = ("--publish-id", PUBLISH_ID),
    users: Sequence[str] = USERS,
    refused: Collection[str] = (),
) -> None:
    """The jobs in their order, each under the watch made for it; raises SystemExit with the exit code of the first that fails.

    `refused` are users for whom the engine answers nothing.
    """
    install(calls, refused=refused)
    for job in jobs:
        if before_job is not None:
            before_job(job)
        arguments = ["--warehouse", str(warehouse), "--ds", DS, *attempt]
        arguments += [part for user in users for part in ("--user", user)] if job.endswith("night_users") else []
        started = time.monotonic()
        with watched(watch(job)):
            code = importlib.import_module(job).main(arguments)
        sys.stdout.write(f"{job}: exit {code}, {time.monotonic() - started:.1f} s\n")
        sys.stdout.flush()
        if code:
            raise SystemExit(code)
