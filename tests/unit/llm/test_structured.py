"""What counts as an answer, and what is refused with which reason."""

from __future__ import annotations

import json

import pytest

from recgpt_ops.errors import RowError
from recgpt_ops.llm.requests import Answer
from recgpt_ops.llm.structured import (
    answer_text,
    check_texts,
    compact_schema,
    constraint_faults,
    parse_choice,
    parse_json,
    parse_json_list,
    parse_json_obj,
    parse_logprobs,
    wasted_tokens,
)


def answer(text: str, *, finish_reason: str = "stop", completion_tokens: int = 10, logprobs: tuple[float, ...] | None = None) -> Answer:
    return Answer(text, finish_reason, 100, 0, completion_tokens, 0.1, logprobs)


def tags(text: str, *, finish_reason: str = "stop") -> tuple[str, ...]:
    return parse_json_list(answer(text, finish_reason=finish_reason), what="tags", min_count=2, max_count=3, max_chars=20)


def test_a_good_list_is_read() -> None:
    assert tags('[" pumpkin ","candy"]') == ("pumpkin", "candy")


def test_case_023_a_list_that_was_cut_off_is_never_stored() -> None:
    for text in ('["pumpkin","can', '["pumpkin","candy"]'):  # also where what came happens to be whole
        with pytest.raises(RowError, match="truncated: cut off after 10 tokens, finish reason 'length'"):
            tags(text, finish_reason="length")


def test_case_024_a_run_of_white_space_is_its_own_reason_and_its_tokens_are_counted() -> None:
    spoiled = answer('["pumpkin","candy"' + " " * 3000, finish_reason="length", completion_tokens=1000)
    with pytest.raises(RowError) as refused:
        answer_text(spoiled)
    assert refused.value.reason == "white_space_run"
    assert wasted_tokens(spoiled) == 994  # 3000 of 3018 characters
    assert wasted_tokens(answer('["a","b"]')) == 0


@pytest.mark.parametrize("constraint", ["", "  ", "false", "true", "null", "{}", "[]", "{bad", {}, [], [""], ["a", "a"], ["a", 1], None])
def test_case_026_a_constraint_that_says_nothing_is_refused_with_its_path(constraint: object) -> None:
    faults = constraint_faults("roles.planner.schema", constraint)
    assert len(faults) == 1
    assert faults[0].startswith("roles.planner.schema ")


@pytest.mark.parametrize("constraint", [{"type": "string"}, '{"type":"string"}', ["yes", "no"]])
def test_a_constraint_that_says_something_has_no_fault(constraint: object) -> None:
    assert constraint_faults("roles.planner.schema", constraint) == []


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([f"tag {n}" for n in range(45)], "wrong_count"),
        (["one"], "wrong_count"),
        (["x" * 300, "candy"], "text_too_long"),
        (["Candy", " ｃａｎｄｙ\n"], "duplicate"),
        (["candy", "  "], "text_empty"),
        (["candy", 3], "wrong_shape"),
        (["candy", None], "wrong_shape"),
        (["candy", "a\x00b"], "bad_text"),
        (["candy", "a\ud800b"], "bad_text"),
        (["candy", "a</think>b"], "bad_json"),
    ],
)
def test_case_028_count_length_and_uniqueness_are_our_own_check(values: list[object], reason: str) -> None:
    with pytest.raises(RowError) as refused:
        tags(json.dumps(values))
    assert refused.value.reason == reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('<think>\nLet me see.\n</think>\n\n["pumpkin","candy"]', None),
        ('Let me see.</think>["pumpkin","candy"]', None),  # the template itself opened the block
        ('<THINK>a</think><think>b</think>["pumpkin","candy"]', None),
        ('<think>Let me see. ["pumpkin","candy"]', "thinking_unclosed"),
        ('["pumpkin","candy"]<think>', "thinking_unclosed"),
        ('<think>["pumpkin","candy"]</think>\n', "thinking_only"),
        ("", "answer_empty"),
    ],
)
def test_case_030_an_answer_stands_after_a_closed_thinking_block_or_nowhere(text: str, reason: str | None) -> None:
    if reason is None:
        assert tags(text) == ("pumpkin", "candy")
        return
    with pytest.raises(RowError) as refused:
        tags(text)
    assert refused.value.reason == reason


@pytest.mark.parametrize("text", ['["a","b"', '["a","b"] and more', '{"a":1,"a":2}', "[NaN,1]", "Sure! [1]", "-Infinity"])
def test_what_is_not_one_json_value_is_bad_json(text: str) -> None:
    with pytest.raises(RowError) as refused:
        parse_json(answer(text))
    assert refused.value.reason == "bad_json"


def test_an_object_has_exactly_its_keys() -> None:
    assert parse_json_obj(answer('{"name":"Baking","focus":"bread"}'), what="persona", keys=["name", "focus"])["focus"] == "bread"
    for text in ('{"name":"Baking"}', '{"name":"Baking","focus":"bread","x":1}', "[]"):
        with pytest.raises(RowError, match="wrong_shape"):
            parse_json_obj(answer(text), what="persona", keys=["name", "focus"])


def test_a_choice_is_one_of_those_that_were_offered() -> None:
    assert parse_choice(answer("milk"), ["eggs", "milk"]) == "milk"
    with pytest.raises(RowError, match="not_a_choice"):
        parse_choice(answer("Milk"), ["eggs", "milk"])
    with pytest.raises(RowError, match="not_a_choice"):
        check_texts(["eggs", "tea"], what="tags", min_count=2, max_count=2, max_chars=10, allowed=["eggs", "milk"])


@pytest.mark.parametrize(
    ("logprobs", "reason"),
    [
        ((-1.5, -0.25), None),
        ((-1.5,), "wrong_count"),
        (None, "wrong_count"),
        ((-1.5, float("nan")), "bad_logprob"),
        ((-1.5, 0.5), "bad_logprob"),
    ],
)
def test_a_score_has_one_finite_logprob_per_forced_id(logprobs: tuple[float, ...] | None, reason: str | None) -> None:
    if reason is None:
        assert parse_logprobs(answer("", logprobs=logprobs), (7, 8)) == logprobs
        return
    with pytest.raises(RowError) as refused:
        parse_logprobs(answer("", logprobs=logprobs), (7, 8))
    assert refused.value.reason == reason


def test_schemas_are_compact_and_keep_the_order_of_their_properties() -> None:
    assert compact_schema({"type": "object", "properties": {"z": {}, "a": {}}}) == '{"type":"object","properties":{"z":{},"a":{}}}'
