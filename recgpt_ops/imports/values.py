"""Reading one value: a text from somebody's file becomes a typed value, or a Fault that says what is wrong with it.

    read_quantity("2.0") -> 2        read_amount("-3") -> Fault("negative_amount", "expected at least 0, got '-3'")

Each reader is given a text without surrounding white space, never None or "". Only plain ASCII digits count as numbers: a minus
sign from a word processor or a decimal comma is a fault, because guessing what was meant changes money in silence.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

MAX_ID_CHARS = 256
MAX_TEXT_CHARS = 2000
MAX_QUANTITY = 10**9
MAX_MONEY = 10.0**12
FIRST_YEAR = 1970
EPOCH_FORMATS = {"epoch_seconds": 1, "epoch_milliseconds": 1000}

NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
ISO_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)? ?(Z|UTC|[+-]\d\d:?\d\d)?)?", re.ASCII)
LOCALE = re.compile(r"[a-z]{2,3}(-[A-Z][a-z]{3})?(-[A-Z]{2})?", re.ASCII)
REGION = re.compile(r"[A-Z]{2}(-[A-Z0-9]{1,3})?", re.ASCII)
CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)


class Fault(NamedTuple):
    """Why a value cannot be used: a snake_case reason that is counted, and what was expected and what came."""

    reason: str
    detail: str


class Moment(NamedTuple):
    """When something happened: the instant in UTC, whether the second or only the day is known, and the business date."""

    at: datetime
    precision: str
    ds: str


Reader = Callable[[str], Any]  # text -> typed value | Fault


def shown(text: str) -> str:
    """A value as it stands in a fault's detail, not longer than 80 characters."""
    return repr(text if len(text) <= 80 else text[:80] + "...")


def read_id(text: str, *, name: str) -> str | Fault:
    """An id as the source spells it; "1e5" and "007" stay what they are."""
    if len(text) > MAX_ID_CHARS:
        return Fault(f"{name}_too_long", f"expected at most {MAX_ID_CHARS} characters, got {len(text):,}")
    if not text.isprintable() and any(char in text for char in "\t\n\r"):
        return Fault("control_characters", f"expected {name} on one line, got {shown(text)}")
    return text


def read_text(text: str, *, name: str) -> str | Fault:
    """A text for people, white space collapsed; tabs and line breaks count as white space."""
    collapsed = " ".join(text.split())
    if len(collapsed) > MAX_TEXT_CHARS:
        return Fault(f"{name}_too_long", f"expected at most {MAX_TEXT_CHARS:,} characters, got {len(collapsed):,}")
    return collapsed


def read_pattern(text: str, *, name: str, pattern: re.Pattern[str], example: str) -> str | Fault:
    """A code that must have one form, such as a currency."""
    return text if pattern.fullmatch(text) else Fault(f"bad_{name}", f"expected a {name} such as {example}, got {shown(text)}")


def read_choice(text: str, *, name: str, choices: dict[str, str]) -> str | Fault:
    """One of the known values, translated."""
    if text in choices:
        return choices[text]
    return Fault(f"unknown_{name}", f"expected one of {', '.join(choices)}, got {shown(text)}")


def number(text: str) -> float | None:
    """A finite number in plain ASCII spelling; else None."""
    if not NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def read_quantity(text: str) -> int | Fault:
    """Pieces: a whole number from 1."""
    value = number(text)
    if value is None:
        return Fault("quantity_not_a_number", f"expected a whole number such as 2, got {shown(text)}")
    if value != int(value):
        return Fault("quantity_not_whole", f"expected a whole number such as 2, got {shown(text)}")
    if not 1 <= value <= MAX_QUANTITY:
        return Fault("quantity_out_of_range", f"expected 1 to {MAX_QUANTITY:,}, got {shown(text)}")
    return int(value)


def read_money(text: str, *, name: str) -> float | Fault:
    """An amount of money of at least 0."""
    value = number(text)
    if value is None:
        return Fault(f"{name}_not_a_number", f"expected a number such as 12.50, got {shown(text)}")
    if value < 0:
        return Fault(f"negative_{name}", f"expected at least 0, got {shown(text)}")
    if value > MAX_MONEY:
        return Fault(f"{name}_out_of_range", f"expected at most {MAX_MONEY:,.0f}, got {shown(text)}")
    return value + 0.0  # -0.0 becomes 0.0, so that equal rows have equal digests


