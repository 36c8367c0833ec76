"""One judge of a shard: its templates, its engine's ledger, how it reads a level, and the questions it puts.

    labels       raw log-probabilities of " negative", " neutral", " positive" as the answer's first token, on the prompt and on a
                 content-free twin of it;  score = [lp(positive) - lp(negative)] - the same of the twin;  two cut-offs -> level
    generation   the judge writes {"level","reason"}; an answer that is none is asked for once more, with the reason

A small model prefers "positive" whatever it reads: the twin takes that preference out, the cut-offs say where on this model the
levels begin. The one_shot judge asks the same way for S, A or B at once.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from recgpt_ops.errors import ConfigError, RowError
from recgpt_ops.judges.dimensions import DIMENSIONS, Dimension, Kind
from recgpt_ops.judges.pieces import cut_text
from recgpt_ops.ledger.asking import Asker
from recgpt_ops.ledger.recorder import CallRecorder
from recgpt_ops.llm.requests import Answer, Request, Sampling
from recgpt_ops.llm.structured import parse_logprobs
from recgpt_ops.llm.tokenizer import PromptTokenizer

Ask = Literal["level_label", "level_reason", "grade_label", "grade_choice"]
PROMPTS = Path(__file__).parent / "prompts"
SHOWN: dict[Kind, tuple[str, ...]] = {"tag": ("context", "tag"), "explanation": ("interest", "item", "situation", "text")}
QUESTION = ("ask", "name", "rubric", "refused")
# Every variable each template is rendered with; an unknown placeholder is found when the template is loaded.
VARIABLES = {
    "tag": (*SHOWN["tag"], *QUESTION),
    "explanation": (*SHOWN["explanation"], *QUESTION),
    "reviewer": ("kind", "told", "refused"),
}
PROMPT_TOKENS = 250  # the most a judge's prompt may have
REFUSED_TOKENS = 24  # of the reason that a second try is told
JUDGED_TOKENS: dict[Kind, int] = {"tag": 24, "explanation": 48}  # of the judged text; the rest is for what it is judged by
MARGIN_TOKENS = 4  # pieces may take more tokens side by side than each alone
TWIN_TEXT = "N/A"
LEVEL_LABELS = (" negative", " neutral", " positive")
GRADE_LABELS = (" B", " A", " S")
ANSWER_TOKENS = 64


class Subject(NamedTuple):
    """What is judged. `shown` are the template's values, cut already. `user_id` None: nothing of a user is inside, so it is shared.

    `text` is what was written, whole; a text of nothing but white space is bad by rule.
    """

    kind: Kind
    key: str
    locale: str
    user_id: str | None
    shown: dict[str, str]
    text: str


@dataclass(frozen=True)
class LabelIds:
    """First tokens of the labels, worst first."""

    levels: tuple[int, ...]
    grades: tuple[int, ...]


class Judge:
    """One per shard. `basis`: hash of the labeled set where levels are read from labels, else None."""

    def __init__(self, tokenizer: PromptTokenizer, calls: CallRecorder, *, basis: str | None) -> None:
        self.asker = Asker(PROMPTS, VARIABLES, tokenizer=tokenizer, calls=calls)
        self.tokenizer, self.basis = tokenizer, basis
        self.twins: dict[tuple[Kind, str, str], asyncio.Task[float]] = {}
        self.rooms: dict[tuple[Kind, str], int] = {}

    @cached_property
    def label_ids(self) -> LabelIds:
        """The labels' first tokens; ConfigError where this tokenizer cannot tell them apart."""
        return LabelIds(first_ids(LEVEL_LABELS, self.tokenizer), first_ids(GRADE_LABELS, self.tokenizer))

    def room(self, kind: Kind, locale: str) -> int:
        """Tokens for what a text is judged by: what the longest question of this kind, a refusal and the judged text leave of 250."""
        key = (kind, self.asker.template(kind, locale).locale)
        if key not in self.rooms:
            empty = dict.fromkeys(SHOWN[kind], "")
            asks: tuple[Ask, ...] = ("level_label", "level_reason", "grade_label", "grade_choice")
            longest = max(
                len(self.question("", Subject(kind, "", locale, None, empty, ""), ask, dimension, refused=refused).token_ids)
                + (REFUSED_TOKENS if refused else 0)
                for ask in asks
                for dimension in DIMENSIONS[kind]
                for refused in ("", ":")
            )
            self.rooms[key] = PROMPT_TOKENS - longest - JUDGED_TOKENS[kind] - MARGIN_TOKENS
            if self.rooms[key] < 16:
                raise ConfigError(
                    f"prompts {kind}, {locale}", [f"take {longest} of {PROMPT_TOKENS} tokens themselves; shorten template or rubrics"]
                )
        return self.rooms[key]

    def question(
        self, role: str, subject: Subject, ask: Ask, dimension: Dimension | None, *, refused: str = "", user_id: str | None = None
    ) -> Request:
        """One prompt. A prompt over 250 tokens is a RowError: then pieces or rubrics are to be cut."""
        request = self.asker.request(
            role,
            subject.kind,
            subject.locale,
            user_id=user_id,
            sampling=Sampling(ANSWER_TOKENS if ask == "level_reason" else 8),
            **subject.shown,
            ask=ask,
            name=dimension.name if dimension else "",
            rubric=dimension.rubric(subject.locale) if dimension else "",
            refused=cut_text(refused, REFUSED_TOKENS, self.tokenizer),
        )
        if len(request.token_ids) > PROMPT_TOKENS:
            raise RowError("prompt_too_long", f"{role}: {len(request.token_ids)} prompt tokens, expected at most {PROMPT_TOKENS}")
        return request

    async def label_score(self, subject: Subject, dimension: Dimension | None, *, role: str) -> tuple[float, str]:
        """The score of a subject and the call it came from; None as dimension: of the whole (S, A or B)."""
        gap, call_id = await self.label_gap(subject, dimension, role=role, user_id=subject.user_id)
        return gap - await self.twin_gap(subject, dimension, role=f"{role}_null"), call_id

    async def twin_gap(self, subject: Subject, dimension: Dimension | None, *, role: str) -> float:
        """What the model prefers without any content, asked once per question and language."""
        key = (subject.kind, self.asker.template(subject.kind, subject.locale).locale, role)
        if key not in self.twins:
            twin = subject._replace(shown=dict.fromkeys(subject.shown, TWIN_TEXT), user_id=None)

            async def ask() -> float:
                return (await self.label_gap(twin, dimension, role=role, user_id=None))[0]

            self.twins[key] = asyncio.ensure_future(ask())
        return await asyncio.shield(self.twins[key])

    async def label_gap(self, subject: Subject, dimension: Dimension | None, *, role: str, user_id: str | None) -> tuple[float, str]:
        """lp(best label) - lp(worst label) of one prompt, and its call."""
        ids = self.label_ids.levels if dimension else self.label_ids.grades
        request = self.question(role, subject, "level_label" if dimension else "grade_label", dimension, user_id=user_id)

        def parse(answer: Answer) -> float:
            logprobs = parse_logprobs(answer, ids)
            return logprobs[-1] - logprobs[0]

        return await self.asker.calls.call(replace(request, label_ids=ids, basis=self.basis), parse=parse)

    def prompt_rows(self) -> list[dict[str, Any]]:
        """The templates that were used, as rows of `prompts`."""
        return self.asker.prompt_rows()


def first_ids(labels: tuple[str, ...], tokenizer: PromptTokenizer) -> tuple[int, ...]:
    """The first token of each label."""
    ids = tuple(tokenizer.encode_data(label)[0] for label in labels)
    if len(set(ids)) < len(ids):
        raise ConfigError(
            "judging.level_from",
            [f"the labels {', '.join(map(repr, labels))} begin with the same token in this tokenizer; set level_from: generation"],
        )
    return ids
