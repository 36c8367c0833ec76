"""The contexts of one night, stage after stage in one driver: `spark-submit build_contexts.py WAREHOUSE DS PUBLISH_ID`."""

from __future__ import annotations

import sys

from jobs.spark import behavior_days, behavior_months, behavior_years, environment_signals, night_users, user_contexts

STAGES = (night_users, environment_signals, behavior_days, behavior_months, behavior_years, user_contexts)


def main() -> int:
    """The exit code of the first stage that fails, else 0."""
    warehouse, ds, publish_id = sys.argv[1:]
    for stage in STAGES:
        if code := stage.main(["--warehouse", warehouse, "--ds", ds, "--publish-id", publish_id, "--users", "4", "--methods", "v2"]):
            return code
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
