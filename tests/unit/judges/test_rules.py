"""Who judges, whom, and what a night's input version says of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from recgpt_ops.errors import ConfigError
from recgpt_ops.judges.rules import check_judging, is_in_share, is_self_judged, judge_hash, judge_settings, judging_digest, planned_calls
from recgpt_ops.llm.requests import EngineIdentity
from recgpt_ops.settings import Engine, load_settings

from .conftest import flat_cutoffs, settings

IDENTITY = EngineIdentity("m", "hash", "tokens", "fake 1")


def other_judge(**changes: object) -> dict[str, str]:
    """Variables of a judge engine of its own."""
    engine = load_settings({}).engine
    values = {name: getattr(engine, name) for name in Engine.__dataclass_fields__} | {"model": "a-larger-judge"} | changes
    return {"engine": yaml.safe_dump(values)}


def test_case_052_the_writer_s_model_judges_only_by_a_flag_and_both_are_named() -> None:
    assert is_self_judged(settings())
    check_judging(settings())
    with pytest.raises(ConfigError, match=r"judges' model 'smollm2-135m-instruct' is the writers' model 'smollm2-135m-instruct'"):
        check_judging(settings(allow_self_judging="false"))
    named_again = settings(allow_self_judging="false", **other_judge(model="smollm2-135m-instruct"))
    assert is_self_judged(named_again)
    with pytest.raises(ConfigError, match="it would grade itself"):
        check_judging(named_again)
    other = settings(allow_self_judging="false", **other_judge())
    check_judging(other)
    assert not is_self_judged(other)
    assert judge_settings(other).engine.model == "a-larger-judge"
    assert other.engine.model == "smollm2-135m-instruct"


def test_an_address_is_refused_where_levels_are_read_from_labels_and_all_faults_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as refused:
        check_judging(
            settings(judge_methods="[panel, jury]", allow_self_judging="false", **other_judge(kind="openai", model="smollm2-135m-instruct"))
        )
    faults = refused.value.faults
    assert len(faults) == 2
    assert "judging.judge_methods holds 'jury'; expected panel or one_shot" in faults[0]
    assert "judging.level_from is 'label_logprobs', but the judges' engine.kind is 'openai'" in faults[1]
    check_judging(settings(level_from="generation", **other_judge(kind="openai", base_url="http://llm:8000/v1")))


@pytest.mark.parametrize("environment", ["local", "ci", "prod"])
def test_shipped_settings_can_judge(environment: str) -> None:
    known = load_settings({"RECGPT_ENV": environment})
    check_judging(known)
    assert is_self_judged(known) == (environment != "prod")
    assert known.judging.judge_share_ratio == (0.01 if environment == "prod" else 1.0)
    assert known.judging.level_from == ("generation" if environment == "prod" else "label_logprobs")


def test_the_share_is_drawn_by_hash_and_a_greater_one_only_adds() -> None:
    users = [f"u{n}" for n in range(2000)]
    small, large = ({user for user in users if is_in_share(user, ratio)} for ratio in (0.1, 0.3))
    assert small < large
    assert 150 < len(small) < 250
    assert 500 < len(large) < 700
    assert [sum(is_in_share(user, ratio) for user in users) for ratio in (0.0, 1.0)] == [0, 2000]


@pytest.mark.parametrize(
    ("variables", "is_same"),
    [
        ({}, True),
        ({"judge_share_ratio": "0.5"}, True),  # whom, not how
        ({"level_from": "generation"}, False),
        ({"reviewer": "model"}, False),
    ],
)
def test_a_judge_is_another_when_anything_that_decides_its_grades_changed(variables: dict[str, str], is_same: bool) -> None:
    def hash_of(changed: dict[str, str], identity: EngineIdentity = IDENTITY, low: float = -1.0) -> str:
        return judge_hash("tag", "panel", settings=settings(**changed), identity=identity, cutoffs=flat_cutoffs(low=low))

    assert (hash_of(variables) == hash_of({})) == is_same
    assert hash_of({}, replace(IDENTITY, model_hash="other")) != hash_of({})
    assert hash_of({}, low=-2.0) != hash_of({})


def test_a_night_s_inputs_change_with_the_judges_and_a_judge_that_cannot_judge_stops_the_night_at_once(tmp_path: object) -> None:
    def digest(**variables: str) -> str:
        return judging_digest(replace(settings(**variables), warehouse=str(tmp_path)))

    assert digest() == digest()
    assert len({digest(), digest(judge_share_ratio="0.5"), digest(level_from="generation"), digest(judge_methods="[panel]")}) == 4
    with pytest.raises(ConfigError, match="would grade itself"):
        digest(allow_self_judging="false")


@pytest.mark.parametrize(
    ("kind", "variables", "calls"),
    [
        ("tag", {}, 10 * (4 + 1) + 4 + 1),
        ("explanation", {}, 10 * (7 + 1) + 7 + 1),
        ("tag", {"level_from": "generation"}, 10 * (4 + 1)),
        ("tag", {"level_from": "generation", "reviewer": "model", "judge_methods": "[panel]"}, 10 * (4 + 1)),
        ("tag", {"judge_methods": "[one_shot]"}, 10 + 1),
    ],
)
def test_calls_are_foretold(kind: str, variables: dict[str, str], calls: int) -> None:
    assert planned_calls(kind, 10, settings=settings(**variables)) == calls  # type: ignore[arg-type]  # a kind as a plain word
    assert planned_calls(kind, 0, settings=settings(**variables)) == 0  # type: ignore[arg-type]  # the same
