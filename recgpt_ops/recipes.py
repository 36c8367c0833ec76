"""Recipes: what a `method` does, read from `infra/methods/<method>.yaml`. A new method is a new file, not new code.

    infra/methods/v2.yaml      closed lists and likelihood, for a model too small to invent text
    infra/methods/v2_free.yaml the same stages, written freely by a large model
    infra/methods/v1.yaml      the design before it: isolated routes, a fixed template, a list without an arbiter

A recipe says how many, how long and in which way; `infra/env/*.yaml` says where it runs.
"""

from __future__ import annotations

import difflib
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from recgpt_ops.errors import ConfigError
from recgpt_ops.settings import Engine, build
from recgpt_ops.tables import ROOT

METHODS = ROOT / "infra" / "methods"
ROLES = ("planner", "expert", "arbiter", "style", "writer")
ROUTE_COUNT = 3  # routes that every user has: general, trends, season


@dataclass(frozen=True)
class RoleSampling:
    """How one role's answers are drawn. Always sent whole, so that no model folder's own defaults slip in."""

    max_tokens: int  # of an answer; a `choice` call gets what its longest option needs where that is more
    temperature: float
    repetition_penalty: float
    top_p: float
    top_k: int  # 0: all tokens


@dataclass(frozen=True)
class RecipeSampling:
    """One entry a role."""

    planner: RoleSampling
    expert: RoleSampling  # a route's picks too
    arbiter: RoleSampling
    style: RoleSampling
    writer: RoleSampling


@dataclass(frozen=True)
class Models:
    """Which model answers for each role; `base` is the environment's `engine.model`."""

    planner: Literal["base"]
    expert: Literal["base"]
    arbiter: Literal["base"]
    style: Literal["base"]
    writer: Literal["base"]


@dataclass(frozen=True)
class Recipe:
    """One method file, checked. The paper leaves most counts open; the file says where each comes from."""

    name: str
    description: str
    form: Literal["text"]  # how the context is given to the planner and the arbiter
    vocabulary: Literal["closed", "free"]  # tags come from the catalog's item types, or are written
    planner: Literal["choice", "generate", "routes"]  # picks among the user's item groups, writes personas, or none: fixed routes
    arbiter: Literal["likelihood", "generate", "merge"]  # by likelihood, by naming indexes of the pool, or none: routes merged in turn
    route_prompt: Literal["instruction_first", "context_first"] | None  # what a route's prompt begins with; null without routes
    explanations: Literal["guided", "template", "none"]  # style then text, V1's fixed template, or the recipe ends at candidates
    style: Literal["choice", "generate"] | None  # the guideline is put together from closed lists, or written; guided only
    explained_item_count: int  # items of a user that get an explanation
    models: Models
    persona_count: int
    tags_per_persona: int
    final_tag_count: int
    closed_list_size: int  # options an expert chooses from; closed vocabulary only
    group_count: int  # item groups of a context, from which personas are picked
    types_per_group: int
    context_budget_tokens: int
    near_duplicate_cosine: float  # tags at or above are one tag
    recent_days: int  # types bought in these last days are not proposed
    group_days: int  # days whose events make the groups
    max_tag_chars: int
    language_min_share: float  # of a written answer's words that must be in the user's script
    candidates_per_tag: int  # items looked up for each distinct tag
    candidates_per_user_tag: int  # of these, stored for each user and tag
    exclude_bought: bool  # leave out items the user has bought
    sampling: RecipeSampling

    @property
    def digest(self) -> str:
        """sha256 over every value of the recipe; part of a night's input version."""
        return hashlib.sha256(repr(self).encode()).hexdigest()


def load_recipe(name: str, *, directory: Path = METHODS, engine: Engine | None = None) -> Recipe:
    """The recipe called `name`; every fault of the file is told at once. With `engine`, also what that engine cannot do."""
    path = directory / f"{name}.yaml"
    if not path.is_file():
        known = sorted(p.stem for p in directory.glob("*.yaml"))
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known) or 'none'}"
        raise ConfigError(f"infra/methods/{name}.yaml", [f"no such method; {hint}"])
    values: Any = yaml.safe_load(path.read_text()) or {}
    faults: list[str] = []
    if isinstance(values, dict):
        if values.get("name", name) != name:
            faults.append(f"name is {values['name']!r}; a method is called as its file, {name!r}")
        values = {**values, "name": name}
    recipe: Recipe | None = build(Recipe, values, "", faults)
    if recipe is not None:
        faults += value_faults(recipe) + (engine_faults(recipe, engine) if engine else [])
    if faults or recipe is None:
        named = [fault.replace("infra/env/local.yaml", "infra/methods/v2.yaml") for fault in faults]  # the example to copy from
        raise ConfigError(f"infra/methods/{name}.yaml", named)
    return recipe


