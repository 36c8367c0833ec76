"""Settings: whatever is wrong with a file or a variable is told by its name, all at once, and never as a stack trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from recgpt_ops.errors import ConfigError
from recgpt_ops.settings import load_settings
from recgpt_ops.tables import ROOT


def faults_of(**environment: str) -> list[str]:
    with pytest.raises(ConfigError) as told:
        load_settings(environment)
    return told.value.faults


@pytest.mark.parametrize("name", ["local", "ci", "prod"])
def test_every_environment_of_the_project_is_in_range(name: str) -> None:
    assert load_settings({"RECGPT_ENV": name}).night.methods


@pytest.mark.parametrize(
    ("variable", "value", "fault"),
    [
        ("ENGINE__MAX_INFLIGHT", "1", "unknown setting engine.max_inflight; did you mean engine.max_in_flight?"),
        ("ENGINE__MAX_IN_FLIGHT", "many", "engine.max_in_flight is 'many'; expected int"),
        ("ENGINE__MAX_IN_FLIGHT", "-1", "engine.max_in_flight is -1; expected 1 or more"),
        ("ENGINE__MAX_IN_FLIGHT", "[", "RECGPT_ENGINE__MAX_IN_FLIGHT is '[', which is no YAML; put it in quotes"),
        ("SPARK__SHUFFLE_PARTITIONS", "0", "spark.shuffle_partitions is 0; expected 1 or more"),
        ("QUARANTINE__IMPORT_MAX_RATIO", "7", "quarantine.import_max_ratio is 7; expected 0 to 1"),
        ("QUARANTINE__IMPORT_MAX_RATIO", ".nan", "quarantine.import_max_ratio is nan; expected 0 to 1"),
        (
            "QUARANTINE__STAGE_DEGRADED_RATIO",
            "0.5",
            "quarantine.stage_degraded_ratio is above stage_max_ratio; a stage is degraded before it fails, so set it lower",
        ),
        ("ENGINE__PRICE_PER_MILLION_PROMPT_TOKENS", "-1.0", "engine.price_per_million_prompt_tokens is -1.0; expected 0 or more"),
        ("RAY__PORT", "99999", "ray.port is 99999; expected 1 to 65535"),
        ("ENGINE__CALL_TIMEOUT_SECONDS", "-0.5", "engine.call_timeout_seconds is -0.5; expected 0 or more"),
        ("NIGHT__METHODS", "[]", "night.methods is empty; name at least one"),
        ("NIGHT__METHODS", "[v2, 2]", "night.methods holds 2; expected text, put it in quotes"),
        ("RAY__RUNTIME_ENV", "{OMP_NUM_THREADS: 1}", "ray.runtime_env.OMP_NUM_THREADS is 1; expected text, put it in quotes"),
        ("ENGINE", "5", "engine: expected a group of settings, got 5"),
    ],
)
def test_a_variable_that_cannot_be_is_told_by_its_name(variable: str, value: str, fault: str) -> None:
    assert faults_of(**{f"RECGPT_{variable}": value}) == [fault]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"warehouse:\n\tx: 1", "is no YAML: while scanning"),
        (b"- a", "expected groups of settings as in infra/env/local.yaml, got list"),
        (b"text", "expected groups of settings as in infra/env/local.yaml, got str"),
        (b"warehouse: \xff", "is no YAML: 'utf-8' codec can't decode"),
        (b"warehouse: \x00", "is no YAML: unacceptable character"),
        ("warehouse: w".encode("utf-16"), "is no YAML: 'utf-8' codec can't decode"),
    ],
)
def test_a_broken_settings_file_is_told_in_one_line(tmp_path: Path, content: bytes, fault: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(content)
    (told,) = faults_of(RECGPT_SETTINGS=str(path))
    assert told.startswith(fault)
    assert "\n" not in told


def test_a_settings_file_outside_of_the_project_counts(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text((ROOT / "infra" / "env" / "local.yaml").read_text().replace("max_users: 8", "max_users: 3"))
    assert load_settings({"RECGPT_SETTINGS": str(path)}).audience.max_users == 3


def test_the_judges_engine_is_a_whole_group_or_null() -> None:
    assert load_settings({}).judging.engine is None
    prod = load_settings({"RECGPT_ENV": "prod", "RECGPT_JUDGING__ENGINE__MAX_IN_FLIGHT": "7"}).judging
    assert prod.engine is not None
    assert (prod.engine.kind, prod.engine.max_in_flight) == ("vllm", 7)
    told = faults_of(RECGPT_JUDGING__ENGINE__MODEL="judge")  # a null group becomes one by a variable, and then is not whole
    assert "judging.engine.kind is missing; copy it from infra/env/local.yaml" in told
    assert faults_of(RECGPT_JUDGING__ENGINE="5") == ["judging.engine: expected a group of settings, got 5"]


def test_the_judged_share_is_a_share() -> None:
    assert faults_of(RECGPT_JUDGING__JUDGE_SHARE_RATIO="1.5") == ["judging.judge_share_ratio is 1.5; expected 0 to 1"]
