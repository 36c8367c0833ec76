"""Tells whether the newest night of each recipe is there, and ends with exit code 1 when one is late.

publications -> a line a recipe

    python -m jobs.check_freshness --warehouse W
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from recgpt_ops.maintenance.freshness import tell_freshness
from recgpt_ops.runs import with_exit_code


def main(argv: Sequence[str] | None = None) -> int:
    """Checks one warehouse and returns the exit code."""
    parser = argparse.ArgumentParser(prog="check_freshness", description="Tells whether the newest nights are there.")
    parser.add_argument("--warehouse", required=True, help="root folder of the warehouse")
    arguments = parser.parse_args(argv)
    return with_exit_code("check_freshness", lambda: run(arguments.warehouse))


def run(root: str) -> None:
    """A line a recipe."""
    tell_freshness(root, say=lambda line: print(line, flush=True))


if __name__ == "__main__":
    sys.exit(main())
