"""One night without a scheduler: the real DAG files, by Airflow's own dag test, in one process. The only caller of dag.test.

    python -m dags.common.night --warehouse /data/shop --ds 2017-10-30 --run-id recgpt__2017-10-30__20261130T201500 --users 8

Airflow's own files (SQLite, logs) stand below the warehouse, in `_airflow`. Exit code 0 when all DAGs succeeded, else 1.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dags.common.environment import airflow_environment
from recgpt_ops.ids import publish_id_of
from recgpt_ops.tables import ROOT

DAGS = ("contexts_daily", "intents_daily", "explanations_daily", "judging_daily")  # in the order of the night


def night_environment(home: Path) -> dict[str, str]:
    """What Airflow must find in the environment before its first import."""
    level = {"AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR"}  # INFO is 200 lines a night, WARNING one a second while a retry waits
    return airflow_environment(home, lineage=home) | level


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line; the command `recgpt night` has checked it before."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--warehouse", required=True)
    parser.add_argument("--ds", required=True)
    parser.add_argument("--run-id", required=True)
    parser.add_argument("--scenario")
    parser.add_argument("--methods", default="", help="comma-separated")
    parser.add_argument("--users", type=int)
    parser.add_argument("--user", action="append", default=[])
    parser.add_argument("--why", default="night")
    return parser.parse_args(argv)


def run_conf(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """The parameters of each DAG's run. Always all of them: a DAG object keeps those of its last test run."""
    shared = {"ds": arguments.ds, "warehouse": arguments.warehouse}
    head = {
        "run_id": arguments.run_id,
        "scenario": arguments.scenario,
        "methods": arguments.methods.split(",") if arguments.methods else [],
        "users": arguments.users,
        "user_ids": arguments.user,
        "why": arguments.why,
    }
    following = {**shared, "publish_id": publish_id_of(arguments.run_id)}
    return {DAGS[0]: {**shared, **head}, **dict.fromkeys(DAGS[1:], following)}


def run_night(conf: dict[str, dict[str, Any]]) -> int:
    """Runs the DAGs one after the other and stops at the first that does not succeed."""
    from airflow.dag_processing.dagbag import BundleDagBag  # BundleDagBag, not DagBag, loads as production does
    from airflow.utils import db

    db.initdb()
    folder = ROOT / "dags"
    bag = BundleDagBag(str(folder), bundle_path=folder, bundle_name="dags-folder")
    if bag.import_errors:
        sys.stdout.write("".join(f"FAILED {path}: {error}\n" for path, error in bag.import_errors.items()))
        return 1
    for dag_id in DAGS:
        bag.dags[dag_id].deadline = None  # nobody watches here, and dag.test cannot look an alert up: it has only its serialized form
        run = bag.dags[dag_id].test(logical_date=None, run_conf=conf[dag_id])
        if str(run.state) != "success":
            return 1
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """The night as a process of its own."""
    arguments = parse_arguments(argv)
    home = Path(arguments.warehouse) / "_airflow"
    home.mkdir(parents=True, exist_ok=True)
    os.environ.update(night_environment(home))
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr] # stdout is a TextIOWrapper outside of tests
    return run_night(run_conf(arguments))


if __name__ == "__main__":
    sys.exit(main())
