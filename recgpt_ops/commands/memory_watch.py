"""How much memory the processes of a night take together: the command, Airflow, the jobs, and the Ray head with its engine."""

from __future__ import annotations

import time
from contextlib import suppress

import psutil

PAUSE_SECONDS = 2.0  # a look walks all processes of the machine, some 20 ms


class MemoryWatch:
    """Peak memory by stage. Shared pages (libraries, Ray's object store) are left out, as each process would count them again."""

    def __init__(self, head_pid: int | None) -> None:
        """`head_pid` is the Ray head's process; it is no child of ours when `recgpt engine up` started it."""
        self.roots = {psutil.Process().pid, *([] if head_pid is None else [head_pid])}
        self.peak_mb: dict[str, float] = {}
        self.looked_at = 0.0

    def look(self, stage: str | None) -> None:
        """Measures, if the last measure is long enough ago, and keeps the highest value of the running stage."""
        if stage is None or time.monotonic() - self.looked_at < PAUSE_SECONDS:
            return
        self.looked_at = time.monotonic()
        self.peak_mb[stage] = max(self.peak_mb.get(stage, 0.0), private_mb(self.roots))


def private_mb(roots: set[int]) -> float:
    """Private resident memory of these processes and all below them, in MiB."""
    family: set[psutil.Process] = set()
    for pid in roots:
        with suppress(psutil.Error):
            root = psutil.Process(pid)
            family |= {root, *root.children(recursive=True)}
    total = 0
    for process in family:
        with suppress(psutil.Error):  # gone since
            used = process.memory_info()
            total += used.rss - getattr(used, "shared", 0)
    return total / 2**20
