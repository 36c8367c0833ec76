"""What may not reach an engine is refused before it, with both numbers, whichever engine it is."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from recgpt_ops.errors import RowError
from recgpt_ops.llm.fake import FakeEngine
from recgpt_ops.llm.requests import EngineIdentity, Request, Sampling, check_request

IDENTITY = EngineIdentity("m", "h", "t", "vllm", max_model_len=100, vocabulary_size=1000)
GOOD = Request("arbiter", "prompt", (), tuple(range(90)), Sampling(max_tokens=10))


@pytest.mark.parametrize(
    ("changes", "reason", "detail"),
    [
        ({"token_ids": tuple(range(91))}, "prompt_too_long", "91 prompt tokens + 10 new tokens are more than the model's 100"),
        ({"sampling": Sampling(max_tokens=11)}, "prompt_too_long", "90 prompt tokens + 11 new tokens"),
        ({"forced_ids": tuple(range(11))}, "prompt_too_long", "90 prompt tokens + 11 new tokens"),
        ({"token_ids": ()}, "prompt_empty", "no tokens"),
        ({"token_ids": (1, 1000)}, "bad_token_id", "prompt ids span 1 to 1000; the vocabulary ends at 999"),
        ({"token_ids": (1, -1)}, "bad_token_id", "prompt ids span -1 to 1"),
        ({"forced_ids": (1000,)}, "bad_token_id", "forced ids span 1000 to 1000"),
        ({"forced_ids": ()}, "bad_request", "asks for 0 new tokens"),
        ({"sampling": Sampling(max_tokens=0)}, "bad_request", "asks for 0 new tokens"),
        ({"choice": ()}, "bad_request", "0 choices"),
        ({"choice": ("a", "")}, "bad_request", "some empty or equal"),
        ({"choice": ("a", "a")}, "bad_request", "some empty or equal"),
        ({"json_schema": ""}, "bad_request", "'' is no JSON schema"),
        ({"json_schema": "false"}, "bad_request", "'false' is no JSON schema"),
        ({"label_ids": (1000,)}, "bad_token_id", "label ids span 1000 to 1000"),
        ({"label_ids": ()}, "bad_request", "label ids (); expected some, each once"),
        ({"label_ids": (3, 3)}, "bad_request", "label ids (3, 3); expected some, each once"),
        ({"label_ids": (3,), "forced_ids": (3,)}, "bad_request", "forced_ids and label_ids are set"),
        ({"choice": ("a",), "json_schema": "{}"}, "bad_request", "choice and json_schema are set"),
    ],
)
def test_case_001_002_026_what_may_not_reach_the_engine_is_that_row_s_error(changes: dict[str, Any], reason: str, detail: str) -> None:
    with pytest.raises(RowError) as refused:
        check_request(replace(GOOD, **changes), IDENTITY)
    assert refused.value.reason == reason
    assert detail in refused.value.detail


@pytest.mark.parametrize(
    "changes", [{}, {"choice": ("a", "b")}, {"json_schema": '{"type":"string"}'}, {"forced_ids": (0, 999)}, {"label_ids": (0, 999)}]
)
def test_a_good_request_passes(changes: dict[str, Any]) -> None:
    check_request(replace(GOOD, **changes), IDENTITY)


@pytest.mark.parametrize("place", [0, 50, 99])
def test_case_002_a_bad_row_first_middle_or_last_costs_that_row_only(place: int) -> None:
    engine = FakeEngine(identity=IDENTITY)
    requests = [replace(GOOD, token_ids=(n, n)) for n in range(100)]
    requests[place] = replace(GOOD, token_ids=(1,) * 91)

    async def run() -> list[Any]:
        return await asyncio.gather(*map(engine.answer, requests), return_exceptions=True)

    outcome = asyncio.run(run())
    assert [n for n, each in enumerate(outcome) if isinstance(each, RowError)] == [place]
    assert len(engine.calls) == 99