def value_faults(recipe: Recipe) -> list[str]:
    """Values that are of the right type but make no sense, or none together."""
    bounds: dict[str, tuple[float, float]] = {
        "persona_count": (1, 12),
        "tags_per_persona": (1, 100),
        "final_tag_count": (1, 1000),
        "closed_list_size": (1, 1000),
        "group_count": (1, 100),
        "types_per_group": (1, 100),
        "context_budget_tokens": (64, 1_000_000),
        "near_duplicate_cosine": (0.5, 1.0),
        "recent_days": (0, 3650),
        "group_days": (1, 3650),
        "max_tag_chars": (1, 120),
        "language_min_share": (0.0, 1.0),
        "candidates_per_tag": (1, 10_000),
        "candidates_per_user_tag": (1, 10_000),
        "explained_item_count": (0, 1000),
    }
    faults = [
        f"{key} is {getattr(recipe, key)!r}; expected {low:g} to {high:g}"
        for key, (low, high) in bounds.items()
        if not low <= getattr(recipe, key) <= high
    ]
    if recipe.candidates_per_user_tag > recipe.candidates_per_tag:
        faults.append(f"candidates_per_user_tag is {recipe.candidates_per_user_tag}; expected at most candidates_per_tag")
    if recipe.final_tag_count > recipe.persona_count * recipe.tags_per_persona:
        faults.append(f"final_tag_count is {recipe.final_tag_count}; expected at most persona_count x tags_per_persona, the whole pool")
    if recipe.vocabulary == "closed" and recipe.tags_per_persona > recipe.closed_list_size:
        faults.append(f"tags_per_persona is {recipe.tags_per_persona}; expected at most closed_list_size, or a list runs empty")
    if recipe.planner == "choice" and recipe.persona_count > recipe.group_count:
        faults.append(f"persona_count is {recipe.persona_count}; expected at most group_count, or the choice runs empty")
    if not recipe.description.strip():
        faults.append("description is empty; say in a sentence what the method is for")
    faults += route_faults(recipe) + explanation_faults(recipe)
    for role in ROLES:
        faults += sampling_faults(role, getattr(recipe.sampling, role))
    return faults


def route_faults(recipe: Recipe) -> list[str]:
    """Routes come with their own prompt, choose from lists and are merged; nothing else is."""
    has_routes = recipe.planner == "routes"
    faults = []
    if has_routes != (recipe.arbiter == "merge"):
        faults.append(f"planner is {recipe.planner!r} and arbiter {recipe.arbiter!r}; routes are merged, and nothing but routes is")
    if has_routes != (recipe.route_prompt is not None):
        expected = "instruction_first or context_first" if has_routes else "null, for only routes have one"
        faults.append(f"route_prompt is {recipe.route_prompt!r}; expected {expected}")
    if has_routes and recipe.vocabulary != "closed":
        faults.append(f"vocabulary is {recipe.vocabulary!r}; expected closed, because routes choose from lists")
    if has_routes and recipe.persona_count > ROUTE_COUNT:
        faults.append(f"persona_count is {recipe.persona_count}; there are {ROUTE_COUNT} routes, the weather not counted")
    return faults


def explanation_faults(recipe: Recipe) -> list[str]:
    """A style only where one guides the text, and items to explain only where they are explained."""
    faults = []
    if (recipe.explanations == "guided") != (recipe.style is not None):
        expected = "choice or generate" if recipe.explanations == "guided" else f"null, for explanations are {recipe.explanations!r}"
        faults.append(f"style is {recipe.style!r}; expected {expected}")
    if (recipe.explanations == "none") != (recipe.explained_item_count == 0):
        expected = "0, for explanations are 'none'" if recipe.explanations == "none" else "at least 1, or explanations: none"
        faults.append(f"explained_item_count is {recipe.explained_item_count}; expected {expected}")
    return faults


def sampling_faults(role: str, sampling: RoleSampling) -> list[str]:
    """What is wrong with one role's sampling."""
    faults = []
    for key, fine, expected in (
        ("max_tokens", sampling.max_tokens >= 1, "at least 1"),
        ("temperature", 0.0 <= sampling.temperature <= 2.0, "0 to 2"),
        ("repetition_penalty", 0.5 <= sampling.repetition_penalty <= 2.0, "0.5 to 2"),
        ("top_p", 0.0 < sampling.top_p <= 1.0, "more than 0, at most 1"),
        ("top_k", sampling.top_k >= 0, "0 (all tokens) or more"),
    ):
        if not fine:
            faults.append(f"sampling.{role}.{key} is {getattr(sampling, key)!r}; expected {expected}")
    return faults


def engine_faults(recipe: Recipe, engine: Engine) -> list[str]:
    """What this recipe asks of an engine that it cannot give."""
    faults = []
    if recipe.arbiter == "likelihood" and engine.kind == "openai":
        faults.append(
            "arbiter is 'likelihood', but engine.kind is 'openai': an address gives no likelihood of a given text; "
            "set arbiter: generate, or engine.kind: vllm"
        )
    longest = max(getattr(recipe.sampling, role).max_tokens for role in ROLES)
    if recipe.context_budget_tokens + longest > engine.max_model_len:
        faults.append(
            f"context_budget_tokens {recipe.context_budget_tokens} + max_tokens {longest} is over engine.max_model_len "
            f"{engine.max_model_len}; lower one or raise the other"
        )
    return faults
