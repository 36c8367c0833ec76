"""The JSON schemas that a recipe will ask for, so that all of them can be compiled before anything is loaded (025)."""

from __future__ import annotations

from recgpt_ops.agents.arbiter import arbiter_schema
from recgpt_ops.agents.experts import expert_schema
from recgpt_ops.agents.planner import planner_schema
from recgpt_ops.recipes import Recipe


def recipe_schemas(recipe: Recipe) -> dict[str, str]:
    """Where in the recipe -> schema, of the roles that write freely; empty for closed lists and likelihood, which need none."""
    schemas = {}
    if recipe.planner == "generate":
        schemas["planner"] = planner_schema(recipe.persona_count)
    if recipe.vocabulary == "free":
        schemas["expert"] = expert_schema(recipe.tags_per_persona, recipe.max_tag_chars)
    if recipe.arbiter == "generate":
        schemas["arbiter"] = arbiter_schema(recipe.final_tag_count)
    return {f"{recipe.name}.{role}": schema for role, schema in schemas.items()}
