"""What is verified: the whole warehouse, or one night and what it names.

    publications of the ds -> the generation of night_users that is shown, and the one it was made from
    its rows               -> made_by and computed_ds of every user, explanation_made_by of every shown assignment
    and                    -> the newest generation of each bucket that the night could read

Generations that nothing names are verified too as long as they are there; what something names has to be there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from recgpt_ops.delta.certificates import Certificate, Place, certificates, place_of
from recgpt_ops.delta.reading import dropped_places, read_rows, state_generations
from recgpt_ops.errors import UsageError
from recgpt_ops.ids import publish_id_of
from recgpt_ops.tables import all_contracts, load_contract
from recgpt_ops.verification.findings import Findings
from recgpt_ops.verification.tables import Tables
from recgpt_ops.views import EXPLAINED

END_OF_TIME = "9999-12-31"
STATE_TABLES = ("behavior_days", "behavior_months", "behavior_years")
Row = Mapping[str, Any]


class Scope(NamedTuple):
    """`publications`, `nights` and `certificates` in scope; `shown` are the publications that readers see, `every` all certificates.

    `dropped` are the generations that maintenance has dropped, `needed` those that have to be there.
    """

    ds: str | None
    publications: Sequence[Row]
    shown: Sequence[Row]
    nights: Sequence[Row]
    certificates: Sequence[Certificate]
    every: Sequence[Certificate]
    needed: frozenset[Place]
    dropped: frozenset[Place]

    def days(self) -> list[str]:
        """The business dates of everything in scope."""
        nights = {certificate.partition for certificate in self.certificates if load_contract(certificate.table_name).kind == "night"}
        return sorted(nights | {str(row["ds"]) for row in self.publications})


def origins(nights: Sequence[Row], publication: Row) -> list[str]:
    """The generations of the run behind a publication: the shown one, and the one whose failed users it says."""
    shown = str(publication["publish_id"])
    told = {shown}
    for row in nights:
        if row["ds"] != publication["ds"]:
            continue
        is_said = row["stage"] == "publish_night" and json.loads(str(row["detail"])).get("shown_publish_id") == shown
        if is_said or publish_id_of(f"{row['publish_id']}/failed") == shown:
            told.add(str(row["publish_id"]))
    return sorted(told)


def find_scope(findings: Findings, tables: Tables, ds: str | None) -> Scope:
    """The scope of one night, or of everything when `ds` is None. UsageError for a ds that nobody has published."""
    warehouse = tables.warehouse
    publications = sorted(read_rows(warehouse, "publications"), key=lambda row: [str(row[name]) for name in ("ds", "scenario", "method")])
    nights = read_rows(warehouse, "nights")
    if ds is not None:
        known = sorted({str(row["ds"]) for row in publications})
        publications = [row for row in publications if row["ds"] == ds]
        if not publications:
            raise UsageError(f"publications: there is no night of {ds}; there are {', '.join(known[-5:]) or 'none'}, name one with --ds")
        nights = [row for row in nights if row["ds"] == ds]
    newest: dict[tuple[object, ...], Row] = {}
    for row in publications:
        key = (row["ds"], row["scenario"], row["method"])
        if key not in newest or int(str(newest[key]["fence"])) < int(str(row["fence"])):
            newest[key] = row
    every = []
    for one in certificates(warehouse):
        if one.table_name in all_contracts():
            every.append(one)
        else:
            findings.differ(
                f"certificates, {one.table_name}, {one.partition}, {one.publish_id}", expected="the name of a table",
                got=f"{one.table_name}, which is none", next_step="certificates is append-only: restore it from a backup",
            )  # fmt: skip
    places = {place_of(certificate) for certificate in every}
    needed = named_places(tables, list(newest.values()), nights, places)
    for table in STATE_TABLES:
        for bucket, publish_id in state_generations(warehouse, table, arrived_cut_ds=ds or END_OF_TIME).items():
            needed.add(Place(table, bucket, publish_id))
    chosen = [
        one
        for one in every
        if ds is None or place_of(one) in needed or (load_contract(one.table_name).kind, one.partition) == ("night", ds)
    ]
    if ds is None:
        needed |= {place for place in places if load_contract(place.table).kind == "feed"}
    return Scope(
        ds,
        publications,
        list(newest.values()),
        nights,
        chosen,
        every,
        frozenset(needed),
        frozenset(map(Place._make, dropped_places(warehouse))),
    )


def named_places(tables: Tables, shown: Sequence[Row], nights: Sequence[Row], places: set[Place]) -> set[Place]:
    """Every generation of a night table that something visible names, as far as it was certified."""
    night_places = [place for place in places if load_contract(place.table).kind == "night"]
    needed: set[Place] = set()
    for row in shown:
        ds, pairs = str(row["ds"]), {(str(row["ds"]), publish_id) for publish_id in origins(nights, row)}
        pairs |= made_by_pairs(tables, row)
        needed.add(Place("night_users", ds, str(row["publish_id"])))
        needed |= {place for place in night_places if (place.partition, place.publish_id) in pairs}
        writers = explanation_writers(tables, {publish_id for _, publish_id in pairs})
        needed |= {place for place in night_places if place.table in EXPLAINED and place.publish_id in writers}
    return needed


def made_by_pairs(tables: Tables, publication: Row) -> set[tuple[str, str]]:
    """(computed_ds, made_by) of the users of one shown night who have rows."""
    files = tables.files("night_users", ds=str(publication["ds"]), publish_id=str(publication["publish_id"]))
    query = "SELECT DISTINCT computed_ds, made_by FROM night_users WHERE scenario = ? AND method = ? AND status IN ('computed', 'carried')"
    return set(tables.ask(night_users=files).execute(query, [publication["scenario"], publication["method"]]).fetchall())


def explanation_writers(tables: Tables, publish_ids: set[str]) -> set[str]:
    """The generations whose explanations some generations' assignments show."""
    connection = tables.ask(explanation_assignments=tables.files("explanation_assignments", publish_id=publish_ids))
    query = "SELECT DISTINCT explanation_made_by FROM explanation_assignments WHERE explanation_made_by IS NOT NULL"
    return {str(name) for (name,) in connection.execute(query).fetchall()}
