"""The graph of one user and a shard of users: what one user's fault costs, and what is never lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from recgpt_ops.agents.budget import planned_calls
from recgpt_ops.agents.crew import Crew
from recgpt_ops.agents.graph import ShardIntents, check_every_user_once, compute_user, compute_users
from recgpt_ops.agents.rows import Context
from recgpt_ops.errors import EngineError, NightError, RowError
from recgpt_ops.llm.fake import FakeEngine
from recgpt_ops.llm.requests import Answer, Request
from recgpt_ops.recipes import load_recipe

from .conftest import make_context

Make = Callable[..., Crew]
TEN = [f"u{number}" for number in range(10)]


def run(crew: Crew, users: list[str] = TEN, *, users_in_flight: int = 4) -> ShardIntents:
    return asyncio.run(compute_users([make_context(user) for user in users], crew, users_in_flight=users_in_flight))


def ids(result: ShardIntents) -> list[str]:
    return sorted(intents.context.user_id for intents in result.done)


def test_one_user_gets_three_personas_five_tags_each_and_six_final_tags(make_crew: Make) -> None:
    intents = asyncio.run(compute_user(make_context(), make_crew(FakeEngine())))
    assert [persona.persona_index for persona in intents.personas] == [1, 2, 3]
    assert len({persona.name for persona in intents.personas}) == 3
    assert [(p.persona_index, p.proposal_index) for p in intents.proposals] == [(k, n) for k in (1, 2, 3) for n in range(1, 6)]
    assert [tag.rank for tag in intents.tags] == [1, 2, 3, 4, 5, 6]
    scores = [tag.score or 0.0 for tag in intents.tags]
    assert scores == sorted(scores, reverse=True)
    assert {tag.pool_tag.tag_id for tag in intents.tags} <= {proposal.tag_id for proposal in intents.proposals}


def test_one_failing_user_of_ten_costs_that_user_only(make_crew: Make) -> None:
    engine = FakeEngine(faults=lambda request, nth: "row_error" if request.user_id == "u3" else None)
    result = run(make_crew(engine))
    assert ids(result) == [user for user in TEN if user != "u3"]
    assert [(context.user_id, error.reason) for context, error in result.failed] == [("u3", "engine_refused")]


def test_case_022_a_user_that_fails_twice_is_one_failure_with_both_reasons(make_crew: Make) -> None:
    texts = iter(["banana", "pear"])
    engine = FakeEngine(texts=lambda request: next(texts) if request.user_id == "u3" and request.role == "planner" else None)
    ((context, error),) = run(make_crew(engine)).failed
    assert context.user_id == "u3"
    assert error.detail == (
        "first try: not_a_choice: 'banana' is none of the 4 choices; second try: not_a_choice: 'pear' is none of the 4 choices"
    )


def test_an_invalid_answer_is_asked_for_once_more_with_its_reason_and_then_counts(make_crew: Make) -> None:
    texts = iter(["banana"])
    engine = FakeEngine(texts=lambda request: next(texts, None) if request.role == "planner" else None)
    result = run(make_crew(engine), ["u1"])
    assert ids(result) == ["u1"]
    assert "The last answer was refused: not_a_choice" in engine.calls[1].messages[1].text


def test_case_001_an_over_long_context_is_refused_before_the_engine_with_both_numbers(make_crew: Make) -> None:
    """The same wherever it stands among the others (002)."""
    for place in (0, 5, 9):
        engine = FakeEngine(identity=replace(FakeEngine().identity, max_model_len=700))
        contexts = [make_context(user, text="word " * 900) if number == place else make_context(user) for number, user in enumerate(TEN)]
        result = asyncio.run(compute_users(contexts, make_crew(engine), users_in_flight=4))
        ((context, error),) = result.failed
        assert context.user_id == TEN[place]
        assert error.reason == "prompt_too_long"
        assert "more than the model's 700" in error.detail
        assert not [request for request in engine.calls if request.user_id == TEN[place]]
        assert len(result.done) == 9


def test_a_dead_engine_ends_the_shard(make_crew: Make) -> None:
    with pytest.raises(EngineError):
        run(make_crew(FakeEngine(faults=lambda request, nth: "engine_death" if nth == 40 else None)))


class Watching(FakeEngine):
    """Notes how many calls and which users were in flight at once; answers in the reverse order of asking."""

    def __init__(self) -> None:
        super().__init__()
        self.running: list[str | None] = []
        self.most_calls = self.most_users = 0

    async def answer(self, request: Request) -> Answer:
        self.running.append(request.user_id)
        self.most_calls = max(self.most_calls, len(self.running))
        self.most_users = max(self.most_users, len({user for user in self.running if user}))
        await asyncio.sleep(0.002 / len(self.running))
        answer = await super().answer(request)
        self.running.remove(request.user_id)
        return answer


def test_case_020_calls_and_users_in_flight_stay_below_their_bounds(make_crew: Make) -> None:
    engine, read = Watching(), []

    def contexts():
        for user in TEN:
            read.append(user)
            yield make_context(user)

    crew = make_crew(engine, max_in_flight=5)
    ahead: list[int] = []
    asyncio.run(compute_users(contexts(), crew, users_in_flight=2, on_user=lambda done: ahead.append(len(read) - done)))
    assert engine.most_calls <= 5
    assert engine.most_users <= 2
    assert max(ahead) <= 2  # contexts are read no faster than users finish


def test_case_003_answers_out_of_order_change_no_row(make_crew: Make) -> None:
    def rows(result: ShardIntents) -> dict[str, object]:
        return {user.context.user_id: (user.personas, user.proposals, user.tags) for user in result.done}

    assert rows(run(make_crew(Watching()))) == rows(run(make_crew(FakeEngine()), users_in_flight=1))


@pytest.mark.parametrize("out", [["u1"], ["u1", "u2", "u2"], ["u1", "u3"]])
def test_case_003_a_user_lost_doubled_or_swapped_fails_the_shard(out: list[str]) -> None:
    failed: list[tuple[Context, RowError]] = [(make_context(user), RowError("bad_json", "x")) for user in out]
    with pytest.raises(NightError, match=f"2 users went in and {len(out)} came out"):
        check_every_user_once(["u1", "u2"], ShardIntents(failed=failed))


def test_the_calls_of_a_night_are_those_planned(make_crew: Make) -> None:
    engine = FakeEngine()
    crew = make_crew(engine)
    run(crew, ["u1", "u2"])
    planned = planned_calls(load_recipe("v2"), users=2)
    roles = [request.role for request in engine.calls]
    assert (roles.count("planner"), roles.count("expert")) == (planned.planner, planned.expert) == (6, 30)
    assert 12 <= roles.count("arbiter") <= planned.arbiter == 30
    assert roles.count("arbiter_null") == len({request.forced_ids for request in engine.calls if request.role == "arbiter"})


def test_case_017_after_a_failure_of_the_arbiter_a_rerun_calls_planner_and_experts_no_more(make_crew: Make) -> None:
    broken = FakeEngine(faults=lambda request, nth: "row_error" if request.role == "arbiter" else None)
    crew = make_crew(broken)
    assert len(run(crew, ["u1"]).failed) == 1
    crew.calls.close()
    again = FakeEngine()
    assert ids(run(make_crew(again), ["u1"])) == ["u1"]
    assert {request.role for request in again.calls} == {"arbiter"}


def test_case_014_a_changed_expert_prompt_reuses_the_planner_and_asks_the_rest_again(make_crew: Make) -> None:
    crew = make_crew(FakeEngine())
    run(crew, ["u1"])
    crew.calls.close()
    engine = FakeEngine()
    changed = make_crew(engine)
    template = changed.template("expert_choice", "en-US")
    text = template.text.replace("Which product fits best?", "Which product suits best?")
    changed.templates["expert_choice", "en-US"] = replace(template, text=text, prompt_id="0" * 64)
    run(changed, ["u1"])
    assert {request.role for request in engine.calls} >= {"expert"}
    assert "planner" not in {request.role for request in engine.calls}


def test_a_rerun_makes_no_call_and_the_same_rows(make_crew: Make) -> None:
    crew = make_crew(FakeEngine())
    first = run(crew)
    crew.calls.close()
    engine = FakeEngine()
    second = run(make_crew(engine))
    assert engine.calls == []
    first_users, second_users = ({user.context.user_id: user for user in result.done} for result in (first, second))
    assert first_users == second_users
