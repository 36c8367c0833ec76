"""Kills a night at every durable effect, runs it again, and compares it with the night that nobody killed: `make crash-matrix`.

    python -m tests.crash.matrix [--report reports/crash_matrix.jsonl] [--sample N] [--seed 1]

A point is an effect of one table or stage. It is killed during one of its calls, before one and after one, and once the disk is full
from one of them on; which call, and how far into it, comes from the seed. Each kill starts from a copy of the warehouse as it stood
before the killed job, and after it the whole night runs again. A line of JSON a kill goes to the report; called again, what the report
holds for the same code is not done again.

The night: two users of the sample shop by both methods, an engine and an embedder that give each request its one answer, at most 2
requests in flight and 2 answers unflushed, one Sail server for all. No Ray.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from recgpt_ops.llm.models import model_directory, models_root
from recgpt_ops.settings import load_settings
from recgpt_ops.tables import ROOT
from tests.crash.compare import Shown, compare, orphans, shown
from tests.crash.night import BOUND, JOBS, prepare, run_jobs
from tests.crash.watches import Kill, Killer, Timed, Witness

SHOP = ROOT / "tests" / "fixtures" / "own_shop"
WAYS = ("during", "full", "before", "after")
KILLED = {-signal.SIGKILL, -signal.SIGALRM}
REFUSED = {1, 2}  # a job's own exit codes for a fault that it told
FORK = multiprocessing.get_context("fork")
SAIL = """
from pysail.spark import SparkConnectServer
server = SparkConnectServer("127.0.0.1", 0)
server.start(background=True)
print(server.listening_address[1], flush=True)
input()  # until whoever started it is gone
"""
T = TypeVar("T")


class Unkilled(NamedTuple):
    """The night that nobody killed: what it shows, its effects in their order, its calls, and what no point declares."""

    shown: Shown
    effects: list[Timed]
    calls: Counter[str]
    bypassed: list[str]


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; 1 when anything was lost, doubled or repeated beyond the bound, or differs otherwise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", type=Path, default=ROOT / "reports" / "crash_matrix.jsonl")
    parser.add_argument("--way", choices=WAYS, default=None, help="this way to end alone")
    parser.add_argument("--sample", type=int, default=None, help="so many kills, chosen by the seed; all when not given")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args(argv)
    arguments.report.parent.mkdir(parents=True, exist_ok=True)
    with prepared() as scratch:
        rows = run_matrix(scratch, arguments.report, way=arguments.way, sample=arguments.sample, seed=arguments.seed)
    return summarize(rows)


@contextmanager
def prepared() -> Iterator[Path]:
    """A folder that holds `base`, a warehouse with the shop's feeds; Sail runs, and everything heavy is imported, meanwhile."""
    with tempfile.TemporaryDirectory(prefix="crash-matrix-") as folder, sail_server() as address:
        scratch = Path(folder)
        for table in ("events", "items", "profiles"):
            files = [f"--mapping={SHOP / table}.yaml", str(SHOP / f"{table}.csv")]
            command = [sys.executable, "-m", "recgpt_ops.cli", "import", table, "--warehouse", str(scratch / "base"), *files]
            subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        settings = load_settings()
        tokenizer = forked(lambda: model_directory(settings.engine.model, models_root=models_root(settings.warehouse)))
        prepare(scratch / "none.calls", spark=address, tokenizer=tokenizer)
        yield scratch


@contextmanager
def sail_server() -> Iterator[str]:
    """A Sail server in a process of its own, because what forks here must hold no native threads."""
    command, environment = [sys.executable, "-c", SAIL], {**os.environ, "RUST_LOG": "error"}
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"sc://127.0.0.1:{server.stdout.readline().strip()}"
        finally:
            server.kill()


def run_matrix(scratch: Path, report: Path, *, way: str | None, sample: int | None, seed: int) -> list[dict[str, Any]]:
    """The report's rows of this code, after what was missing there was done."""
    started = time.monotonic()
    unkilled = unkilled_night(scratch)
    points = {row.effect for row in unkilled.effects}
    tell(f"unkilled night: {time.monotonic() - started:.0f} s, {len(unkilled.effects)} effects at {len(points)} points")
    for line in unkilled.bypassed:
        tell(f"outside of every point: {line}")
    wanted = [kill for kill in kills(unkilled.effects, seed=seed) if way in (None, kill.when)]
    if sample is not None:
        wanted = random.Random(seed).sample(wanted, sample)
    code = digest_of_code()
    lines = report.read_text(encoding="utf-8").splitlines() if report.exists() else []
    before = {(row["effect"], row["when"]): row for row in map(json.loads, lines) if (row["code"], row["seed"]) == (code, seed)}
    rows = []
    for number, kill in enumerate(wanted, start=1):
        row = before.get((kill.effect, kill.when))
        if row is None:
            row = {**kill._asdict(), **killed_night(scratch, kill, unkilled), "seed": seed, "code": code}
            with report.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            tell(f"[{number}/{len(wanted)}] {kill.when} {kill.effect}: {row['took']} s, {', '.join(row['others']) or 'equal'}")
        rows.append(row)
    return rows


def kills(effects: Sequence[Timed], *, seed: int) -> list[Kill]:
    """Each way to end at a seeded call of each effect; first all that are during, so that no point waits for the end."""
    calls: dict[str, list[Timed]] = {}
    for row in effects:
        calls.setdefault(row.effect, []).append(row)
    found = []
    for when in WAYS:
        for name, rows in sorted(calls.items()):
            chance = random.Random(f"{seed} {name} {when}")
            call = chance.choice(rows)
            found.append(Kill(call.job, name, call.nth, when, chance.random() * call.seconds if when == "during" else 0.0))
    return found


