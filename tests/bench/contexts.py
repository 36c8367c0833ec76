"""Times the build of histories and contexts against a DuckDB twin that does the same work on the same files.

    python -m tests.bench.contexts --data DIR [--users 500 5000] [--keep DIR]

DIR holds `online_retail/raw` and `open_ecommerce/raw`. Both are imported first, outside of the clock, as are the start of the engine and
the loading of checks and tokenizer. Then, in a process of its own each, for each number of users and on a copy that holds only feeds:

    ours   three bucket tables (rules, netted returns, cut), contexts, token counts, checks, digests, certificates, Delta write
    twin   event ids, dedupe, the same rules, lines and token counts in SQL, Delta write (tests/bench/duckdb_twin.py)

Printed: seconds, their ratio (at most 3), the cost of a further user against that of one of the first (at most 1.1), peak memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

MAX_RATIO, MAX_MARGINAL = 3.0, 1.1
BUDGET_TOKENS = 2048


class Source(NamedTuple):
    """A data set to measure on, and the night to build."""

    name: str
    folder: str
    ds: str


SOURCES = (Source("online-retail", "online_retail", "2011-11-30"), Source("open-ecommerce", "open_ecommerce", "2021-10-31"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with online_retail/ and open_ecommerce/")
    parser.add_argument("--users", type=int, nargs=2, default=[500, 5000])
    parser.add_argument("--keep", type=Path, help="folder for the imported warehouses, to use them again")
    parser.add_argument("--measure", nargs=4, metavar=("WHAT", "WAREHOUSE", "DS", "USERS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        what, warehouse, ds, users = arguments.measure
        tell(json.dumps(measure(what, warehouse, ds, int(users))))
        return 0
    if arguments.data is None and arguments.keep is None:
        sys.stderr.write("bench: name the folder with online_retail/ and open_ecommerce/, as in `make bench-contexts DATA=DIR`\n")
        return 2
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        root = arguments.keep or Path(scratch)
        results = [compare(source, imported(source, arguments.data, root), arguments.users, Path(scratch)) for source in SOURCES]
    return 0 if all(results) else 1


def tell(line: str) -> None:
    """One line of the report, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def imported(source: Source, data: Path | None, root: Path) -> Path:
    """The warehouse of a source, imported first where it is not there yet."""
    warehouse = root / source.name
    if not (warehouse / "behavior_events_v1").is_dir():
        path = str(data / source.folder / "raw") if data else ""
        command = [sys.executable, "-m", "recgpt_ops.cli", "import", source.name, "--path", path, "--warehouse", str(warehouse)]
        subprocess.run(command, check=True)
    return warehouse


def compare(source: Source, warehouse: Path, user_counts: list[int], scratch: Path) -> bool:
    """Measures one source and prints its lines; whether it holds the bounds."""
    ours, twins = [], []
    for users in user_counts:
        for what, into in (("ours", ours), ("twin", twins)):
            copy = scratch / "copy"
            shutil.copytree(warehouse, copy, ignore=shutil.ignore_patterns("_*", "behavior_[dmy]*", "user_contexts*", "certificates*"))
            for table in ("behavior_events_v1", "items_v1", "user_profiles_v1"):
                shutil.copytree(warehouse / table / "_delta_log", copy / table / "_delta_log")
            command = [sys.executable, "-m", "tests.bench.contexts", "--measure", what, str(copy), source.ds, str(users)]
            told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1]
            into.append(json.loads(told))
            shutil.rmtree(copy)
    is_good = True
    for mine, twin in zip(ours, twins, strict=True):
        ratio = mine["seconds"] / twin["seconds"]
        is_good &= ratio <= MAX_RATIO and mine["rows"] == twin["rows"]
        tell(
            f"{source.name} ds={source.ds}: {mine['users']} users, {mine['rows']} contexts (twin {twin['rows']}), {mine['tokens']} tokens; "
            f"ours {mine['seconds']:.1f} s ({mine['parts']}), twin {twin['seconds']:.1f} s, ratio {ratio:.2f} (at most {MAX_RATIO}); "
            f"peak {mine['peak_mb']:.0f} MiB, twin {twin['peak_mb']:.0f} MiB"
        )
    small, large = ours
    if large["users"] > small["users"]:
        first = small["context_seconds"] / small["users"]
        further = (large["context_seconds"] - small["context_seconds"]) / (large["users"] - small["users"])
        is_good &= further <= MAX_MARGINAL * first
        tell(
            f"{source.name}: a user of the first {small['users']} costs {1000 * first:.2f} ms, a further one {1000 * further:.2f} ms, "
            f"{further / first:.2f} times (at most {MAX_MARGINAL})"
        )
    return is_good


