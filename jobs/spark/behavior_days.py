"""Makes behavior_days: the bucket rows of a night's days, as new generations where something arrived that touches them.

python -m jobs.spark.behavior_days --warehouse W --ds 2017-10-30 --publish-id P
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from recgpt_ops.refreshing import refresh_table
from recgpt_ops.runs import run_stage

TABLE: Final = "behavior_days"


def main(argv: Sequence[str] | None = None) -> int:
    """The job's command line; returns its exit code."""
    return run_stage(TABLE, argv, partial(refresh_table, table=TABLE))


if __name__ == "__main__":
    raise SystemExit(main())
