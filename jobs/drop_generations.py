"""Upkeep of a warehouse: drops what nothing names any more, sweeps what dead attempts left, vacuums, writes checkpoints.

certificates, publications and nights -> rows of dropped_generations, fewer files

    python -m jobs.drop_generations --warehouse W [--dry-run]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from recgpt_ops.maintenance.maintain import maintain_warehouse
from recgpt_ops.runs import with_exit_code


def main(argv: Sequence[str] | None = None) -> int:
    """Maintains one warehouse and returns the exit code."""
    parser = argparse.ArgumentParser(prog="drop_generations", description="Drops and removes what a warehouse no longer needs.")
    parser.add_argument("--warehouse", required=True, help="root folder of the warehouse")
    parser.add_argument("--dry-run", action="store_true", help="tells what would go, and removes nothing")
    arguments = parser.parse_args(argv)
    return with_exit_code("drop_generations", lambda: run(arguments.warehouse, is_dry_run=arguments.dry_run))


def run(root: str, *, is_dry_run: bool) -> None:
    """What the arguments ask for."""
    maintain_warehouse(root, say=say, is_dry_run=is_dry_run)


def say(line: str) -> None:
    """One line, seen at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
