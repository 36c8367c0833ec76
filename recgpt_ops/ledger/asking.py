"""How a question is put to the model: a template, the ledger, a check of the answer, one second try. Shared by every stage that asks.

Every prompt is [what all share][what few share][what is its own]: what two calls have in common comes first, so that the engine
computes it once. What an earlier answer changes (already chosen, why it was refused) comes last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from recgpt_ops.errors import RowError
from recgpt_ops.ledger.recorder import CallRecorder
from recgpt_ops.llm.requests import Answer, Request, Sampling
from recgpt_ops.llm.structured import parse_choice
from recgpt_ops.llm.tokenizer import PromptTokenizer
from recgpt_ops.prompts import Message, Template, load_template, render
from recgpt_ops.recipes import RoleSampling

S = TypeVar("S")
T = TypeVar("T")


class Asker:
    """One per shard. `templates` fills as names and locales come up; `variables` names what each template is rendered with."""

    def __init__(self, prompts: Path, variables: Mapping[str, tuple[str, ...]], *, tokenizer: PromptTokenizer, calls: CallRecorder) -> None:
        """`prompts`: the stage's folder of templates. An unknown placeholder is found when its template is loaded."""
        self.prompts, self.variables = prompts, variables
        self.tokenizer, self.calls = tokenizer, calls
        self.templates: dict[tuple[str, str], Template] = {}

    def template(self, name: str, locale: str) -> Template:
        """The template for a locale, read once."""
        key = (name, locale)
        if key not in self.templates:
            self.templates[key] = load_template(self.prompts, name, locale, variables=self.variables[name])
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
        self,
        role: str,
        name: str,
        locale: str,
        /,
        *,
        user_id: str | None,
        options: tuple[str, ...],
        sampling: RoleSampling,
        **variables: Any,
    ) -> tuple[str, str]:
        """One of `options` and the call that chose it."""

        def make(refused: str) -> Request:
            request = self.request(
                role, name, locale, user_id=user_id, sampling=for_choice(sampling, options, self.tokenizer), refused=refused, **variables
            )
            return replace(request, choice=options)

        return await self.ask(make, lambda answer: parse_choice(answer, options))

    def prompt_rows(self) -> list[dict[str, Any]]:
        """The templates that were used, as rows of `prompts`."""
        now = datetime.now(UTC)
        return [
            {
                "prompt_id": template.prompt_id,
                "name": template.name,
                "version": template.version,
                "locale": template.locale,
                "text": template.text,
                "first_used_at": now,
            }
            for template in {template.prompt_id: template for template in self.templates.values()}.values()
        ]


async def all_of(waiting: Iterable[Awaitable[T]]) -> list[T]:
    """All results in order. After an error the others still finish, because another user may wait for the same call; then it comes out."""
    results = await asyncio.gather(*waiting, return_exceptions=True)
    errors = [result for result in results if isinstance(result, BaseException)]
    for error in sorted(errors, key=lambda error: isinstance(error, RowError)):  # a dead engine before a bad row
        raise error
    return [result for result in results if not isinstance(result, BaseException)]


async def side_by_side(work: Callable[[S], Awaitable[None]], source: Iterable[S], *, at_once: int) -> None:
    """Does `work` for each of `source`, at most `at_once` at the same time; `source` is read no faster than that (020).

    An error of one ends the others and comes out.
    """
    waiting = iter(source)

    async def worker() -> None:
        for one in waiting:
            await work(one)

    workers = [asyncio.create_task(worker()) for _ in range(max(1, at_once))]
    try:
        await asyncio.gather(*workers)
    finally:
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


def as_sampling(role: RoleSampling) -> Sampling:
    """A recipe's sampling as a request carries it."""
    return Sampling(role.max_tokens, role.temperature, role.repetition_penalty, role.top_p, role.top_k)


def for_choice(role: RoleSampling, options: tuple[str, ...], tokenizer: PromptTokenizer) -> Sampling:
    """The same with room for the longest option, even where the model spells it in smaller pieces than the tokenizer would."""
    longest = max(tokenizer.count(option) for option in options)
    return replace(as_sampling(role), max_tokens=max(role.max_tokens, 2 * longest + 4))
