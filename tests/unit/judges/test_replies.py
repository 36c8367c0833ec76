"""A reply is a level or a reason why it is none; a number is never made of it."""

from __future__ import annotations

import json

import pytest

from recgpt_ops.errors import RowError
from recgpt_ops.judges.replies import read_grade, read_level
from recgpt_ops.llm.requests import Answer

ODD = [
    ("8/10", "a_number"),
    ("Score: 11", "a_number"),
    ("0.93", "a_number"),
    ("85%", "a_number"),
    ("评分：9分", "a_number"),
    ("NaN", "not_a_number"),
    ("null", "not_a_number"),
    ("", "empty"),
    (" \n", "empty"),
    ("I'm sorry, I cannot judge this product.", "refusal"),
    ("抱歉，我无法评审。", "refusal"),
]


def answer(text: str, finish_reason: str = "stop") -> Answer:
    return Answer(text, finish_reason, 10, 0, 5, 0.1)


def status(read: object, text: str) -> str:
    with pytest.raises(RowError) as refused:
        read(answer(text))  # type: ignore[operator]  # one of the two readers
    return refused.value.reason


@pytest.mark.parametrize(("text", "reason"), [*ODD, ("S or A", "not_json"), ("negative or positive", "several_levels")])
def test_case_047_an_odd_reply_to_a_dimension_has_its_own_status_and_no_level(text: str, reason: str) -> None:
    assert status(read_level, text) == reason


@pytest.mark.parametrize(
    ("text", "reason"), [*ODD, ("S or A", "several_levels"), ("s", "out_of_set"), ("SS", "out_of_set"), ("C", "out_of_set")]
)
def test_case_047_an_odd_reply_to_the_one_shot_judge_has_its_own_status_and_no_grade(text: str, reason: str) -> None:
    assert status(read_grade, text) == reason


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ({"level": "excellent", "reason": "good"}, "out_of_set"),
        ({"level": "Positive", "reason": "good"}, "out_of_set"),
        ({"level": "8/10", "reason": "good"}, "a_number"),
        ({"level": 11, "reason": "good"}, "a_number"),
        ({"level": "", "reason": "good"}, "empty"),
        ({"level": ["positive"], "reason": "good"}, "out_of_set"),
        ({"level": "positive"}, "wrong_shape"),
        ({"level": "positive", "reason": "good", "score": 9}, "wrong_shape"),
        ({"level": "positive", "reason": ""}, "text_empty"),
        ({"level": "positive", "reason": "one two three four five six seven eight nine ten eleven twelve thirteen"}, "too_many_words"),
        ({"level": "positive", "reason": "适合" * 13}, "too_many_words"),
        ([], "wrong_shape"),
        (8, "a_number"),
    ],
)
def test_case_047_json_that_names_no_level_of_the_set_is_none(reply: object, reason: str) -> None:
    assert status(read_level, json.dumps(reply, ensure_ascii=False)) == reason


def test_a_good_reply_is_read_as_it_stands() -> None:
    assert read_level(answer('{"level":"neutral","reason":"fits the season"}')) == ("neutral", "fits the season")
    twelve = "one two three four five six seven eight nine ten eleven twelve"
    assert read_level(answer(json.dumps({"level": "positive", "reason": twelve}))) == ("positive", twelve)
    assert [read_grade(answer(text)) for text in ("S", "A", "B", " S\n")] == ["S", "A", "B", "S"]


def test_an_answer_that_was_cut_or_only_thought_keeps_its_own_reason() -> None:
    with pytest.raises(RowError, match="truncated"):
        read_level(answer('{"level":"posi', "length"))
    with pytest.raises(RowError, match="thinking_only"):
        read_grade(answer("<think>S</think>"))
