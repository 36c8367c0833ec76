"""The lock of one table's commits, for writers that do not know each other: delta-rs and Delta's own on JVM Spark.

Both write their log by "create the next version, unless it is there". On a local disk Spark asks and then renames, so that a moment is
left in which two may take one version. Whoever commits to a table that both may write holds the lock meanwhile. It ends with its
process, however that ends.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK_FILE = "_commit.lock"  # beside _delta_log; vacuum and readers leave names that begin with _ alone


@contextmanager
def commit_lock(table_root: Path) -> Iterator[None]:
    """Holds the lock of the table in this folder, waiting for as long as somebody else has it. Not to be taken twice in one call."""
    with (table_root / LOCK_FILE).open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
