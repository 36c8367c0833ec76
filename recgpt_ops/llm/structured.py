"""Structured answers: what is asked of the grammar, and our own check of what came back.

No guarantee of a grammar back end is relied on: counts, lengths and uniqueness are checked here (028), and so are the ways
in which an answer is no answer: cut off (023), thinking instead of answering (030), running out into white space (024).
Every refusal is a RowError whose reason is counted:

    truncated  white_space_run  thinking_unclosed  thinking_only  answer_empty  bad_json  wrong_shape  wrong_count
    text_empty  text_too_long  bad_text  duplicate  not_a_choice  bad_logprob
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from recgpt_ops.errors import RowError
from recgpt_ops.ids import normalize_text
from recgpt_ops.llm.requests import Answer

WASTE_RUN = re.compile(r"\s{40,}")  # compact JSON has none at all; a pretty-printed answer of an address stays below
THINK_TAG = re.compile(r"<\s*(/?)\s*(?:think|thinking|thought|reasoning)\s*>", re.IGNORECASE)


def compact_schema(schema: Mapping[str, Any]) -> str:
    """A schema as the text that requests carry. Property order is kept: it is the order in which they are written."""
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def constraint_faults(where: str, constraint: object) -> list[str]:
    """What is wrong with a constraint of a config (026): empty or "false" would count as one and kill the engine.

    `constraint` is a JSON schema (text or mapping) or a list of choices; `where` is the path of the setting.
    """
    if isinstance(constraint, list | tuple):
        if not constraint or any(not isinstance(choice, str) or not choice.strip() for choice in constraint):
            return [f"{where} is {constraint!r}; expected a list of texts, none of them empty, or leave the setting out"]
        if len(set(constraint)) < len(constraint):
            return [f"{where} names a choice twice; name each once"]
        return []
    if isinstance(constraint, str):
        try:
            constraint = json.loads(constraint)
        except ValueError as error:
            return [f"{where} is {constraint!r}, which is no JSON ({error}); write a schema, or leave the setting out"]
    if not isinstance(constraint, dict) or not constraint:
        return [f"{where} is {constraint!r}; expected a JSON schema that says something, or leave the setting out"]
    return []


def answer_text(answer: Answer) -> str:
    """The answer's own text: whole, without thinking, not run out into white space; RowError otherwise."""
    if WASTE_RUN.search(answer.text):
        raise RowError("white_space_run", f"about {wasted_tokens(answer)} of {answer.completion_tokens} tokens are a run of white space")
    if answer.finish_reason != "stop":
        raise RowError("truncated", f"cut off after {answer.completion_tokens} tokens, finish reason {answer.finish_reason!r}")
    text = answer.text
    tags = list(THINK_TAG.finditer(text))
    if tags:
        if not tags[-1][1]:
            raise RowError("thinking_unclosed", f"a {tags[-1][0]} block is not closed; there is no answer after it")
        text = text[tags[-1].end() :]
        if not text.strip():
            raise RowError("thinking_only", f"nothing stands after the {tags[-1][0]} of the thinking")
    if not text.strip():
        raise RowError("answer_empty", f"the answer of {answer.completion_tokens} tokens is empty")
    return text.strip()


def wasted_tokens(answer: Answer) -> int:
    """Tokens of the answer that were runs of white space, by their share of its characters."""
    wasted = sum(len(run) for run in WASTE_RUN.findall(answer.text))
    return round(answer.completion_tokens * wasted / len(answer.text)) if wasted else 0


def parse_json(answer: Answer) -> Any:
    """The JSON value of an answer. Keys that stand twice, NaN and text around the JSON are refused."""
    text = answer_text(answer)
    try:
        return json.loads(text, object_pairs_hook=single_keys, parse_constant=refuse_constant)
    except ValueError as error:
        raise RowError("bad_json", f"{error}; got {text[:120]!r}") from error


