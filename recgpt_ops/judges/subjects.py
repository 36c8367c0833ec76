"""Rows of a night as what is judged: a tag beside its user's context, an explanation beside its interest, item and situation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recgpt_ops.judges.judge import JUDGED_TOKENS, TWIN_TEXT, Judge, Subject
from recgpt_ops.judges.pieces import cut_parts, cut_text, user_text


def tag_subject(tag: Mapping[str, Any], *, locale: str, context: str, judge: Judge) -> Subject:
    """A row of `intent_tags`. `context` is `user_context` of its user, made once for all of the user's tags."""
    shown = {"context": context, "tag": cut_text(tag["tag"], JUDGED_TOKENS["tag"], judge.tokenizer)}
    return Subject("tag", tag["tag_id"], locale, tag["user_id"], shown, tag["tag"])


def user_context(row: Mapping[str, Any], judge: Judge) -> str:
    """What tag judges read of a user: attributes, signals and the newest lines of `user_contexts`, whichever method's tag it is."""
    return user_text(row, judge.room("tag", row["locale"]), judge.tokenizer) or TWIN_TEXT


def explanation_subject(row: Mapping[str, Any], judge: Judge) -> Subject:
    """A row of `explanations`. Nothing of a user is inside, so one verdict holds for everybody who is shown it."""
    room = judge.room("explanation", row["locale"])
    interest, item, situation = cut_parts([row["tag"], row["item_text"], row["situation"]], room, judge.tokenizer)
    text = cut_text(row["text"], JUDGED_TOKENS["explanation"], judge.tokenizer)
    shown = {"interest": interest, "item": item, "situation": situation, "text": text}
    return Subject("explanation", row["explanation_id"], row["locale"], None, shown, row["text"])
