"""Recipes: what a method file may say, and that all its faults are told at once."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from recgpt_ops.errors import ConfigError
from recgpt_ops.recipes import METHODS, Recipe, load_recipe
from recgpt_ops.settings import load_settings

ENGINE = load_settings({}).engine


def write(directory: Path, changes: dict[str, Any]) -> Path:
    values = yaml.safe_load((METHODS / "v2.yaml").read_text())
    values.update(changes)
    (directory / "mine.yaml").write_text(yaml.safe_dump(values))
    return directory


def faults_of(directory: Path, **changes: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_recipe("mine", directory=write(directory, changes), engine=ENGINE)
    return caught.value.faults


def test_every_method_file_of_the_project_loads() -> None:
    names = sorted(path.stem for path in METHODS.glob("*.yaml"))
    assert names == ["v1", "v1_hr30", "v1_shared", "v2", "v2_free", "v2_hr30"]
    assert [load_recipe(name).name for name in names] == names


def test_the_local_recipe_is_closed_and_the_production_one_free() -> None:
    local, free = load_recipe("v2", engine=ENGINE), load_recipe("v2_free")
    assert (local.vocabulary, local.planner, local.arbiter) == ("closed", "choice", "likelihood")
    assert (local.persona_count, local.tags_per_persona, local.final_tag_count, local.closed_list_size) == (3, 5, 6, 22)
    assert (free.vocabulary, free.planner, free.arbiter) == ("free", "generate", "generate")
    assert (free.tags_per_persona, free.final_tag_count) == (15, 30)


@pytest.mark.parametrize("name", ["v1", "v1_shared", "v1_hr30"])
def test_the_baseline_differs_from_v2_in_its_design_only(name: str) -> None:
    """Same model, same context, same counts, same sampling: what is left are the routes."""
    baseline, ours = load_recipe(name, engine=ENGINE), load_recipe("v2_hr30" if name == "v1_hr30" else "v2", engine=ENGINE)
    changed = {field.name for field in fields(Recipe) if getattr(baseline, field.name) != getattr(ours, field.name)}
    assert changed - {"explanations", "style"} == {"name", "description", "planner", "arbiter", "route_prompt"}
    assert (baseline.planner, baseline.arbiter) == ("routes", "merge")
    assert baseline.route_prompt == ("context_first" if name == "v1_shared" else "instruction_first")


def test_v1_and_v1_shared_differ_in_the_order_of_their_prompt_only() -> None:
    own, shared = load_recipe("v1"), load_recipe("v1_shared")
    assert replace(shared, name="v1", description=own.description, route_prompt="instruction_first") == own


@pytest.mark.parametrize(("long", "short"), [("v1_hr30", "v1"), ("v2_hr30", "v2")])
def test_a_recipe_for_hit_rates_is_its_method_with_thirty_tags_and_no_explanations(long: str, short: str) -> None:
    recipe, of = load_recipe(long, engine=ENGINE), load_recipe(short)
    assert (recipe.persona_count * recipe.tags_per_persona, recipe.final_tag_count) == (30, 30)
    assert (recipe.explanations, recipe.style, recipe.explained_item_count) == ("none", None, 0)
    same = {"tags_per_persona": of.tags_per_persona, "final_tag_count": of.final_tag_count, "explanations": of.explanations}
    same |= {"style": of.style, "explained_item_count": of.explained_item_count, "name": of.name, "description": of.description}
    assert replace(recipe, **same) == of


@pytest.mark.parametrize(
    ("changes", "faults"),
    [
        (
            {"planner": "routes"},
            [
                "planner is 'routes' and arbiter 'likelihood'; routes are merged, and nothing but routes is",
                "route_prompt is None; expected instruction_first or context_first",
            ],
        ),
        ({"arbiter": "merge"}, ["planner is 'choice' and arbiter 'merge'; routes are merged, and nothing but routes is"]),
        ({"route_prompt": "context_first"}, ["route_prompt is 'context_first'; expected null, for only routes have one"]),
        (
            {"planner": "routes", "arbiter": "merge", "route_prompt": "context_first", "vocabulary": "free", "persona_count": 4},
            [
                "vocabulary is 'free'; expected closed, because routes choose from lists",
                "persona_count is 4; there are 3 routes, the weather not counted",
            ],
        ),
        ({"style": None}, ["style is None; expected choice or generate"]),
        ({"explanations": "template"}, ["style is 'choice'; expected null, for explanations are 'template'"]),
        (
            {"explanations": "none", "style": None},
            ["explained_item_count is 2; expected 0, for explanations are 'none'"],
        ),
        ({"explained_item_count": 0}, ["explained_item_count is 0; expected at least 1, or explanations: none"]),
    ],
)
def test_values_that_make_no_sense_together_are_refused(tmp_path: Path, changes: dict[str, Any], faults: list[str]) -> None:
    assert faults_of(tmp_path, **changes) == faults


def test_an_unknown_method_is_told_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match=r"did you mean v2_free\?"):
        load_recipe("v2_fre")


def test_an_unknown_key_is_told_with_the_nearest_name_and_a_missing_one_with_the_example(tmp_path: Path) -> None:
    values = yaml.safe_load((METHODS / "v2.yaml").read_text())
    values["persona_counts"] = values.pop("persona_count")
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(values))
    with pytest.raises(ConfigError) as caught:
        load_recipe("mine", directory=tmp_path)
    assert caught.value.faults == [
        "unknown setting persona_counts; did you mean persona_count?",
        "persona_count is missing; copy it from infra/methods/v2.yaml",
    ]


def test_all_faults_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    bad = {"max_tokens": 0, "temperature": 3.0, "repetition_penalty": 1.0, "top_p": 0.0, "top_k": -1}
    sampling = {"planner": bad} | {
        role: {"max_tokens": 16, "temperature": 0.0, "repetition_penalty": 1.0, "top_p": 1.0, "top_k": 0}
        for role in ("expert", "arbiter", "style", "writer")
    }
    faults = faults_of(tmp_path, closed_list_size=4, final_tag_count=99, persona_count=13, description=" ", sampling=sampling)
    told = "\n".join(faults)
    for expected in (
        "persona_count is 13; expected 1 to 12",
        "final_tag_count is 99; expected at most persona_count x tags_per_persona",
        "tags_per_persona is 5; expected at most closed_list_size",
        "persona_count is 13; expected at most group_count",
        "description is empty",
        "sampling.planner.max_tokens is 0",
        "sampling.planner.temperature is 3.0",
        "sampling.planner.top_p is 0.0",
        "sampling.planner.top_k is -1",
    ):
        assert expected in told
    assert len(faults) == 9


def test_likelihood_is_refused_for_an_engine_behind_an_address() -> None:
    with pytest.raises(ConfigError, match="an address gives no likelihood of a given text; set arbiter: generate"):
        load_recipe("v2", engine=replace(ENGINE, kind="openai"))
    assert load_recipe("v2_free", engine=replace(ENGINE, kind="openai", max_model_len=32_768)).arbiter == "generate"


def test_a_context_that_cannot_fit_the_engine_is_refused(tmp_path: Path) -> None:
    assert faults_of(tmp_path, context_budget_tokens=4090) == [
        "context_budget_tokens 4090 + max_tokens 32 is over engine.max_model_len 4096; lower one or raise the other"
    ]


def test_case_026_an_empty_constraint_is_refused_with_the_path_of_the_setting(tmp_path: Path) -> None:
    faults = faults_of(tmp_path, vocabulary="", planner=False, arbiter=None)
    assert [fault.split(" is ")[0] for fault in faults] == ["vocabulary", "planner", "arbiter"]


def test_the_digest_changes_with_every_value_of_the_recipe() -> None:
    recipe = load_recipe("v2")
    assert recipe.digest == load_recipe("v2").digest
    assert recipe.digest != replace(recipe, persona_count=2).digest
