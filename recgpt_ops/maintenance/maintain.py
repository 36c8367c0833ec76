"""The whole upkeep of a warehouse, in the order that frees room before it writes anything: a full disk is mended by its first steps.

    staging, progress, ledger    removed by age
    dead files                   removed by vacuum, table by table
    generations                  recorded and taken out of the log; their files go with the vacuum of a later day
    checkpoints                  written where a log has grown long

Each step can be killed and run again. What is visible, and what `recgpt verify` says, stays as it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from recgpt_ops.delta.warehouse import Warehouse, open_warehouse
from recgpt_ops.ledger.summaries import ledger_root
from recgpt_ops.maintenance.dropping import drop_generations
from recgpt_ops.maintenance.generations import Doomed, doomed_generations
from recgpt_ops.maintenance.sweeping import (
    IN_FLIGHT,
    Old,
    old_answers,
    old_progress,
    old_staging,
    remove_answers,
    remove_progress,
    remove_staging,
)
from recgpt_ops.maintenance.tables import dead_files, needs_checkpoint, vacuum, write_checkpoint
from recgpt_ops.settings import Settings, load_settings
from recgpt_ops.tables import all_contracts
from recgpt_ops.verification.tables import open_tables

Say = Callable[[str], None]


class Ages(NamedTuple):
    """How old things must be before they go. `in_flight`: since the last write to staged rows, and since a file left the log."""

    generations: timedelta
    answers: timedelta
    in_flight: timedelta = IN_FLIGHT


class Done(NamedTuple):
    """One kind of thing that went, or would go: of which table or stage, how many, how large."""

    what: str
    subject: str
    thing_count: int
    size_bytes: int

    def __str__(self) -> str:
        return f"{self.what:<12} {self.subject:<28} {self.thing_count:>6}   {self.size_bytes / 1_000_000:>10.1f} MB"


def ages_of(settings: Settings) -> Ages:
    """The ages that the settings say."""
    return Ages(timedelta(days=settings.night.keep_days), timedelta(days=settings.ledger.keep_days))


def maintain_warehouse(root: str, *, say: Say, is_dry_run: bool = False) -> list[Done]:
    """`maintain` now, by the settings, with a last line that sums up."""
    settings, warehouse = load_settings(warehouse=root), open_warehouse(root)
    ledger = ledger_root(settings, warehouse.root)
    done = maintain(warehouse, ledger=ledger, ages=ages_of(settings), now=datetime.now(UTC), say=say, is_dry_run=is_dry_run)
    say(summary(done, is_dry_run=is_dry_run))
    return done


def maintain(warehouse: Warehouse, *, ledger: Path, ages: Ages, now: datetime, say: Say, is_dry_run: bool = False) -> list[Done]:
    """Does all of it and returns what went, each told as it is done; a dry run removes nothing and tells the same."""
    done = []
    for step in steps(warehouse, ledger=ledger, ages=ages, now=now, is_dry_run=is_dry_run):
        say(str(step))
        done.append(step)
    return done


def steps(warehouse: Warehouse, *, ledger: Path, ages: Ages, now: datetime, is_dry_run: bool) -> Iterator[Done]:
    """The steps that have something to do, in order."""
    root = Path(warehouse.root)
    staged = old_staging(root, before=now - ages.in_flight)
    progress = old_progress(root, before=now - ages.generations)
    answers = old_answers(ledger, before=now - ages.answers)
    if not is_dry_run:
        remove_staging(staged)
        remove_progress(progress)
        remove_answers(answers, ledger)
    yield from told("staged rows", by_subject(staged, lambda path: path.parent.name))
    yield from told("progress", by_subject(progress, lambda _: "all nights"))
    yield from told("answers", by_subject(answers, lambda path: "/".join(path.relative_to(ledger).parts[:3])))

    tables = [name for name in all_contracts() if warehouse.exists(name)]
    hours = int(ages.in_flight.total_seconds() // 3600)
    for table in tables:
        if dead := dead_files(warehouse, table, hours=hours):
            if not is_dry_run:
                vacuum(warehouse, table, hours=hours)
            yield Done("dead files", table, len(dead), sum(one.size_bytes for one in dead))

    with open_tables(warehouse) as opened:
        doomed = doomed_generations(opened, since=now - ages.generations)
    if doomed and not is_dry_run:
        drop_generations(warehouse, doomed)
    yield from told("generations", generations_by_table(doomed))

    for table in tables:
        if needs_checkpoint(warehouse.open(table)):
            if not is_dry_run:
                write_checkpoint(warehouse, table)
            yield Done("checkpoint", table, 1, 0)


def by_subject(old: Iterable[Old], subject: Callable[[Path], str]) -> list[tuple[str, int]]:
    """(subject, bytes) of each thing that goes."""
    return [(subject(one.path), one.size_bytes) for one in old]


def generations_by_table(doomed: Sequence[Doomed]) -> list[tuple[str, int]]:
    """(table, bytes) of each generation that goes."""
    return [(one.place.table, one.size_bytes) for one in doomed]


def told(what: str, sizes: Iterable[tuple[str, int]]) -> list[Done]:
    """One line a subject."""
    counts: Counter[str] = Counter()
    size: Counter[str] = Counter()
    for subject, size_bytes in sizes:
        counts[subject] += 1
        size[subject] += size_bytes
    return [Done(what, subject, counts[subject], size[subject]) for subject in sorted(counts)]


def summary(done: Sequence[Done], *, is_dry_run: bool) -> str:
    """The last line. What the files of dropped generations take is freed by the vacuum of a later day."""
    freed = sum(step.size_bytes for step in done if step.what != "generations") / 1_000_000
    later = sum(step.size_bytes for step in done if step.what == "generations") / 1_000_000
    if not freed and not later:
        return "maintenance: nothing is old enough to go"
    said = f"maintenance: {freed:.1f} MB {'would be' if is_dry_run else 'were'} freed"
    return f"{said}; {later:.1f} MB of dropped generations follow in a day" if later else said
