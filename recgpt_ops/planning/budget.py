"""What a night may ask of the model at most, told before it starts and compared with what it asked; nothing of it depends on the machine.

budget = night_budget(settings, users={"v1": 8, "v2": 8})
budget["intents"]      Planned(calls=504, prompt_tokens=...)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from recgpt_ops.agents import budget as agents
from recgpt_ops.explanations import budget as explanations
from recgpt_ops.judges import rules as judges
from recgpt_ops.recipes import load_recipe
from recgpt_ops.settings import Settings

JUDGE_PROMPT_TOKENS = 512  # most that a judge's prompt takes: one row, its user's newest lines, one dimension


class Planned(NamedTuple):
    """The most calls, and the most prompt tokens submitted, those read from the prefix cache included; second tries are not counted."""

    calls: int
    prompt_tokens: int


def night_budget(settings: Settings, users: Mapping[str, int]) -> dict[str, Planned]:
    """The most that each stage takes; `users` says per method how many are computed."""
    weather = settings.signals.weather_connector is not None
    stages: dict[str, Planned] = {}
    for method, count in users.items():
        recipe = load_recipe(method)
        texts = 0 if recipe.explanations == "none" else count * recipe.explained_item_count
        tags = 0 if recipe.explanations == "none" else count * recipe.final_tag_count  # what is not explained is not judged
        verdicts = {
            "tag_verdicts": judges.planned_calls("tag", tags, settings=settings),
            "explanation_verdicts": judges.planned_calls("explanation", texts, settings=settings),
        }
        planned = {
            "intents": Planned(
                agents.planned_calls(recipe, count, weather=weather).total, agents.planned_prompt_tokens(recipe, count, weather=weather)
            ),
            "explanations": Planned(explanations.planned_calls(recipe, count).total, explanations.planned_prompt_tokens(recipe, count)),
            **{stage: Planned(calls, calls * JUDGE_PROMPT_TOKENS) for stage, calls in verdicts.items()},
        }
        for stage, (calls, tokens) in planned.items():
            before = stages.get(stage, Planned(0, 0))
            stages[stage] = Planned(before.calls + calls, before.prompt_tokens + tokens)
    return stages


def total(budget: Mapping[str, Planned]) -> Planned:
    """All stages together."""
    return Planned(sum(stage.calls for stage in budget.values()), sum(stage.prompt_tokens for stage in budget.values()))


def budget_text(budget: Mapping[str, Planned], users: Mapping[str, int]) -> str:
    """The budget in one line, before the night."""
    calls, tokens = total(budget)
    by_stage = ", ".join(f"{stage} {planned.calls:,}" for stage, planned in budget.items())
    by_method = ", ".join(f"{count} users by {method}" for method, count in users.items())
    return f"Budget for {by_method}: at most {calls:,} model calls ({by_stage}) and {tokens:,} prompt tokens; recorded answers cost none."


def spent_text(budget: Mapping[str, Planned], *, calls_made: int, calls_reused: int, prompt_tokens: int) -> str:
    """What was spent of it, after the night."""
    calls, tokens = total(budget)
    return (
        f"Model calls: {calls_made:,} made, {calls_reused:,} from the record, of at most {calls:,} planned. "
        f"Prompt tokens: {prompt_tokens:,} submitted, of at most {tokens:,}."
    )
