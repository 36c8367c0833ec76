"""The schemas of a recipe are known without asking anything, and the engine's grammar takes them all."""

from __future__ import annotations

import json

import pytest

from recgpt_ops.agents.constraints import recipe_schemas
from recgpt_ops.llm.grammars import unenforced
from recgpt_ops.recipes import load_recipe


@pytest.mark.parametrize(("name", "roles"), [("v1", []), ("v2", []), ("v2_free", ["planner", "expert", "arbiter"])])
def test_case_025_only_roles_that_write_freely_have_schemas_and_every_keyword_holds(name: str, roles: list[str]) -> None:
    schemas = recipe_schemas(load_recipe(name))
    assert list(schemas) == [f"{name}.{role}" for role in roles]
    assert [fault for schema in schemas.values() for fault in unenforced(json.loads(schema), "$")] == []