def measure(what: str, root: str, ds: str, users: int) -> dict[str, object]:
    """One measurement in this process."""
    run: Callable[[str, str, int], dict[str, object]]
    if what == "ours":
        run = measure_ours
    else:
        from tests.bench.duckdb_twin import measure_twin as run
    return {**run(root, ds, users), "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def measure_ours(root: str, ds: str, users: int) -> dict[str, object]:
    """Three bucket tables and the contexts of the `users` smallest hashes, published."""
    from pyspark.sql import functions as F

    import recgpt_ops.delta.checks  # noqa: F401  # Great Expectations is loaded outside of the clock
    from recgpt_ops.contexts.audience import smallest_users
    from recgpt_ops.contexts.buckets import STATE_TABLES
    from recgpt_ops.contexts.context_rows import ContextShape
    from recgpt_ops.contexts.contexts import ContextWriter, stage_contexts, token_counter
    from recgpt_ops.contexts.feeds import current_profiles
    from recgpt_ops.contexts.state import refresh_buckets
    from recgpt_ops.delta.generations import publish_files, stage_directory
    from recgpt_ops.delta.warehouse import open_warehouse
    from recgpt_ops.settings import load_settings
    from recgpt_ops.spark import spark_session

    warehouse, session = open_warehouse(root), spark_session(load_settings({}).spark)
    tokenizer = tokenizer_dir()
    token_counter(tokenizer)
    profiles = current_profiles(session, warehouse, ds)
    places = [(row["region"], row["locale"]) for row in profiles.select("region", "locale").distinct().collect()]
    started = time.perf_counter()
    for table in STATE_TABLES:
        refresh_buckets(session, warehouse, table, ds=ds, publish_id="p1", fence=1, max_bucket_entries=500)
    states_done = time.perf_counter()
    audience = profiles.join(smallest_users(profiles, users), "user_id", "left_semi").withColumn("method", F.lit("v2"))
    writer = ContextWriter(
        ds=ds, serve_ds=ds, scenario="default", publish_id="p1", zone=warehouse.zone, tokenizer_dir=tokenizer,
        shapes={"v2": ContextShape(BUDGET_TOKENS, 12, 10, 90, 28)}, surroundings={place: (["Season: autumn"], "s") for place in places},
    )  # fmt: skip
    stage = stage_directory(warehouse, "user_contexts", "p1")
    staged = stage_contexts(session, warehouse, audience, writer, stage)
    publish_files(warehouse, "user_contexts", stage, publish_id="p1", scopes=[ds], fence=1, input_digest="bench")
    done = time.perf_counter()
    return {
        "users": staged.row_count,
        "rows": staged.row_count - len(staged.failed),
        "tokens": staged.context_tokens,
        "seconds": done - started,
        "context_seconds": done - states_done,
        "parts": f"buckets {states_done - started:.1f}, contexts {done - states_done:.1f}",
    }


def tokenizer_dir() -> str:
    """The tokenizer of the demo's model."""
    from recgpt_ops.llm.engine import tokenizer_directory
    from recgpt_ops.settings import load_settings

    settings = load_settings()
    return str(tokenizer_directory(settings, str(Path(settings.warehouse).absolute())))


if __name__ == "__main__":
    raise SystemExit(main())
