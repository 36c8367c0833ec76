"""Which generations may go: those that nothing has named for `night.keep_days`.

    named    what a row of `publications` shows, until `keep_days` after another row took its place: a night that began while it was
             shown may carry users from it
    young    what was certified within `keep_days`; a night that was never published may still be looked into, or finished
    and      what their night_users name in made_by, what their assignments name in explanation_made_by, and of each bucket the
             generation that a night on record reads

Everything else is dropped, and so are files whose attempt died between its commit and its certificate.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from recgpt_ops.delta.certificates import Certificate, Place, certificates, place_of
from recgpt_ops.delta.generations import SCOPE_COLUMNS
from recgpt_ops.delta.reading import DataFile, dropped_places, generation_files, read_rows
from recgpt_ops.tables import all_contracts
from recgpt_ops.verification.scope import Row, named_places
from recgpt_ops.verification.tables import Tables


class Doomed(NamedTuple):
    """One generation that goes, why, and its files."""

    place: Place
    reason: str
    files: tuple[DataFile, ...]

    @property
    def row_count(self) -> int:
        """Rows it has."""
        return sum(file.row_count for file in self.files)

    @property
    def size_bytes(self) -> int:
        """What its files take."""
        return sum(file.size_bytes for file in self.files)


def doomed_generations(tables: Tables, *, since: datetime) -> list[Doomed]:
    """The generations that still have files and may go; `since` is `night.keep_days` before now."""
    certified = {place_of(one): one for one in certificates(tables.warehouse) if one.table_name in all_contracts()}
    kept = kept_places(tables, certified, since=since)
    dropped = dropped_places(tables.warehouse)
    doomed = []
    for contract in all_contracts().values():
        if contract.kind not in ("night", "state"):
            continue
        by_place: dict[Place, list[DataFile]] = defaultdict(list)
        for file in generation_files(tables.warehouse, contract.name):
            by_place[Place(contract.name, file.partition[SCOPE_COLUMNS[contract.kind]], file.partition["publish_id"])].append(file)
        for place, files in sorted(by_place.items()):
            if place in dropped:  # a run before this one wrote it down and got no further
                reason = reason_of(place, certified)
            elif place in kept or (place not in certified and newest_write(files) >= since):
                continue
            else:
                reason = reason_of(place, certified)
            doomed.append(Doomed(place, reason, tuple(files)))
    return doomed


def reason_of(place: Place, certified: Mapping[Place, Certificate]) -> str:
    """Why a generation goes, as the table `dropped_generations` says it."""
    if place not in certified:
        return "uncertified"
    return "superseded" if all_contracts()[place.table].kind == "state" else "unnamed"


def newest_write(files: Sequence[DataFile]) -> datetime:
    """When the newest of some files was written; a file that is gone is as old as can be."""
    times = [Path(file.path).stat().st_mtime for file in files if Path(file.path).is_file()]
    return datetime.fromtimestamp(max(times, default=0), UTC)


def kept_places(tables: Tables, certified: Mapping[Place, Certificate], *, since: datetime) -> set[Place]:
    """Every certified generation that stays."""
    warehouse = tables.warehouse
    publications, nights = read_rows(warehouse, "publications"), read_rows(warehouse, "nights")
    young = {place for place, one in certified.items() if one.made_at >= since}
    rows = [*named_rows(publications, since=since), *audiences(tables, young)]
    kept = young | named_places(tables, rows, nights, set(certified))
    days = {str(row["ds"]) for row in [*publications, *nights]}
    return kept | read_buckets(certified.values(), days)


def named_rows(publications: Iterable[Row], *, since: datetime) -> list[Row]:
    """The rows of `publications` that readers see, or saw at some time since."""
    by_night: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in publications:
        by_night[row["ds"], row["scenario"], row["method"]].append(row)
    named = []
    for rows in by_night.values():
        rows.sort(key=lambda row: int(str(row["fence"])))
        ends: list[Any] = [*(row["published_at"] for row in rows[1:]), None]  # when the next one took its place
        named += [row for row, end in zip(rows, ends, strict=True) if end is None or end >= since]
    return named


def audiences(tables: Tables, places: Iterable[Place]) -> list[Row]:
    """A row (ds, publish_id, scenario, method) for each audience in some generations of night_users, published or not."""
    found: list[Row] = []
    for place in places:
        if place.table == "night_users":
            connection = tables.ask(night_users=tables.files("night_users", ds=place.partition, publish_id=place.publish_id))
            pairs = connection.execute("SELECT DISTINCT scenario, method FROM night_users ORDER BY ALL").fetchall()
            shared = {"ds": place.partition, "publish_id": place.publish_id}
            found += [{**shared, "scenario": scenario, "method": method} for scenario, method in pairs]
    return found


def read_buckets(certified: Iterable[Certificate], days: Iterable[str]) -> set[Place]:
    """Of each bucket its newest generation, and the one that a night of each day reads."""
    by_bucket: dict[tuple[str, str], list[Certificate]] = defaultdict(list)
    for one in certified:
        if one.arrived_cut_ds is not None:
            by_bucket[one.table_name, one.partition].append(one)
    read: set[Place] = set()
    for generations in by_bucket.values():
        generations.sort(key=lambda one: (one.arrived_cut_ds or "", one.made_at, one.publish_id))
        read.add(place_of(generations[-1]))
        for ds in days:
            at_hand = [one for one in generations if one.arrived_cut_ds is not None and one.arrived_cut_ds <= ds]
            read |= {place_of(one) for one in at_hand[-1:]}
    return read
