"""What the visible nights of some methods hold: who was computed, which tags, by which routes, which explanations and verdicts."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from recgpt_ops.agents.rows import Context, read_context
from recgpt_ops.delta.pointer import visible_publications
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.errors import UsageError
from recgpt_ops.evaluation.feeds import fetch_rows
from recgpt_ops.nights import recorded_parts
from recgpt_ops.recipes import Recipe

SHOWN = "ds = $ds AND scenario = $scenario AND method = $method"  # the rows of one visible night


@dataclass(frozen=True)
class MethodNight:
    """The visible night of one method. `user_ids`: computed by a night of this very ds, or failed in it; others were carried."""

    recipe: Recipe
    publish_id: str
    inputs: Mapping[str, str]
    user_ids: frozenset[str]
    tags: Mapping[str, tuple[str, ...]]
    routes: Mapping[str, tuple[tuple[str, ...], ...]]

    @property
    def method(self) -> str:
        """The recipe's name."""
        return self.recipe.name

    @property
    def is_recipe_changed(self) -> bool:
        """Whether the recipe's file says something else now than when the night was made."""
        return self.inputs.get(f"recipe {self.method}", self.recipe.digest) != self.recipe.digest


def read_night(connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, recipe: Recipe, *, ds: str, scenario: str) -> MethodNight:
    """One method's visible night; UsageError, with the command that makes it, where there is none."""
    publication = visible_publications(warehouse).get((ds, scenario, recipe.name))
    if publication is None:
        raise UsageError(
            f"methods: there is no visible night of {ds} by {recipe.name!r} (scenario {scenario!r}); make it by "
            f"`recgpt night --ds {ds} --method {shlex.quote(recipe.name)} --warehouse {shlex.quote(warehouse.root)}`"
        )
    terms = {"ds": ds, "scenario": scenario, "method": recipe.name}
    computed = connection.execute(
        f"SELECT user_id FROM night_users WHERE {SHOWN} AND computed_ds = ds AND status IN ('computed', 'failed')",
        terms,
    ).fetchall()
    return MethodNight(
        recipe,
        str(publication["publish_id"]),
        recorded_parts(warehouse, publication, recipe.name),
        frozenset(user_id for (user_id,) in computed),
        read_tags(connection, terms),
        read_routes(connection, terms),
    )


def read_tags(connection: duckdb.DuckDBPyConnection, terms: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Per user the final list, best first."""
    rows = connection.execute(f"SELECT user_id, tag FROM intent_tags WHERE {SHOWN} ORDER BY user_id, rank", terms).fetchall()
    found: dict[str, list[str]] = {}
    for user_id, tag in rows:
        found.setdefault(user_id, []).append(tag)
    return {user_id: tuple(tags) for user_id, tags in found.items()}


def read_routes(connection: duckdb.DuckDBPyConnection, terms: Mapping[str, str]) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Per user what each persona or route proposed, before anything was merged."""
    rows = connection.execute(
        f"SELECT user_id, persona_index, tag FROM tag_proposals WHERE {SHOWN} ORDER BY user_id, persona_index, proposal_index",
        terms,
    ).fetchall()
    found: dict[str, dict[int, list[str]]] = {}
    for user_id, persona_index, tag in rows:
        found.setdefault(user_id, {}).setdefault(persona_index, []).append(tag)
    return {user_id: tuple(tuple(tags) for tags in by_route.values()) for user_id, by_route in found.items()}


def read_contexts(
    connection: duckdb.DuckDBPyConnection, night: MethodNight, *, ds: str, scenario: str, user_ids: Collection[str]
) -> list[Context]:
    """The contexts that the night's users were computed from, by user."""
    rows = fetch_rows(
        connection,
        f"SELECT * FROM user_contexts WHERE {SHOWN} AND list_contains($users, user_id) ORDER BY user_id",
        {"ds": ds, "scenario": scenario, "method": night.method, "users": list(user_ids)},
    )
    return [read_context(row) for row in rows]


def common_users(nights: Sequence[MethodNight]) -> list[str]:
    """The users that every method has computed, or failed on, by id; UsageError when there are none."""
    common = frozenset.intersection(*(night.user_ids for night in nights))
    if not common:
        told = ", ".join(f"{night.method} {len(night.user_ids)}" for night in nights)
        raise UsageError(f"methods: no user was computed by every method on this ds ({told}); run them in one night, for the same users")
    return sorted(common)


def as_versions(nights: Sequence[MethodNight], **more: Any) -> str:
    """What an evaluation was made from, as JSON: the parts that each night was made from, and what else is given."""
    told = {night.method: {"publish_id": night.publish_id, **night.inputs} for night in nights}
    return json.dumps({"methods": told, **more}, sort_keys=True, ensure_ascii=False)
