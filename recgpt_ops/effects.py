"""The declared point around each call by which a job makes something durable: tables, staged files, ledger, progress, vectors.

    with effect("table.commit", "intent_tags"):
        delta.create_write_transaction(...)

A point says what is made durable, its subject of which table or stage. In production nothing is added to the call. A watch, given by
whoever tests what a kill or a full disk does, is asked around every effect: it can note, delay, raise an OSError or end the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Literal, NamedTuple, get_args

# The list of points. mypy holds every caller to it, and a test holds it to the callers.
Point = Literal[
    "table.create",  # a table's folder and first version; later a commit that adds columns of a newer contract
    "table.commit",  # a commit of files that were checked
    "table.drop",  # a commit that takes generations out which nothing names
    "table.vacuum",  # files removed that no log names, and the two commits that say so
    "table.checkpoint",  # a log summed up, its old entries removed
    "attempt.claim",  # the empty commit that takes an attempt number
    "part.write",  # a row group of a file that is going to be committed
    "part.sync",  # that file whole and on the disk
    "part.remove",  # files taken back that were not committed
    "stage.folder",  # a job's own folder for what it computes
    "stage.write",  # rows in that folder
    "stage.remove",  # the folder after publishing
    "staging.remove",  # what dead attempts left of it
    "ledger.create",  # a segment of recorded answers
    "ledger.append",  # a batch of answers, down to the disk
    "ledger.remove",  # answers past their retention
    "progress.append",  # a line for whoever watches
    "progress.remove",  # the lines of nights that ended
    "vectors.write",  # embedded texts beside their place
    "vectors.rename",  # and at it
]
POINTS: tuple[Point, ...] = get_args(Point)


class Effect(NamedTuple):
    """One durable call: what, and of which table, stage or shard."""

    point: Point
    subject: str

    def __str__(self) -> str:
        return f"{self.point}/{self.subject}"


Watch = Callable[[Effect], AbstractContextManager[None]]
watches: list[Watch] = []  # of this process; empty but in tests


@contextmanager
def effect(point: Point, subject: str) -> Iterator[None]:
    """Declares what is done inside as durable."""
    if not watches:
        yield
        return
    with watches[-1](Effect(point, subject)):
        yield


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Asks `watch` around every effect of this process meanwhile."""
    watches.append(watch)
    try:
        yield
    finally:
        watches.remove(watch)
