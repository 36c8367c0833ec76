"""What every job of a night has in common: its arguments, its attempt, its record in `nights`, its exit code.

    python -m jobs.spark.user_contexts --warehouse W --ds 2017-10-30 --publish-id p0123456789abcdef

    -> a row (user_contexts, running) in `nights`, the work, a row (user_contexts, done) with counts, one summary line, exit 0

`night_users` is the first job of a night: it claims the attempt (the fence) and writes down methods and audience, so that every
later job needs the publish_id alone. A stage that is done for this publish_id is not done again.
"""

from __future__ import annotations

import argparse
import errno
import json
import resource
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from recgpt_ops.delta.pointer import claim_attempt
from recgpt_ops.delta.reading import dropped_places
from recgpt_ops.delta.records import append_records, read_rows
from recgpt_ops.delta.warehouse import Warehouse, open_warehouse
from recgpt_ops.effects import effect
from recgpt_ops.errors import NightError, RecgptError, UsageError
from recgpt_ops.settings import Settings, load_settings

FIRST_STAGE = "night_users"
ALL_METHODS = "all"  # in `nights`: a stage computes every method of its run
MANIFEST = "RECGPT-MANIFEST"  # the orchestrator takes a job for done only when this line was printed


@dataclass(frozen=True)
class NightRun:
    """One attempt at one night. `users` and `user_ids` are what was asked for on the command line, both empty for the policy."""

    ds: str
    scenario: str
    methods: tuple[str, ...]
    publish_id: str
    run_id: str
    attempt: int
    why: str
    users: int | None
    user_ids: tuple[str, ...]
    settings: Settings
    warehouse: Warehouse
    stage: str


@dataclass
class StageCounts:
    """What a stage did; filled in by its work. `detail` holds further counts and versions and must fit JSON."""

    counts_in: int = 0
    counts_out: int = 0
    quarantined_count: int = 0
    calls_made: int = 0
    calls_reused: int = 0
    input_digest: str | None = None
    detail: dict[str, Any] = field(default_factory=dict)


Work = Callable[[NightRun, StageCounts], None]


def parse_arguments(stage: str, argv: Sequence[str] | None) -> argparse.Namespace:
    """The arguments of a job of a night. Only the first stage needs more than warehouse, ds and publish-id."""
    parser = argparse.ArgumentParser(prog=stage, description=f"Makes {stage} for one night; `recgpt night` calls it.")
    parser.add_argument("--warehouse", required=True, help="root folder of the warehouse")
    parser.add_argument("--ds", required=True, type=parse_ds, help="business date, YYYY-MM-DD")
    parser.add_argument("--publish-id", required=True, help="generation to write")
    parser.add_argument("--run-id", default="", help="the orchestrator's run")
    parser.add_argument("--scenario", default="default", help="where the result is shown")
    parser.add_argument("--methods", default="", help="recipes, comma-separated; the settings' when empty")
    parser.add_argument("--users", type=int, default=None, help="the N users with the smallest sha256(user_id)")
    parser.add_argument("--user", action="append", default=[], help="a user by id; may be given again")
    parser.add_argument("--why", default="night", choices=["night", "rebuild", "more_users", "replay"], help="what the attempt is for")
    return parser.parse_args(argv)


def parse_ds(text: str) -> str:
    """A business date in its one spelling.

    >>> parse_ds("2017-10-30")
    '2017-10-30'
    """
    try:
        ds = date.fromisoformat(text).isoformat()
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"expected a date such as 2017-10-30, got {text!r} ({error})") from error
    if ds != text:
        raise argparse.ArgumentTypeError(f"expected YYYY-MM-DD, got {text!r}; write {ds}")
    return ds


def run_stage(stage: str, argv: Sequence[str] | None, work: Work) -> int:
    """Runs one stage of a night and returns the exit code of its process: 0, or that of the error, told in one line."""
    return with_exit_code(stage, lambda: run_recorded(stage, parse_arguments(stage, argv), work))


def with_exit_code(name: str, run: Callable[[], None]) -> int:
    """Runs a job and turns what it raises into one line on stderr and an exit code; only the unexpected shows a stack trace."""
    try:
        run()
    except RecgptError as error:
        sys.stderr.write(f"{name}: {error}\n")
        return error.exit_code
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EPERM, errno.EDQUOT}:
            raise
        sys.stderr.write(
            f"{name}: cannot write {error.filename or 'to the warehouse'}: {error.strerror}; free the disk or mend the rights, "
            "then run it again\n"
        )
        return UsageError.exit_code
    return 0


def run_recorded(stage: str, arguments: argparse.Namespace, work: Work) -> None:
    """One stage with its rows in `nights`: running, then done or failed. Done before: nothing is done."""
    settings = load_settings(warehouse=arguments.warehouse)
    warehouse = open_warehouse(arguments.warehouse)
    history = read_rows(warehouse, "nights", where=None)
    mine = [row for row in history if row["publish_id"] == arguments.publish_id]
    refuse_dropped(warehouse, arguments.ds, arguments.publish_id)
    done = [row for row in mine if row["stage"] == stage and row["state"] == "done"]
    if done:
        print_manifest(stage, done[0])
        return
    run = find_run(stage, arguments, mine, settings, warehouse)
    counts, started = StageCounts(), time.monotonic()
    record_state(run, counts, state="running", seconds=0.0)
    report_progress(run, stage, 0, None)
    try:
        work(run, counts)
    except BaseException as error:
        counts.detail["error"] = error_line(error)
        record_state(run, counts, state="failed", seconds=time.monotonic() - started)
        raise
    row = record_state(run, counts, state="done", seconds=time.monotonic() - started)
    report_progress(run, stage, 1, 1)
    print_manifest(stage, row)


