"""The fake engine gives valid answers, the same ones every time, and exactly the faults that were asked for."""

from __future__ import annotations

import asyncio
import json
import re

import jsonschema
import pytest

from recgpt_ops.errors import EngineError, RowError
from recgpt_ops.llm.fake import FakeEngine
from recgpt_ops.llm.requests import Answer, Request, Sampling

LIST = {"type": "array", "items": {"type": "string", "maxLength": 12}, "minItems": 5, "maxItems": 5}
OBJECT = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[a-zA-Z]{2,12}( [a-zA-Z]{2,12}){0,3}$"},
        "line_ids": {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 40}, "minItems": 2, "maxItems": 4},
        "kind": {"enum": ["a", "b"]},
        "is_new": {"type": "boolean"},
    },
    "required": ["name", "line_ids", "kind", "is_new"],
    "additionalProperties": False,
}


def ask(engine: FakeEngine, *ids: int, **constraint: object) -> Answer:
    request = Request("x", "p", (), ids, Sampling(64), **constraint)  # type: ignore[arg-type]  # one constraint by name
    return asyncio.run(engine.answer(request))


@pytest.mark.parametrize("schema", [LIST, OBJECT, {"type": "array", "items": OBJECT, "minItems": 3, "maxItems": 3}])
@pytest.mark.parametrize("seed", range(5))
def test_json_answers_fit_their_schema_compactly(schema: dict[str, object], seed: int) -> None:
    text = ask(FakeEngine(), seed, json_schema=json.dumps(schema)).text
    jsonschema.validate(json.loads(text), schema)
    assert not re.search(r"[:,]\s", re.sub(r'"[^"]*"', '""', text))


def test_answers_depend_on_prompt_and_constraint_alone() -> None:
    choices = tuple(f"choice {n}" for n in range(20))
    first = [ask(FakeEngine(), n, choice=choices).text for n in range(20)]
    assert first == [ask(FakeEngine(), n, choice=choices).text for n in range(20)]
    assert set(first) <= set(choices)
    assert len(set(first)) > 5


def test_forced_ids_get_one_logprob_each() -> None:
    answer = ask(FakeEngine(), 1, forced_ids=(5, 6, 7))
    assert answer.logprobs is not None
    assert len(answer.logprobs) == 3
    assert all(-9 < value < 0 for value in answer.logprobs)


def test_a_dead_engine_stays_dead_and_a_refused_row_does_not_kill_it() -> None:
    engine = FakeEngine(faults=lambda request, nth: {1: "row_error", 2: "engine_death"}.get(nth))  # type: ignore[arg-type,return-value]  # a plain dict of faults
    ask(engine, 1)
    with pytest.raises(RowError):
        ask(engine, 2)
    for n in (3, 4):
        with pytest.raises(EngineError):
            ask(engine, n)
    assert len(engine.calls) == 4


def test_labels_get_a_log_probability_each_in_one_token() -> None:
    answer = ask(FakeEngine(), 1, 2, label_ids=(7, 8, 9))
    assert answer.logprobs is not None
    assert len(set(answer.logprobs)) == 3
    assert all(-9 < value < 0 for value in answer.logprobs)
    assert (answer.text, answer.completion_tokens) == ("", 1)
    assert ask(FakeEngine(), 1, 2, label_ids=(9, 8, 7)).logprobs == answer.logprobs[::-1]
