"""Times the resume of a shard whose answers are all on record, and tells the memory that it takes.

    python -m tests.bench.resume [--answers 5000000]

A first process records the answers; a second one, as after a kill, opens the ledger, asks for each of them through the recorder and
reads the rows of `llm_calls` that it would append. Printed: seconds of each step, calls made (0), the second process's most memory
(at most 1 GB) and the ledger's size. The plain reading of the same file, in the same run, says what the disk alone takes.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from recgpt_ops.ledger.recorder import CallRecorder
from recgpt_ops.llm.fake import FakeEngine
from recgpt_ops.llm.requests import Answer, Request, Sampling

MAX_BYTES = 10**9
BLOCK = 1 << 20
WAVE = 20_000  # requests that wait at once
SHARD = "0000-1023"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=5_000_000)
    parser.add_argument("--ledger", type=Path, default=None, help=argparse.SUPPRESS)  # of the second process
    arguments = parser.parse_args()
    if arguments.ledger is not None:
        return resume(arguments.ledger, arguments.answers)
    with tempfile.TemporaryDirectory(prefix="bench-resume-") as scratch:
        started = time.monotonic()
        made = ask(recorder(Path(scratch), attempt=1), arguments.answers)
        tell(f"{made:,} answers recorded in {time.monotonic() - started:.0f} s")
        again = [sys.executable, "-m", "tests.bench.resume", "--answers", str(arguments.answers), "--ledger", scratch]
        return subprocess.run(again, check=False).returncode


def resume(ledger: Path, count: int) -> int:
    """What the second process does."""
    [segment] = ledger.rglob("*.seg")
    started = time.monotonic()
    with segment.open("rb", buffering=0) as file:
        while file.read(BLOCK):
            pass
    bare = time.monotonic() - started
    before = peak_bytes()
    started = time.monotonic()
    calls = recorder(ledger, attempt=2)
    opened = time.monotonic()
    made = ask(calls, count)
    asked = time.monotonic()
    rows = sum(1 for _ in calls.call_rows)
    ended = time.monotonic()
    peak = peak_bytes()
    tell(f"ledger {segment.stat().st_size / 1e9:.2f} GB, read plainly in {bare:.1f} s; opened in {opened - started:.1f} s,")
    tell(f"asked in {asked - opened:.1f} s with {made} calls made, {rows:,} rows of llm_calls read in {ended - asked:.1f} s")
    tell(f"most memory {peak / 1e6:.0f} MB, {before / 1e6:.0f} MB of it imports; at most {MAX_BYTES / 1e6:.0f} MB")
    return int(made != 0 or rows != count or peak > MAX_BYTES)


def recorder(ledger: Path, *, attempt: int) -> CallRecorder:
    return CallRecorder(
        FakeEngine(),
        ledger_root=ledger,
        ds="2017-10-30",
        scenario="default",
        method="v2",
        stage="intents",
        shard=SHARD,
        attempt=attempt,
        max_in_flight=64,
        flush_count=4096,
        flush_seconds=60.0,
    )


def ask(calls: CallRecorder, count: int) -> int:
    """Asks for every answer and returns how many calls that made."""

    async def run() -> None:
        for first in range(0, count, WAVE):
            await asyncio.gather(*(calls.call(request, parse=text_of) for request in requests(first, min(first + WAVE, count))))
            calls.made.clear()  # what waits for an equal call is over with its wave; a night of this size is many shards
            calls.call_rows.made.clear()
            if isinstance(calls.engine, FakeEngine):
                calls.engine.calls.clear()

    asyncio.run(run())
    calls.close()
    return calls.account.calls_made


def requests(first: int, after: int) -> Iterator[Request]:
    for n in range(first, after):
        yield Request("expert", "prompt", (), (1, 2, n), Sampling(64), choice=("a", "b"), user_id=f"u_{n % 100_000}")


def text_of(answer: Answer) -> str:
    return answer.text


def peak_bytes() -> int:
    """The most memory that this process had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
