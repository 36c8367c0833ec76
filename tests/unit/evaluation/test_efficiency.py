from __future__ import annotations

from datetime import timedelta

import pytest

from recgpt_ops.delta.sql import connect
from recgpt_ops.evaluation.efficiency import busy_seconds, read_calls, sum_costs
from tests.unit.cli.conftest import write
from tests.unit.evaluation.conftest import DS, add_night, call


def read(warehouse, part: str = "intents", method: str = "v1") -> list[str]:
    return [row["call_id"] for row in read_calls(connect(warehouse), part, ds=DS, scenario="default", method=method)]


def test_each_user_pays_for_its_own_calls_and_a_part_of_those_that_are_shared() -> None:
    """u1: 100 + 20 submitted, of these 60 cached; one shared call of 30 among 3 users of the night: 10 each."""
    calls = [call("a", "u1", prompt=100, cached=60), call("b", "u1", prompt=20, cached=None), call("c", None, prompt=30)]
    costs = sum_costs(calls, user_ids=["u1", "u2"], night_user_count=3)
    assert costs.by_user["prompt_tokens_submitted"] == [130.0, 10.0]
    assert costs.by_user["prompt_tokens_cached"] == [60.0, 0.0]
    assert costs.by_user["prompt_tokens_computed"] == [70.0, 10.0]
    assert costs.by_user["calls"] == [pytest.approx(2 + 1 / 3), pytest.approx(1 / 3)]
    assert costs.by_user["call_seconds"] == [pytest.approx(4 + 2 / 3), pytest.approx(2 / 3)]
    assert not costs.is_shared


def test_calls_of_users_who_are_not_compared_count_for_nobody() -> None:
    costs = sum_costs([call("a", "u9", prompt=100)], user_ids=["u1"], night_user_count=2)
    assert costs.by_user["prompt_tokens_computed"] == [0.0]


def test_a_part_in_which_every_answer_is_shared_says_so() -> None:
    costs = sum_costs([call("a", None, prompt=30)], user_ids=["u1", "u2"], night_user_count=2)
    assert costs.is_shared
    assert costs.by_user["prompt_tokens_computed"] == [15.0, 15.0]


def test_busy_seconds_count_overlapping_calls_once() -> None:
    """Seconds 0 to 5, 3 to 6, 4 to 5 and 10 to 11: busy for 6 + 1."""
    noon = call("a", "u1", prompt=1)["called_at"]
    calls = [
        call("a", "u1", prompt=1, seconds=seconds, called_at=noon + timedelta(seconds=end))
        for end, seconds in ((5, 5.0), (6, 3.0), (5, 1.0), (11, 1.0))
    ]
    assert busy_seconds(calls) == 7.0
    assert busy_seconds([]) == 0.0


def test_a_call_that_a_rebuild_read_again_counts_once_under_the_attempt_that_made_it(shop) -> None:
    add_night(shop, "v1", publish_id="p2", attempt=2)
    write(shop, "llm_calls", [call("v1-u1", "u1", prompt=100), call("v1-u1", "u1", prompt=100, attempt=2), call("v1-u2", "u2", prompt=1)])
    assert read(shop) == ["v1-u1", "v1-u2"]


def test_refused_tries_and_scores_that_no_row_names_are_paid_for_too(nights) -> None:
    write(nights, "llm_calls", [call("refused", "u1", prompt=100, status="wrong_shape"), call("null", None, prompt=9, role="arbiter_null")])
    assert read(nights) == ["null", "refused", "v1-u1", "v1-u2", "v1-u3"]


def test_calls_of_an_attempt_that_nothing_visible_rests_on_do_not_count(nights) -> None:
    write(nights, "llm_calls", [call("given up", "u1", prompt=1000, attempt=7)])
    assert read(nights) == ["v1-u1", "v1-u2", "v1-u3"]


def test_other_methods_other_days_and_other_stages_are_other_calls(nights) -> None:
    others = [call("x", "u1", prompt=1, method="v2"), call("y", "u1", prompt=1, ds="2021-10-30"), call("z", "u1", prompt=1, scenario="s")]
    write(nights, "llm_calls", [*others, call("w", "u1", prompt=1, stage="explanations")])
    assert read(nights) == ["v1-u1", "v1-u2", "v1-u3"]


def test_judging_is_counted_by_the_calls_that_levels_name(nights) -> None:
    level = {"dimension": "relevance", "level": "positive", "status": "ok", "score": None, "reason": None, "call_id": "judge"}
    key = {"ds": DS, "publish_id": "p1", "scenario": "default", "method": "v1", "user_id": "u1", "tag_id": "t"}
    write(nights, "tag_verdicts", [{**key, "judge_method": "panel", "status": "judged", "label": "S", "levels": [level]}])
    write(nights, "llm_calls", [call("judge", "u1", prompt=120, stage="tag_verdicts")])
    assert read(nights, "judging") == ["judge"]
    assert read(nights, "explanations") == []
