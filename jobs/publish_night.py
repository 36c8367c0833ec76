"""Makes a night visible: writes down who failed, then moves the pointer of each method.

night_users and intent_tags of one publish_id -> one row a method in publications

    python -m jobs.publish_night --warehouse W --ds 2017-10-30 --publish-id p0123456789abcdef
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from recgpt_ops.publishing import publish_night
from recgpt_ops.runs import run_stage


def main(argv: Sequence[str] | None = None) -> int:
    """Publishes one night and returns the exit code."""
    return run_stage("publish_night", argv, publish_night)


if __name__ == "__main__":
    sys.exit(main())
