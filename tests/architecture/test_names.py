"""The table's name runs through contract, job, task and runbook, so that one search shows its whole life."""

from __future__ import annotations

import re

import pytest
import yaml

from recgpt_ops.recipes import load_recipe
from recgpt_ops.settings import load_settings
from recgpt_ops.tables import ROOT, SCHEMAS, all_contracts
from tests.architecture.sources import source_files

VERBS = {"jobs/publish_night.py", "jobs/drop_generations.py"}  # jobs that make no table of their own name
TELLERS = {"jobs/check_freshness.py"}  # jobs that make no table at all


def jobs() -> list[str]:
    return [str(path.relative_to(ROOT)) for path in source_files("jobs") if path.stem != "__init__"]


def test_every_contract_was_found():
    assert len(all_contracts()) == len(list(SCHEMAS.glob("*.yaml"))) >= 19


def test_every_job_makes_the_table_of_its_name_or_is_named_as_an_exception():
    producers = {contract.producer for contract in all_contracts().values()}
    for job in jobs():
        if job in TELLERS:
            continue
        table = job.removesuffix(".py").split("/")[-1]
        assert job in producers, f"{job}: no contract names it as producer"
        assert table in all_contracts() or job in VERBS or job == "jobs/ray/intents.py", job


def test_every_producer_that_is_a_job_exists():
    for name, contract in all_contracts().items():
        if contract.producer.startswith("jobs/"):
            assert contract.producer in jobs(), f"{name}: {contract.producer} does not exist"
        else:
            assert contract.kind == "record", f"{name} is no record table, so exactly one job makes it"


def test_every_reader_of_a_contract_is_a_table_or_told_in_words():
    for name, contract in all_contracts().items():
        for reader in contract.readers:
            assert reader in all_contracts() or " " in reader, f"{name} is read by {reader!r}, which is no table"


@pytest.mark.parametrize("path", sorted(ROOT.glob("recgpt_ops/**/prompts/*.jinja")), ids=lambda path: path.name)
def test_a_prompt_is_versioned_and_has_a_language(path):
    assert re.fullmatch(r"[a-z_]+_v\d+\.(en|zh)\.jinja", path.name)


def test_prompts_exist_in_english_and_chinese():
    names = {path.name.split(".")[0]: set() for path in ROOT.glob("recgpt_ops/agents/prompts/*.jinja")}
    for path in ROOT.glob("recgpt_ops/agents/prompts/*.jinja"):
        names[path.name.split(".")[0]].add(path.name.split(".")[1])
    assert names
    assert all(languages == {"en", "zh"} for languages in names.values()), names


@pytest.mark.parametrize("path", sorted((ROOT / "infra" / "env").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_environment_is_complete_and_its_methods_run_on_its_engine(path):
    settings = load_settings({"RECGPT_ENV": path.stem})
    for method in settings.night.methods:
        assert load_recipe(method, engine=settings.engine).name == method


def test_there_are_three_environments():
    assert sorted(path.stem for path in (ROOT / "infra" / "env").glob("*.yaml")) == ["ci", "local", "prod"]


def test_nothing_is_left_for_later_and_names_say_what_things_are():
    files = [path for path in source_files("recgpt_ops", "jobs", "dags", "tests") if path.name != "test_names.py"]
    unfinished = re.compile(r"\b(TODO|FIXME|XXX|NotImplemented(Error)?)\b")
    vague = re.compile(r"(^|_)(utils?|helpers?|manager|process|handle)\.py$")
    assert [str(path) for path in files if unfinished.search(path.read_text()) or vague.search(path.name)] == []


def test_yaml_files_load():
    files = [*SCHEMAS.glob("*.yaml"), *ROOT.glob("infra/**/*.yaml")]
    assert len(files) > 20
    for path in files:
        assert yaml.safe_load(path.read_text()), path