def single_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys all stand once."""
    built = dict(pairs)
    if len(built) < len(pairs):
        raise ValueError("a key stands twice")
    return built


def refuse_constant(name: str) -> float:
    """NaN and Infinity are no JSON."""
    raise ValueError(f"{name} is no JSON number")


def parse_json_list(
    answer: Answer, *, what: str, min_count: int, max_count: int, max_chars: int, allowed: Sequence[str] | None = None
) -> tuple[str, ...]:
    """The texts of an answer that is a JSON list of strings, checked by `check_texts`."""
    value = parse_json(answer)
    if not isinstance(value, list):
        raise RowError("wrong_shape", f"{what}: expected a list, got {type(value).__name__}")
    return check_texts(value, what=what, min_count=min_count, max_count=max_count, max_chars=max_chars, allowed=allowed)


def parse_json_obj(answer: Answer, *, what: str, keys: Sequence[str]) -> dict[str, Any]:
    """The object of an answer; exactly `keys` must be there. Their values are the caller's to check."""
    value = parse_json(answer)
    if not isinstance(value, dict):
        raise RowError("wrong_shape", f"{what}: expected an object, got {type(value).__name__}")
    if set(value) != set(keys):
        raise RowError("wrong_shape", f"{what}: expected the keys {', '.join(keys)}, got {', '.join(value) or 'none'}")
    return value


def check_texts(
    values: Sequence[object], *, what: str, min_count: int, max_count: int, max_chars: int, allowed: Sequence[str] | None = None
) -> tuple[str, ...]:
    """The texts, stripped, after count, type, length, character and uniqueness checks; `allowed` None means any text."""
    if not min_count <= len(values) <= max_count:
        expected = str(min_count) if min_count == max_count else f"{min_count} to {max_count}"
        raise RowError("wrong_count", f"{what}: expected {expected}, got {len(values)}")
    texts = tuple(check_text(value, what=what, max_chars=max_chars) for value in values)
    seen: dict[str, str] = {}
    for text in texts:
        if (same := seen.setdefault(normalize_text(text), text)) is not text:
            raise RowError("duplicate", f"{what}: {text!r} stands there twice (as {same!r})")
        if allowed is not None and text not in allowed:
            raise RowError("not_a_choice", f"{what}: {text!r} is none of the {len(allowed)} allowed")
    return texts


def check_text(value: object, *, what: str, max_chars: int) -> str:
    """One text, stripped: a string, not empty, not too long, without control characters or halves of a character."""
    if not isinstance(value, str):
        raise RowError("wrong_shape", f"{what}: expected a text, got {type(value).__name__}")
    text = value.strip()
    if not text:
        raise RowError("text_empty", f"{what}: an empty text")
    if len(text) > max_chars:
        raise RowError("text_too_long", f"{what}: {len(text)} characters, expected at most {max_chars}: {text[:80]!r}")
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in text):
        raise RowError("bad_text", f"{what}: control characters or broken ones in {text[:80]!r}")
    if THINK_TAG.search(text):
        raise RowError("bad_text", f"{what}: thinking marks in {text[:80]!r}")
    return text


def parse_choice(answer: Answer, choices: Sequence[str]) -> str:
    """The choice that was answered, exactly as it is spelled in `choices`."""
    text = answer_text(answer)
    if text not in choices:
        raise RowError("not_a_choice", f"{text[:80]!r} is none of the {len(choices)} choices")
    return text


def parse_logprobs(answer: Answer, forced_ids: Sequence[int]) -> tuple[float, ...]:
    """One finite raw log-probability per forced id."""
    logprobs = answer.logprobs or ()
    if len(logprobs) != len(forced_ids):
        raise RowError("wrong_count", f"log-probabilities: expected {len(forced_ids)}, got {len(logprobs)}")
    if any(not -1e4 < value <= 1e-6 for value in logprobs):  # not NaN either
        raise RowError("bad_logprob", f"a log-probability outside (-10000, 0] in {logprobs[:8]}")
    return logprobs
