"""Ids and digests, equal in Python, DuckDB, Sail and JVM Spark.

An id is the sha256 of its key columns in contract order, so any engine can make it and nothing has to be looked up:

    ("u_42", "2017-10-30")  ->  sha256("u_42" + US + "2017-10-30")        US = the unit separator, 0x1f

Only strings are hashed. What is not a string is first written as one by the rules of `as_text`, the same in every engine.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime

SEPARATOR = "\x1f"
NULL = "\x00"
BUCKET_COUNT = 1024  # 10 bits: unit of shards, ledger segments, staged files and erase


def as_text(value: object) -> str:
    """One key value as the text that is hashed: null is NUL, a time its UTC microseconds, a boolean true or false.

    >>> as_text(None), as_text(7), as_text(True)
    ('\\x00', '7', 'true')
    """
    if value is None:
        return NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        delta = aware - datetime(1970, 1, 1, tzinfo=UTC)
        return str((delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds)
    return str(value)


def row_id(values: Iterable[object]) -> str:
    """sha256 hex of the key values of one row, in contract order and without `publish_id`."""
    return hashlib.sha256(SEPARATOR.join(as_text(value) for value in values).encode()).hexdigest()


def normalize_text(text: str) -> str:
    """The form in which two texts count as the same: NFKC, casefold, white space collapsed.

    >>> normalize_text("  Ｐumpkin\\n SPICE ")
    'pumpkin spice'
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def text_hash(text: str) -> str:
    """sha256 hex of the normalized text."""
    return hashlib.sha256(normalize_text(text).encode()).hexdigest()


def tag_id(locale: str, text: str) -> str:
    """The distinct tag: two users with the same words in one locale share it."""
    return row_id((locale, normalize_text(text)))


def user_bucket(user_id: str) -> int:
    """The first 10 bits of sha256(user_id), 0 to 1023."""
    return int.from_bytes(hashlib.sha256(user_id.encode()).digest()[:2], "big") >> 6


def user_order(user_id: str) -> str:
    """Sort key of "the N smallest sha256(user_id)"."""
    return hashlib.sha256(user_id.encode()).hexdigest()


def publish_id_of(run_id: str) -> str:
    """The generation that an orchestrator's run writes: the same run, retried, writes the same generation."""
    return "p" + hashlib.sha256(run_id.encode()).hexdigest()[:16]
