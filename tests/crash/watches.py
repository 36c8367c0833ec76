"""Watches of a night's durable effects: one notes what happens, and what happens outside of every point; one ends the process."""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from recgpt_ops.effects import Effect

Tree = dict[str, tuple[int, int, int]]


class Timed(NamedTuple):
    """One call of an effect in a job: the nth of its name there, and how long it took."""

    job: str
    effect: str
    nth: int
    seconds: float


class Kill(NamedTuple):
    """Where a job ends: `before` the nth call of an effect, `after` it, or `during` it, so many seconds after it began.

    Or `full`: from that call on the disk is full, and every effect is refused.
    """

    job: str
    effect: str
    nth: int
    when: str
    seconds: float = 0.0


class Witness:
    """Times every effect, and compares what lies below the root between two effects: nothing may have been written there.

    Whoever wrote, and by which library, is of no matter; only what is written and gone again between two effects is not seen.
    """

    def __init__(self, root: Path, job: str, timed: list[Timed], bypassed: list[str]) -> None:
        self.root, self.job, self.timed, self.bypassed = root, job, timed, bypassed
        self.nth, self.inside, self.lock = Counter[str](), 0, threading.Lock()
        self.tree = tree(root)

    @contextmanager
    def __call__(self, effect: Effect) -> Iterator[None]:
        name = str(effect)
        with self.lock:
            nth, self.nth[name] = self.nth[name], self.nth[name] + 1
            self.compare(f"before {name}")
            self.inside += 1
        started = time.monotonic()
        try:
            yield
        finally:
            with self.lock:
                self.timed.append(Timed(self.job, name, nth, time.monotonic() - started))
                self.inside -= 1
                if not self.inside:
                    self.tree = tree(self.root)

    def compare(self, where: str) -> None:
        """Notes what changed since the last effect ended, unless another is under way in a second thread."""
        if self.inside:
            return
        now = tree(self.root)
        self.bypassed += [
            f"{self.job} {where}: {path}" for path in sorted(now.keys() | self.tree.keys()) if now.get(path) != self.tree.get(path)
        ]


def tree(root: Path) -> Tree:
    """Every file below the root with inode, size and time of its last change; folders by their name alone."""
    found: Tree = {}
    for folder, _, names in os.walk(root):
        found[folder] = (0, 0, 0)
        for name in names:
            told = os.stat(os.path.join(folder, name))
            found[os.path.join(folder, name)] = (told.st_ino, told.st_size, told.st_mtime_ns)
    return found


class Killer:
    """Ends the process at one effect, as the kernel does it: nothing is closed, flushed or told. Or lets the disk be full from there."""

    def __init__(self, kill: Kill | None) -> None:
        self.kill, self.nth, self.is_full = kill, 0, False

    @contextmanager
    def __call__(self, effect: Effect) -> Iterator[None]:
        is_here = self.kill is not None and str(effect) == self.kill.effect and self.count() == self.kill.nth
        when = self.kill.when if self.kill is not None and is_here else None
        self.is_full = self.is_full or when == "full"
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        if when == "during" and self.kill is not None:
            signal.setitimer(signal.ITIMER_REAL, max(self.kill.seconds, 1e-6))  # nobody catches it: the kernel ends the process
        yield
        if when is not None:
            os.kill(os.getpid(), signal.SIGKILL)

    def count(self) -> int:
        """How many calls of the effect came before this one."""
        self.nth += 1
        return self.nth - 1
