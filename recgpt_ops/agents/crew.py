"""What all users of a shard share, and how one question is put to the model.

Every prompt is [system][context][instruction]: what two calls have in common comes first, so that the engine computes it once.
What an earlier answer changes (already chosen, why it was refused) comes last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from recgpt_ops.agents.vocabulary import Vocabulary
from recgpt_ops.errors import RowError
from recgpt_ops.ledger.recorder import CallRecorder
from recgpt_ops.llm.encoder import TextEncoder
from recgpt_ops.llm.requests import Answer, Request, Sampling
from recgpt_ops.llm.structured import parse_choice
from recgpt_ops.llm.tokenizer import PromptTokenizer
from recgpt_ops.prompts import Message, Template, load_template, render
from recgpt_ops.recipes import Recipe, RoleSampling

PROMPTS = Path(__file__).parent / "prompts"
# Every variable each template is rendered with; an unknown placeholder is found when the template is loaded.
VARIABLES: dict[str, tuple[str, ...]] = {
    "planner_choice": ("context", "areas", "chosen", "refused"),
    "planner_generate": ("context", "persona_count", "refused"),
    "expert_choice": ("name", "user_summary", "evidence", "context_cues", "shown", "chosen", "refused"),
    "expert_generate": ("name", "focus", "user_summary", "evidence", "context_cues", "avoid", "tag_count", "max_chars", "refused"),
    "arbiter_likelihood": ("context",),
    "arbiter_generate": ("context", "pool", "pick_count", "refused"),
}
T = TypeVar("T")


@dataclass
class Crew:
    """One per shard and recipe. `vocabulary` is None where the recipe writes freely; `templates` fills as locales come up."""

    recipe: Recipe
    tokenizer: PromptTokenizer
    embedder: TextEncoder
    calls: CallRecorder
    vocabulary: Vocabulary | None = None
    templates: dict[tuple[str, str], Template] = field(default_factory=dict)

    def template(self, name: str, locale: str) -> Template:
        """The template for a locale, read once."""
        key = (name, locale)
        if key not in self.templates:
            self.templates[key] = load_template(PROMPTS, name, locale, variables=VARIABLES[name])
        return self.templates[key]

    def request(self, role: str, name: str, locale: str, /, *, user_id: str | None, sampling: Sampling, **variables: object) -> Request:
        """A question without a constraint on its answer; callers set one by `replace`."""
        template = self.template(name, locale)
        messages: tuple[Message, ...] = render(template, **variables)
        return Request(role, template.prompt_id, messages, self.tokenizer.encode(messages), sampling, user_id=user_id)

    async def ask(self, make: Callable[[str], Request], parse: Callable[[Answer], T]) -> tuple[T, str]:
        """The parsed answer and its call id. An answer that `parse` refuses is asked for once more, with the reason.

        `make("")` is the first request, `make(reason)` the second, which after a truncated answer may write twice as much.
        The error of a second refusal tells both reasons.
        """
        reasons: list[str] = []

        def again(reason: str) -> Request:
            reasons.append(reason)
            request = make(reason)
            if reason.startswith("truncated"):
                request = replace(request, sampling=replace(request.sampling, max_tokens=2 * request.sampling.max_tokens))
            return request

        try:
            return await self.calls.call(make(""), parse=parse, retry=again)
        except RowError as error:
            if reasons:
                raise RowError(error.reason, f"first try: {reasons[0]}; second try: {error}") from error
            raise

    async def choose(
        self, role: str, name: str, locale: str, /, *, user_id: str, options: tuple[str, ...], sampling: RoleSampling, **variables: Any
    ) -> tuple[str, str]:
        """One of `options` and the call that chose it."""

        def make(refused: str) -> Request:
            request = self.request(
                role, name, locale, user_id=user_id, sampling=for_choice(sampling, options, self.tokenizer), refused=refused, **variables
            )
            return replace(request, choice=options)

        return await self.ask(make, lambda answer: parse_choice(answer, options))


async def all_of(waiting: Iterable[Awaitable[T]]) -> list[T]:
    """All results in order. After an error the others still finish, because another user may wait for the same call; then it comes out."""
    results = await asyncio.gather(*waiting, return_exceptions=True)
    errors = [result for result in results if isinstance(result, BaseException)]
    for error in sorted(errors, key=lambda error: isinstance(error, RowError)):  # a dead engine before a bad row
        raise error
    return [result for result in results if not isinstance(result, BaseException)]


def as_sampling(role: RoleSampling) -> Sampling:
    """A recipe's sampling as a request carries it."""
    return Sampling(role.max_tokens, role.temperature, role.repetition_penalty, role.top_p, role.top_k)


def for_choice(role: RoleSampling, options: tuple[str, ...], tokenizer: PromptTokenizer) -> Sampling:
    """The same with room for the longest option, even where the model spells it in smaller pieces than the tokenizer would."""
    longest = max(tokenizer.count(option) for option in options)
    return replace(as_sampling(role), max_tokens=max(role.max_tokens, 2 * longest + 4))
