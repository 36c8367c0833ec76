"""What a night was made from, and whether it is done already.

version = input_version(warehouse, settings, ds="2017-10-30", method="v2")
version.digest        what `publications.input_digest` records
version.parts         feeds, recipe, prompts of each room, judging and model by name: what a message names when they changed
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow.compute as pc

from recgpt_ops.delta.inputs import feeds_digest
from recgpt_ops.delta.pointer import visible_publications
from recgpt_ops.delta.records import read_arrow, read_rows
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.errors import NightError, UsageError
from recgpt_ops.ids import row_id, user_order
from recgpt_ops.judges.rules import judging_digest
from recgpt_ops.recipes import load_recipe
from recgpt_ops.settings import Settings
from recgpt_ops.tables import ROOT

FIRST_STAGE = "night_users"
ROOMS = ROOT / "recgpt_ops"  # each room that asks a model has a folder `prompts`


@dataclass(frozen=True)
class InputVersion:
    """Digests of everything that decides what a night computes, by name."""

    parts: Mapping[str, str]

    @property
    def digest(self) -> str:
        """One digest of all parts."""
        return row_id(f"{name}={value}" for name, value in sorted(self.parts.items()))

    def changed(self, before: Mapping[str, str]) -> list[str]:
        """Names of the parts that differ from those of an earlier night."""
        return sorted(name for name in {*self.parts, *before} if self.parts.get(name) != before.get(name))


def input_version(warehouse: Warehouse, settings: Settings, *, ds: str, method: str) -> InputVersion:
    """What a night of `ds` by `method` would be made from now. A recipe that ends at its candidates has nothing judged."""
    recipe = load_recipe(method)
    parts = {f"feed {name}": digest for name, digest in feeds_digest(warehouse, ds).items()}
    parts |= {f"recipe {method}": recipe.digest, "prompts of agents": prompts_digest("agents"), "model": settings.engine.model}
    if recipe.explanations != "none":
        parts |= {f"prompts of {room}": prompts_digest(room) for room in ("explanations", "judges")}
        parts["judging"] = judging_digest(settings)
    return InputVersion(parts)


def prompts_digest(room: str) -> str:
    """Digest of the names and the text of a room's prompt templates."""
    digest = hashlib.sha256()
    for path in sorted((ROOMS / room / "prompts").glob("*.jinja")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


class Asked(NamedTuple):
    """Whom somebody asked for: the N smallest sha256(user_id), users by id, or (both empty) whoever the policy names."""

    users: int | None
    user_ids: tuple[str, ...]


NOBODY = Asked(None, ())


class Standing(NamedTuple):
    """How a night stands, by method. `missing` are asked users without a row; `why` what a new attempt would be for.

    `present` counts the users of every visible method of the day, also of those that nobody asked for now; `wanted` the users asked
    for, None where the policy decides.
    """

    visible: Mapping[str, Mapping[str, Any]]
    missing: Mapping[str, tuple[str, ...]]
    changed: Mapping[str, list[str]]
    versions: Mapping[str, InputVersion]
    present: Mapping[str, int]
    wanted: int | None

    def most_users(self, methods: Sequence[str], *, rebuild: bool, policy: int) -> dict[str, int]:
        """Per method how many users an attempt computes at most; `policy` is the audience policy's limit.

        A method that comes to a night later takes the users of the others, unless users are named.
        """
        newcomers = self.wanted if self.wanted is not None else max(self.present.values(), default=policy)
        counts = {}
        for method in methods:
            is_there = method in self.visible
            counts[method] = len(self.missing[method]) + rebuild * self.present[method] if is_there else newcomers
        return counts

    @property
    def open_methods(self) -> tuple[str, ...]:
        """The methods with something to do: never visible, or without somebody who was asked for."""
        return tuple(method for method in self.versions if method not in self.visible or self.missing[method])

    @property
    def is_done(self) -> bool:
        """Every method is visible, made from the same inputs, with everybody who was asked for."""
        return not self.open_methods and not self.changed

    @property
    def why(self) -> str:
        """`more_users` when each method is visible and only users are missing, else `night`."""
        return "more_users" if all(method in self.visible for method in self.versions) else "night"


def standing(warehouse: Warehouse, settings: Settings, *, ds: str, scenario: str, methods: Sequence[str], asked: Asked) -> Standing:
    """Compares what is visible with what is asked for now."""
    publications = visible_publications(warehouse)
    visible = {method: publications[ds, scenario, method] for method in methods if (ds, scenario, method) in publications}
    versions = {method: input_version(warehouse, settings, ds=ds, method=method) for method in methods}
    wanted = asked_users(warehouse, ds, asked)
    present = {
        method: audience(warehouse, publish_id=str(row["publish_id"]), method=method)
        for (day, place, method), row in publications.items()
        if (day, place) == (ds, scenario)
    }
    missing, changed = {}, {}
    for method, row in visible.items():
        missing[method] = tuple(user_id for user_id in wanted if user_id not in present[method])
        if row["input_digest"] != versions[method].digest:
            changed[method] = versions[method].changed(recorded_parts(warehouse, row, method)) or ["something that was not recorded"]
    counts = {method: len(users) for method, users in present.items()}
    return Standing(visible, missing, changed, versions, counts, len(wanted) if asked != NOBODY else None)


def audience(warehouse: Warehouse, *, publish_id: str, method: str) -> set[str]:
    """The users of one generation of night_users."""
    where = (pc.field("publish_id") == publish_id) & (pc.field("method") == method)
    return {str(row["user_id"]) for row in read_rows(warehouse, "night_users", columns=["user_id"], where=where)}


def asked_users(warehouse: Warehouse, ds: str, asked: Asked) -> tuple[str, ...]:
    """The ids of the users asked for; empty when the policy decides. A user nobody has heard of is an error."""
    if asked.users is None and not asked.user_ids:
        return ()
    ids = users_with_profile(warehouse, ds)
    unknown = [user_id for user_id in asked.user_ids if user_id not in ids]
    if unknown:
        raise UsageError(
            f"no profile as of {ds} for {', '.join(map(repr, unknown[:3]))}; "
            'list users by `recgpt query "select user_id from user_profiles limit 10"`'
        )
    smallest = sorted(ids, key=user_order)[: asked.users or 0]
    return tuple(dict.fromkeys([*asked.user_ids, *smallest]))


def users_with_profile(warehouse: Warehouse, ds: str) -> set[str]:
    """The users whose newest profile that has begun by `ds` still holds on `ds`."""
    columns = ["user_id", "valid_from_ds", "valid_to_ds"]
    versions = read_arrow(warehouse, "user_profiles", columns=columns, where=pc.field("valid_from_ds") <= ds).sort_by("valid_from_ds")
    ends = {str(row["user_id"]): row["valid_to_ds"] for row in versions.to_pylist()}  # the newest version comes last
    return {user_id for user_id, end in ends.items() if end is None or end >= ds}


def first_inputs(warehouse: Warehouse, publish_id: str) -> dict[str, dict[str, str]]:
    """Per method the parts of the input version that a generation began with, as its first stage recorded them.

    Taken at the beginning, because feeds may grow while a night runs; a version that is too old asks for a rebuild, one that is too
    new would hide it.
    """
    where = (pc.field("publish_id") == publish_id) & (pc.field("stage") == FIRST_STAGE) & (pc.field("state") == "done")
    for row in read_rows(warehouse, "nights", where=where):
        inputs: dict[str, dict[str, str]] = json.loads(str(row["detail"]))["inputs"]
        return inputs
    raise NightError(f"`nights` has no finished {FIRST_STAGE} of generation {publish_id}; run that job first")


def recorded_parts(warehouse: Warehouse, publication: Mapping[str, Any], method: str) -> dict[str, str]:
    """The parts that the visible night was made from; its audience may stand in a second generation of the same attempt."""
    rows = read_rows(warehouse, "nights", where=(pc.field("ds") == publication["ds"]) & (pc.field("stage") == FIRST_STAGE))
    for row in rows:
        if row["attempt"] == publication["fence"] and row["scenario"] == publication["scenario"] and row["state"] == "done":
            return first_inputs(warehouse, str(row["publish_id"])).get(method, {})
    return {}


def check_ds(warehouse: Warehouse, ds: str) -> None:
    """Refuses a day outside of what the events cover, and says what they cover."""
    table = warehouse.open("behavior_events")
    months = sorted({partition["arrived_month"] for partition in table.partitions()})
    if not months:
        raise UsageError("behavior_events is empty; import some by `recgpt import`")
    first, last = (arrived_days(warehouse, month) for month in (months[0], months[-1]))
    if not first[0] <= ds <= last[-1]:
        raise UsageError(f"ds={ds} has no data: behavior_events has days from {first[0]} to {last[-1]}; choose --ds among them")


def arrived_days(warehouse: Warehouse, month: str) -> list[str]:
    """The days of a month on which events arrived, sorted."""
    days = read_arrow(warehouse, "behavior_events", columns=["arrived_ds"], where=pc.field("arrived_month") == month)
    return sorted(str(day) for day in pc.unique(days.column("arrived_ds")).to_pylist())
