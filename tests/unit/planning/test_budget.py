"""The demo's budget, worked out by hand: 8 households, 6 tags and 2 explained items each, both methods, both judges."""

from __future__ import annotations

from recgpt_ops.planning.budget import budget_text, night_budget, spent_text, total
from recgpt_ops.settings import load_settings

SETTINGS = load_settings({})
DEMO = {"v1": 8, "v2": 8}
# v1: 3 routes x 5 picks a user. v2: 3 personas, 15 tags, 15 likelihoods with the context and as many without.
INTENTS = 8 * 3 * 5 + 8 * (3 + 15 + 15 + 15)
EXPLANATIONS = 16 + 16 * (2 + 1)  # v1: a text an item. v2: two picks of a style, then the text
TAG_VERDICTS = 2 * (48 * (4 + 1) + 5)  # 6 tags a user: 4 dimensions and one shot; a content-free twin of each
EXPLANATION_VERDICTS = 2 * (16 * (7 + 1) + 8)


def test_the_demos_calls_are_known_before_it_starts():
    assert SETTINGS.night.methods == ["v1", "v2"]
    calls = {stage: planned.calls for stage, planned in night_budget(SETTINGS, DEMO).items()}
    assert calls == {
        "intents": INTENTS, "explanations": EXPLANATIONS, "tag_verdicts": TAG_VERDICTS, "explanation_verdicts": EXPLANATION_VERDICTS,
    }  # fmt: skip
    assert total(night_budget(SETTINGS, DEMO)).calls == 504 + 64 + 490 + 272 == 1330


def test_the_demos_prompt_tokens_are_bounded():
    with_context = 2048 + 512
    intents = 120 * with_context + 8 * ((3 + 15) * with_context + 15 * 1024 + 15 * 512)
    assert total(night_budget(SETTINGS, DEMO)).prompt_tokens == intents + (64 + 490 + 272) * 512


def test_a_method_that_ends_at_its_candidates_is_neither_explained_nor_judged():
    calls = {stage: planned.calls for stage, planned in night_budget(SETTINGS, {"v1_hr30": 1}).items()}
    assert calls.pop("intents") > 0
    assert set(calls.values()) == {0}


def test_nobody_to_compute_costs_nothing():
    assert total(night_budget(SETTINGS, {"v1": 0, "v2": 0})) == (0, 0)


def test_the_budget_is_told_before_and_what_was_spent_of_it_after():
    budget = night_budget(SETTINGS, DEMO)
    assert budget_text(budget, DEMO).startswith(
        "Budget for 8 users by v1, 8 users by v2: at most 1,330 model calls (intents 504, explanations 64, tag_verdicts 490, "
    )
    told = spent_text(budget, calls_made=600, calls_reused=5, prompt_tokens=700_000)
    assert told.startswith("Model calls: 600 made, 5 from the record, of at most 1,330 planned. Prompt tokens: 700,000 submitted, of ")
