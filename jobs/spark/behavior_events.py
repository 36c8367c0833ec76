"""Imports into `behavior_events`, from a data set that the project knows or from anybody's file by a mapping.

    python -m jobs.spark.behavior_events --warehouse W --source complete-journey [--path DIR]
    python -m jobs.spark.behavior_events --warehouse W --mapping events.yaml events.csv [--arrived-ds 2017-10-30]

Prints the counts, which add up, and progress on stderr; importing again adds nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from recgpt_ops.imports.command import import_table
from recgpt_ops.runs import with_exit_code


def main(argv: Sequence[str] | None = None) -> int:
    """Imports and prints the counts; returns the exit code."""
    return with_exit_code("behavior_events", lambda: print(*import_table("events", argv, say=tell).lines(), sep="\n"))


def tell(line: str) -> None:
    """Progress goes to stderr, so that the counts can be piped."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
