"""Writing a report: into a folder beside its place, which it takes only when every page is there.

reports/2017-10-30/index.html
reports/2017-10-30/users/<hash of the user id>.html
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock

from recgpt_ops.delta.sql import connect
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.errors import UsageError
from recgpt_ops.report.glance import count_night, glance
from recgpt_ops.report.pages import index_page, user_page
from recgpt_ops.report.panels import grade_charts, level_charts, seconds_chart, tokens_chart
from recgpt_ops.report.people import Neighbor, page_name, read_people
from recgpt_ops.report.reading import (
    EVALUATIONS,
    HELD_IMPORTS,
    PUBLICATIONS,
    SHOWN_USERS,
    STAGES,
    STATUSES,
    TOP_TAGS,
    USER_COUNT,
    Night,
    night_rows,
    rows,
)
from recgpt_ops.report.spending import TOKENS, stage_sums, stages_of
from recgpt_ops.report.standing import newer_attempt, open_night
from recgpt_ops.report.worth import evaluations_of

SECTIONS = (
    ("glance", "At a glance"),
    ("users", "Users"),
    ("judges", "What the judges say"),
    ("spending", "Tokens and time"),
    ("quarantine", "Quarantine"),
    ("evaluation", "What the methods are worth"),
)


@dataclass(frozen=True)
class Report:
    """What was written. `size` in bytes."""

    index: Path
    user_count: int
    file_count: int
    size: int


class EntrySide(NamedTuple):
    """What one method made of a user, in a line."""

    method: str
    status: str
    locale: str
    tags: tuple[str, ...]


class Entry(NamedTuple):
    """A user in the index."""

    user_id: str
    page: str
    sides: tuple[EntrySide, ...]


def write_report(warehouse: Warehouse, *, ds: str, scenario: str, folder: Path, most_users: int) -> Report:
    """Makes the pages of one visible night below `folder`, in place of an older report of that night.

    The same tables make the same bytes. NightError and UsageError as `open_night`; then nothing is written.
    """
    night, before = open_night(connect(warehouse), ds=ds, scenario=scenario)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UsageError(f"report: {str(folder)!r} is no folder; name another with --out") from None
    place = folder / ds
    with FileLock(folder / f".{ds}.lock"):
        half = folder / f".{ds}.half"
        shutil.rmtree(half, ignore_errors=True)  # of a run that was killed
        (half / "users").mkdir(parents=True)
        people = write_users(night, half / "users", most_users=most_users)
        (half / "index.html").write_text(index_page(index_content(night, before, people)), encoding="utf-8")
        put_in_place(half, place)
    files = [path for path in place.rglob("*") if path.is_file()]
    return Report(place / "index.html", len(people), len(files), sum(path.stat().st_size for path in files))


def put_in_place(made: Path, place: Path) -> None:
    """The finished folder takes the place of the older one, whole: a reader finds the one or the other."""
    old = made.with_suffix(".old")
    shutil.rmtree(old, ignore_errors=True)
    if place.exists():
        place.rename(old)
    made.rename(place)
    shutil.rmtree(old, ignore_errors=True)


def write_users(night: Night, folder: Path, *, most_users: int) -> list[Neighbor]:
    """Writes the users' pages; returns who has one, in the order of the index."""
    chosen = sorted((str(row["user_id"]) for row in night_rows(night, SHOWN_USERS, most=most_users)), key=by_number)
    places = [Neighbor(user_id, page_name(user_id)) for user_id in chosen]
    beside = zip([None, *places[:-1]], [*places[1:], None], strict=True) if places else ()
    for person, (previous, following) in zip(read_people(night, chosen), beside, strict=True):
        page = user_page(person, ds=night.ds, methods=night.methods, previous=previous, following=following)
        (folder / page_name(person.user_id)).write_text(page, encoding="utf-8")
    return places


def by_number(user_id: str) -> tuple[bool, int, str]:
    """Order of people in a list: numbers as numbers, then names.

    >>> sorted(["u1", "1391", "886"], key=by_number)
    ['886', '1391', 'u1']
    """
    is_number = user_id.isascii() and user_id.isdigit()
    return not is_number, int(user_id) if is_number else 0, user_id


def index_content(night: Night, before: Night | None, people: Sequence[Neighbor]) -> dict[str, Any]:
    """Everything that the index shows."""
    counts, counts_before = count_night(night), None if before is None else count_night(before)
    found = night_rows(night, STAGES)
    fences = {row["method"]: row["fence"] for row in rows(night.connection, PUBLICATIONS, scenario=night.scenario) if row["ds"] == night.ds}
    stages = stages_of(found, attempts=set(fences.values()))
    return {
        "ds": night.ds,
        "scenario": night.scenario,
        "methods": night.methods,
        "before_ds": None if before is None else before.ds,
        "sections": SECTIONS,
        "notice": newer_attempt(found, shown=max(fences.values()), ds=night.ds),
        "figures": glance(counts, counts_before),
        "user_count": sum(row["users"] for row in night_rows(night, USER_COUNT)),
        "people": entries(night, people),
        "grades": counts.grades,
        "front_charts": [
            *grade_charts(counts),
            *([tokens_chart(counts.calls)] if counts.calls else []),
            *([seconds_chart(stages)] if stages else []),
        ],
        "level_charts": level_charts(counts),
        "stages": stages,
        "sums": stage_sums(stages),
        "token_names": TOKENS,
        "calls": counts.calls,
        "quarantine": counts.quarantine,
        "imports": rows(night.connection, HELD_IMPORTS),
        "evaluations": evaluations_of(rows(night.connection, EVALUATIONS, ds=night.ds)),
    }


def entries(night: Night, people: Sequence[Neighbor]) -> list[Entry]:
    """The index's line of each user: the first tags of each method, or why there are none."""
    ids = [person.user_id for person in people]
    tags = {(row["user_id"], row["method"]): row for row in night_rows(night, TOP_TAGS, users=ids)}
    sides: dict[str, list[EntrySide]] = {}
    for row in night_rows(night, STATUSES, users=ids):
        top = tags.get((row["user_id"], row["method"]))
        shown = EntrySide(row["method"], row["status"], row["locale"], tuple(top["tags"]) if top else ())
        sides.setdefault(row["user_id"], []).append(shown)
    return [Entry(person.user_id, person.page, tuple(sides.get(person.user_id, ()))) for person in people]