def parse_time(text: str, format_: str | None) -> tuple[datetime, bool]:
    """A time as written, naive or with its own offset, and whether only the day was written; ValueError when it is none."""
    if format_ in EPOCH_FORMATS:
        value = number(text)
        if value is None or abs(value) > 1e15:
            raise ValueError("not a count of seconds or milliseconds")
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=value / EPOCH_FORMATS[format_]), False
    if format_ is not None:
        if not text.isascii() and format_.isascii():
            raise ValueError("characters that the format has not")
        return datetime.strptime(text, format_), not re.search(r"%[HIcXsf]", format_)
    match = ISO_TIME.fullmatch(text)
    if match is None:
        raise ValueError("not ISO 8601, YYYY-MM-DD or YYYY-MM-DD hh:mm:ss")
    year, month, day, hour, minute, second, fraction, offset = match.groups()
    if hour is None:
        return datetime(int(year), int(month), int(day)), True
    micros = int((fraction or "0").ljust(6, "0")[:6])
    moment = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second or 0), micros)
    if offset is None:
        return moment, False
    if offset in {"Z", "UTC"}:
        return moment.replace(tzinfo=UTC), False
    return datetime.fromisoformat(moment.isoformat() + offset), False


def read_moment(text: str, *, format_: str | None, source_zone: ZoneInfo, zone: ZoneInfo, now: datetime) -> Moment | Fault:
    """When an event happened. Times without an offset are local in `source_zone`; `zone` is the business time zone.

    A local time that occurs twice when clocks go back is taken as the first; one that clocks skip is a fault. A day is a day of
    the business time zone, and its event stands at the first instant of it.
    """
    try:
        written, is_day = parse_time(text, format_)
    except (ValueError, OverflowError) as error:
        return Fault("unparsable_time", f"expected {format_ or 'a time such as 2017-10-30 18:05:00'}, got {shown(text)} ({error})")
    if written.year < FIRST_YEAR:
        return Fault("time_out_of_range", f"expected {FIRST_YEAR} or later, got {shown(text)}")
    if written.year > now.year + 1:
        return Fault("future_time", f"expected a time before the import at {now:%Y-%m-%d %H:%M} UTC, got {shown(text)}")
    if is_day:
        at = written.replace(tzinfo=zone).astimezone(UTC)
        moment = Moment(at, "day", written.date().isoformat())
    else:
        local = written if written.tzinfo else written.replace(tzinfo=source_zone)
        at = local.astimezone(UTC)
        if written.tzinfo is None and at.astimezone(source_zone).replace(tzinfo=None) != written:
            return Fault("nonexistent_time", f"clocks in {source_zone.key} skipped {shown(text)}")
        moment = Moment(at, "second", at.astimezone(zone).date().isoformat())
    if at > now:
        return Fault("future_time", f"expected a time before the import at {now:%Y-%m-%d %H:%M} UTC, got {shown(text)}")
    return moment


def read_ds(text: str, *, name: str, format_: str | None = None) -> str | Fault:
    """A date as YYYY-MM-DD; a time of day behind it is left out."""
    try:
        return parse_time(text, format_)[0].date().isoformat()
    except (ValueError, OverflowError) as error:
        return Fault(f"unparsable_{name}", f"expected {format_ or 'a date such as 2017-10-30'}, got {shown(text)} ({error})")


def column_reader(
    column: str, *, format_: str | None, actions: dict[str, str], source_zone: ZoneInfo, zone: ZoneInfo, now: datetime
) -> Reader:
    """The reader of a contract column."""
    if column == "event_at":
        return partial(read_moment, format_=format_, source_zone=source_zone, zone=zone, now=now)
    if column.endswith("_ds"):
        return partial(read_ds, name=column, format_=format_)
    if column.endswith("_id"):
        return partial(read_id, name=column)
    if column in {"amount", "price"}:
        return partial(read_money, name=column)
    readers: dict[str, Reader] = {
        "action": partial(read_choice, name="action", choices=actions),
        "quantity": read_quantity,
        "currency": partial(read_pattern, name="currency", pattern=CURRENCY, example="USD"),
        "locale": partial(read_pattern, name="locale", pattern=LOCALE, example="en-US"),
        "region": partial(read_pattern, name="region", pattern=REGION, example="US or US-NY"),
    }
    return readers.get(column) or partial(read_text, name=column.removeprefix("attributes.").replace(" ", "_").lower())