def unkilled_night(scratch: Path) -> Unkilled:
    """Runs it, and leaves a copy of the warehouse before each job at `before/<job>`."""
    root, calls = scratch / "unkilled", scratch / "unkilled.calls"
    shutil.copytree(scratch / "base", root)

    def work() -> tuple[list[Timed], list[str]]:
        timed: list[Timed] = []
        bypassed: list[str] = []
        run_jobs(
            root,
            calls,
            watch=lambda job: Witness(root, job, timed, bypassed),
            before_job=lambda job: shutil.copytree(root, scratch / "before" / job) and None,
        )
        return timed, bypassed

    timed, bypassed = forked(work, log=root.with_suffix(".log"))
    return Unkilled(forked(lambda: shown(root)), timed, Counter(calls.read_text().split()), bypassed)


def killed_night(scratch: Path, kill: Kill, unkilled: Unkilled) -> dict[str, Any]:
    """The job up to the kill, then the whole night, and how it compares.

    Which requests go into one batch is a matter of timing, so a call of the ledger may not come as often: then its first is taken.
    """
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=scratch) as folder:  # a path of its own, which the Spark server has never read
        root, calls, log = Path(folder) / "warehouse", Path(folder) / "calls", Path(folder) / "log"
        wanted = REFUSED if kill.when == "full" else KILLED
        for nth in dict.fromkeys((kill.nth, 0)):
            shutil.rmtree(root, ignore_errors=True)
            calls.unlink(missing_ok=True)
            shutil.copytree(scratch / "before" / kill.job, root)
            ended = exit_code(night(root, calls, jobs=[kill.job], kill=kill._replace(nth=nth)), log=log)
            if ended in wanted:
                break
        others = [] if ended in wanted else [f"exit {ended} at {kill.when}"]
        others += ["a stack trace"] if "Traceback" in log.read_text(errors="replace") else []
        lost = doubled = 0
        if again := exit_code(night(root, calls, jobs=JOBS, kill=None), log=log):
            lost, others = unkilled.shown.row_count, [*others, f"exit {again}: {log.read_text(errors='replace')[-500:]}"]
        else:
            difference = compare(forked(lambda: shown(root)), unkilled.shown)
            lost, doubled, others = difference.lost, difference.doubled, others + difference.others
            others += forked(lambda: orphans(root))
        made = Counter(calls.read_text().split()) if calls.exists() else Counter[str]()
    repeated = (made - unkilled.calls).total()
    return {"lost": lost, "doubled": doubled, "repeated": repeated, "others": others, "took": round(time.monotonic() - started, 1)}


def night(root: Path, calls: Path, *, jobs: Sequence[str], kill: Kill | None) -> Callable[[], None]:
    """What a fork of this process runs."""
    return lambda: run_jobs(root, calls, watch=lambda job: Killer(kill), jobs=jobs)


def exit_code(work: Callable[[], None], *, log: Path) -> int:
    """Runs `work` in a fork of this process; its exit code, or minus the signal that ended it."""
    return exit_codes(work, log=log)[0]


def exit_codes(*works: Callable[[], None], log: Path) -> list[int]:
    """Runs each in a fork of its own, all at once."""
    processes = [FORK.Process(target=run_to_exit, args=(work, log)) for work in works]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return [process.exitcode for process in processes if process.exitcode is not None]


def run_to_exit(work: Callable[[], None], log: Path) -> None:
    """Ends this process as a job's process ends."""
    write_to(log)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # a test runner's own alarm is not ours
    try:
        work()
    except SystemExit as error:
        os._exit(int(error.code or 0))
    os._exit(0)  # native threads are not waited for


def forked(work: Callable[[], T], *, log: Path | None = None) -> T:
    """What `work` returns, run in a fork of this process: the native libraries that it starts do not survive a later fork."""
    mine, theirs = FORK.Pipe(duplex=False)

    def run() -> None:
        if log is not None:
            write_to(log)
        theirs.send(work())
        os._exit(0)

    process = FORK.Process(target=run)
    process.start()
    theirs.close()
    try:
        result: T = mine.recv()
    except EOFError as error:
        raise SystemExit(f"a process ended early: {log.read_text()[-2000:] if log is not None else 'see above'}") from error
    finally:
        process.join()
    return result


def write_to(log: Path) -> None:
    """Sends what this process prints to a file."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, sys.stdout.fileno())
    os.dup2(file, sys.stderr.fileno())


def digest_of_code() -> str:
    """Of every source file that takes part, so that a report of other code is not taken for one of this."""
    files = sorted(
        path
        for room in ("recgpt_ops", "jobs", "schemas", "tests/crash")
        for path in (ROOT / room).rglob("*")
        if path.suffix in {".py", ".yaml"}
    )
    told = hashlib.sha256()
    for path in files:
        told.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return told.hexdigest()[:16]


def summarize(rows: Sequence[dict[str, Any]]) -> int:
    """The last lines, and the exit code."""
    beyond = sum(max(0, row["repeated"] - BOUND) for row in rows)
    lost, doubled = sum(row["lost"] for row in rows), sum(row["doubled"] for row in rows)
    differing = [row for row in rows if row["others"]]
    points = len({row["effect"] for row in rows})
    tell(f"{len(rows)} kills; {sum(row['repeated'] for row in rows)} calls repeated in all, at most {BOUND} a kill are allowed")
    tell(f"nights that differ otherwise: {len(differing)}")
    tell(f"crash-matrix: {points} points, {lost} lost, {doubled} doubled, {beyond} repeated calls beyond the bound")
    return int(bool(lost or doubled or beyond or differing))


def tell(line: str) -> None:
    """A line for whoever waits."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
