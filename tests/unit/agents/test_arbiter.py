"""The arbiter: a pool without duplicates, ranked by likelihood or by named places."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from recgpt_ops.agents.arbiter import arbiter_schema, arbitrate, make_pool, read_picks
from recgpt_ops.agents.crew import Crew
from recgpt_ops.agents.rows import Proposal
from recgpt_ops.errors import RowError
from recgpt_ops.ids import tag_id
from recgpt_ops.llm.fake import FakeEngine
from recgpt_ops.llm.requests import Answer, Request
from recgpt_ops.llm.structured import constraint_faults
from recgpt_ops.recipes import load_recipe

from .conftest import LetterEmbedder, make_context

Make = Callable[..., Crew]
FREE = replace(load_recipe("v2_free"), final_tag_count=3)


def proposals(*named: tuple[int, str]) -> list[Proposal]:
    """Proposals of (persona, tag) in order."""
    return [Proposal(persona, index, tag_id("en-US", tag), tag, "c") for index, (persona, tag) in enumerate(named, start=1)]


class TableEmbedder(LetterEmbedder):
    """Given vectors."""

    def __init__(self, vectors: dict[str, list[float]]) -> None:
        super().__init__()
        self.vectors = vectors

    def embed(self, texts: Any) -> np.ndarray:
        return np.array([self.vectors[text] for text in texts], dtype=np.float32)


class Likelihoods(FakeEngine):
    """Gives each tag (by its text in the forced ids) a log-probability with and without context."""

    def __init__(self, tokenizer: Any, table: dict[str, tuple[float, float]]) -> None:
        super().__init__()
        self.table = {tokenizer.encode_data(tag): pair for tag, pair in table.items()}

    def good_answer(self, request: Request) -> Answer:
        value = self.table[request.forced_ids or ()][request.role == "arbiter_null"]
        return replace(super().good_answer(request), logprobs=(value,) * len(request.forced_ids or ()))


def test_equal_and_near_equal_tags_are_one_and_the_first_stays(embedder: LetterEmbedder) -> None:
    vectors = {"cheese": [1.0, 0.0], "cheeses": [0.96, 0.28], "milk": [0.0, 1.0], "Milk": [0.0, 1.0]}
    pool = make_pool(
        proposals((1, "cheese"), (1, "milk"), (2, "cheeses"), (3, "Milk"), (3, "cheese")),
        embedder=TableEmbedder(vectors), near_duplicate_cosine=0.95,
    )  # fmt: skip
    assert [(tag.pool_index, tag.tag, tag.persona_indexes) for tag in pool] == [(1, "cheese", (1, 2, 3)), (2, "milk", (1, 3))]


def test_tags_just_below_the_threshold_both_stay() -> None:
    # (1, 0) and (0.94, 0.341): cosine 0.94
    pool = make_pool(
        proposals((1, "a"), (1, "b")), embedder=TableEmbedder({"a": [1.0, 0.0], "b": [0.94, 0.34117444]}), near_duplicate_cosine=0.95
    )
    assert [tag.tag for tag in pool] == ["a", "b"]


def test_rank_is_by_likelihood_with_the_context_minus_without(make_crew: Make, tokenizer: Any) -> None:
    # milk is likely for everybody (-1.0 without), so its gain is the smallest: cheese 1.0, tea 0.5, milk 0.2
    engine = Likelihoods(tokenizer, {"milk": (-0.8, -1.0), "cheese": (-2.0, -3.0), "tea": (-2.5, -3.0)})
    tags = asyncio.run(arbitrate(make_context(), proposals((1, "milk"), (1, "cheese"), (2, "tea")), make_crew(engine)))
    assert [(tag.rank, tag.pool_tag.tag, tag.score) for tag in tags] == [(1, "cheese", 1.0), (2, "tea", 0.5), (3, "milk", 0.2)]
    assert all(tag.reason is None for tag in tags)


def test_ties_are_by_tag_id(make_crew: Make, tokenizer: Any) -> None:
    words = ("milk", "cheese", "tea")
    tags = asyncio.run(
        arbitrate(
            make_context(), proposals(*((1, word) for word in words)), make_crew(Likelihoods(tokenizer, dict.fromkeys(words, (-1.0, -2.0))))
        )
    )
    assert [tag.pool_tag.tag for tag in tags] == sorted(words, key=lambda word: tag_id("en-US", word))


def test_calls_without_the_context_carry_no_user_and_are_shared_by_users(make_crew: Make) -> None:
    engine = FakeEngine()
    crew = make_crew(engine)
    for user_id in ("u1", "u2"):
        asyncio.run(arbitrate(make_context(user_id), proposals((1, "milk"), (1, "tea")), crew))
    null_calls = [request for request in engine.calls if request.role == "arbiter_null"]
    assert len(null_calls) == 2
    assert {request.user_id for request in null_calls} == {None}
    assert all("No purchases known." in request.messages[1].text and "bought" not in request.messages[1].text for request in null_calls)
    assert len([request for request in engine.calls if request.role == "arbiter"]) == 4


def test_an_arbiter_that_names_places_gives_reasons_and_no_score(make_crew: Make) -> None:
    engine = FakeEngine(texts=lambda request: json.dumps({"picks": [{"index": n, "reason": "fits the week"} for n in (3, 1, 4)]}))
    pool = proposals((1, "milk"), (1, "dog bed"), (2, "witch hat"), (3, "green tea"))
    tags = asyncio.run(arbitrate(make_context(), pool, make_crew(engine, FREE)))
    assert [(tag.rank, tag.pool_tag.tag, tag.pool_tag.pool_index) for tag in tags] == [
        (1, "witch hat", 3),
        (2, "milk", 1),
        (3, "green tea", 4),
    ]
    assert {tag.score for tag in tags} == {None}
    assert {tag.reason for tag in tags} == {"fits the week"}
    assert "1. milk\n2. dog bed\n3. witch hat\n4. green tea" in engine.calls[0].messages[1].text


def test_a_small_pool_is_ranked_whole_and_an_empty_one_fails_the_row(make_crew: Make) -> None:
    assert len(asyncio.run(arbitrate(make_context(), proposals((1, "milk")), make_crew(FakeEngine())))) == 1
    with pytest.raises(RowError, match="nothing_proposed"):
        asyncio.run(arbitrate(make_context(), [], make_crew(FakeEngine())))


@pytest.mark.parametrize(
    ("picks", "reason"),
    [
        ([{"index": 1, "reason": "a"}], "wrong_count"),
        ([{"index": 1, "reason": "a"}, {"index": 5, "reason": "a"}], "not_in_pool"),
        ([{"index": 1, "reason": "a"}, {"index": 0, "reason": "a"}], "not_in_pool"),
        ([{"index": 1, "reason": "a"}, {"index": 1, "reason": "b"}], "duplicate"),
        ([{"index": "1", "reason": "a"}, {"index": 2, "reason": "b"}], "wrong_shape"),
        ([{"index": True, "reason": "a"}, {"index": 2, "reason": "b"}], "wrong_shape"),
        ([{"index": 1, "reason": ""}, {"index": 2, "reason": "b"}], "text_empty"),
        ([{"index": 1, "reason": "x" * 121}, {"index": 2, "reason": "b"}], "text_too_long"),
        ("1, 2", "wrong_count"),
    ],
)
def test_case_028_places_must_be_there_each_once_and_enough(picks: Any, reason: str) -> None:
    with pytest.raises(RowError) as caught:
        read_picks(Answer(json.dumps({"picks": picks}), "stop", 1, 0, 1, 0.1), pool_size=4, count=2)
    assert caught.value.reason == reason


def test_the_schema_is_the_same_for_every_pool_so_that_it_is_compiled_once() -> None:
    schema = json.loads(arbiter_schema(30))["properties"]["picks"]
    assert (schema["minItems"], schema["maxItems"]) == (1, 30)
    assert constraint_faults("arbiter", arbiter_schema(30)) == []