def refuse_dropped(warehouse: Warehouse, ds: str, publish_id: str) -> None:
    """A generation that maintenance dropped is not gone on with: the stages that are done have no rows any more."""
    if any(partition == ds and dropped == publish_id for _, partition, dropped in dropped_places(warehouse)):
        raise UsageError(
            f"ds={ds}: generation {publish_id} was dropped by maintenance, since nothing visible had named it for night.keep_days; "
            "start a new run, do not clear the old one"
        )


def find_run(
    stage: str, arguments: argparse.Namespace, mine: Sequence[Mapping[str, Any]], settings: Settings, warehouse: Warehouse
) -> NightRun:
    """The attempt that `publish_id` belongs to; the first stage claims one when there is none."""
    first = next((row for row in mine if row["stage"] == FIRST_STAGE), None)
    if first is not None:
        told = json.loads(first["detail"])
        if first["ds"] != arguments.ds:
            raise UsageError(f"{stage}: publish_id {arguments.publish_id} belongs to ds={first['ds']}, but --ds is {arguments.ds}")
        return NightRun(
            arguments.ds,
            first["scenario"],
            tuple(told["methods"]),
            arguments.publish_id,
            first["run_id"],
            first["attempt"],
            told["why"],
            told["users"],
            tuple(told["user_ids"]),
            settings,
            warehouse,
            stage,
        )
    if stage != FIRST_STAGE:
        raise NightError(
            f"{stage}, ds={arguments.ds}: `nights` has no {FIRST_STAGE} of publish_id {arguments.publish_id}; run that job first"
        )
    methods = tuple(arguments.methods.split(",")) if arguments.methods else tuple(settings.night.methods)
    attempt = claim_common_attempt(warehouse, ds=arguments.ds, scenario=arguments.scenario, methods=methods)
    return NightRun(
        arguments.ds,
        arguments.scenario,
        methods,
        arguments.publish_id,
        arguments.run_id,
        attempt,
        arguments.why,
        arguments.users,
        tuple(arguments.user),
        settings,
        warehouse,
        stage,
    )


def claim_common_attempt(warehouse: Warehouse, *, ds: str, scenario: str, methods: Sequence[str]) -> int:
    """One attempt number for every method of a run, higher than any of them had before, and no other run's of this night.

    The number is claimed for ALL_METHODS as well: methods that run apart from each other would count apart, and `nights`, whose rows
    are of all methods of a run, would hold two runs under one number.
    """
    names = (*methods, ALL_METHODS)
    claims = {name: claim_attempt(warehouse, ds=ds, scenario=scenario, method=name) for name in names}
    attempt = max(claims.values())
    for name in names:
        while claims[name] < attempt:  # one that had fewer attempts catches up
            claims[name] = claim_attempt(warehouse, ds=ds, scenario=scenario, method=name)
    return max(claims.values())


def record_state(run: NightRun, counts: StageCounts, *, state: str, seconds: float) -> dict[str, Any]:
    """Appends the stage's row to `nights` and returns it."""
    detail = {"methods": list(run.methods), "why": run.why, "users": run.users, "user_ids": list(run.user_ids), **counts.detail}
    row = {
        "ds": run.ds, "scenario": run.scenario, "method": ALL_METHODS, "stage": run.stage, "attempt": run.attempt, "state": state,
        "run_id": run.run_id, "publish_id": run.publish_id, "counts_in": counts.counts_in, "counts_out": counts.counts_out,
        "quarantined_count": counts.quarantined_count, "calls_made": counts.calls_made, "calls_reused": counts.calls_reused,
        "input_digest": counts.input_digest, "detail": json.dumps(detail, sort_keys=True), "seconds": round(seconds, 3),
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1), "recorded_at": datetime.now(UTC),
    }  # fmt: skip
    append_records(run.warehouse, "nights", [row])
    return row


def print_manifest(stage: str, row: Mapping[str, Any]) -> None:
    """The line that says the stage is done, with its counts, as JSON after the word RECGPT-MANIFEST."""
    told = {name: row[name] for name in ("ds", "publish_id", "attempt", "counts_in", "counts_out", "quarantined_count", "calls_made",
                                         "calls_reused", "seconds", "peak_memory_mb")}  # fmt: skip
    sys.stdout.write(f"{MANIFEST} {json.dumps({'stage': stage, 'state': 'done', **told})}\n")
    sys.stdout.flush()


def error_line(error: BaseException) -> str:
    """An error as one line; what we did not raise ourselves is told by its kind alone, because its text may hold rows."""
    if isinstance(error, RecgptError):
        return str(error)
    return f"{type(error).__name__} at {traceback.extract_tb(error.__traceback__)[-1].name}"


def progress_path(warehouse_root: str, publish_id: str) -> Path:
    """Where the jobs of one generation write how far they are."""
    return Path(warehouse_root) / "_progress" / f"{publish_id}.jsonl"


def report_progress(run: NightRun, what: str, done: int, total: int | None) -> None:
    """One line for whoever watches: what runs, how far it is, of how many (None: not known)."""
    path = progress_path(run.warehouse.root, run.publish_id)
    line = json.dumps({"at": time.time(), "stage": run.stage, "what": what, "done": done, "total": total})
    with effect("progress.append", run.stage):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(line + "\n")
