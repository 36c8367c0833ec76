"""What a judge replied, read strictly: a level (or grade) of the set, or the reason why it is none. Nothing is guessed from a reply.

    {"level":"neutral","reason":"fits the season"}   ("neutral", "fits the season")
    8/10   Score: 11                                  a_number
    NaN                                               not_a_number
    S or A                                            several_levels
    (empty)                                           empty
    I cannot judge that.                              refusal
    {"level":"excellent","reason":""}                 out_of_set
    positive, I think                                 not_json

What cuts any answer short (truncated, thinking, white space) keeps the reasons of `llm.structured`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from recgpt_ops.errors import RowError
from recgpt_ops.judges.dimensions import GRADES, LEVELS
from recgpt_ops.llm.requests import Answer
from recgpt_ops.llm.structured import answer_text, check_text, compact_schema, parse_json

MOST_REASON_WORDS = 12
MOST_REASON_CHARS = 160
NUMBER = re.compile(r"[^\d\w]*(?:(?:score|rating|level|grade|评分|分数)\W*)?[-+]?\d+(?:[.,]\d+)?\s*(?:/\s*\d+|%|分)?\W*", re.IGNORECASE)
NOT_A_NUMBER = re.compile(r"\W*(?:nan|inf|infinity|null|none)\W*", re.IGNORECASE)
REFUSAL = re.compile(
    r"\b(?:i\s*(?:'|’)?m sorry|i am sorry|sorry|i can(?:no|')?t|i can’t|i am unable|i'm unable|as an ai|i won't|i will not|unable to)\b"
    r"|抱歉|对不起|无法|不能",
    re.IGNORECASE,
)
IDEOGRAPH = re.compile(r"[\u3400-\u9fff]")
LEVEL_SCHEMA = compact_schema(
    {
        "type": "object",
        "properties": {
            "level": {"type": "string", "enum": list(LEVELS)},
            "reason": {"type": "string", "minLength": 1, "maxLength": MOST_REASON_CHARS},
        },
        "required": ["level", "reason"],
        "additionalProperties": False,
    }
)


def read_level(answer: Answer) -> tuple[str, str]:
    """Level and reason of a dimension's judge; RowError with the status otherwise."""
    text = whole_text(answer)
    try:
        value = parse_json(answer)
    except RowError as error:
        raise fault_of(text, LEVELS, otherwise="not_json") from error
    if isinstance(value, str | int | float) or value is None:
        raise fault_of(str(value), LEVELS, otherwise="wrong_shape")
    if not isinstance(value, dict) or set(value) != {"level", "reason"}:
        raise RowError("wrong_shape", f'expected {{"level","reason"}}, got {text[:80]!r}')
    if value["level"] not in LEVELS:
        raise fault_of(str(value["level"]), LEVELS, otherwise="out_of_set")
    return value["level"], check_reason(value["reason"])


def read_grade(answer: Answer) -> str:
    """S, A or B, just as it is spelled; RowError with the status otherwise."""
    text = whole_text(answer)
    if text not in GRADES:
        raise fault_of(text, GRADES, otherwise="out_of_set")
    return text


def whole_text(answer: Answer) -> str:
    """The answer's own text; an empty one is the judges' status `empty`."""
    if not answer.text.strip():
        raise RowError("empty", "the judge said nothing")
    return answer_text(answer)


def check_reason(reason: object) -> str:
    """The judge's reason, of at most 12 words; an ideograph counts as half a word."""
    text = check_text(reason, what="reason", max_chars=MOST_REASON_CHARS)
    ideographs = len(IDEOGRAPH.findall(text))
    words = len(IDEOGRAPH.sub(" ", text).split()) + (ideographs + 1) // 2
    if words > MOST_REASON_WORDS:
        raise RowError("too_many_words", f"a reason of {words} words, expected at most {MOST_REASON_WORDS}")
    return text


def fault_of(text: str, allowed: Sequence[str], *, otherwise: str) -> RowError:
    """Why a text is not one of `allowed`, by what it looks like; `otherwise` when it looks like nothing we know."""
    told = f"expected one of {', '.join(allowed)}, got {text[:80]!r}"
    named = [word for word in allowed if re.search(rf"\b{word}\b", text)]
    if not text.strip():
        return RowError("empty", told)
    if NOT_A_NUMBER.fullmatch(text):
        return RowError("not_a_number", told)
    if NUMBER.fullmatch(text):
        return RowError("a_number", told)
    if REFUSAL.search(text):
        return RowError("refusal", told)
    if len(named) > 1:
        return RowError("several_levels", told)
    return RowError(otherwise, told)
