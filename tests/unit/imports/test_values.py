"""One value: what counts as a number, a time, an id."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from recgpt_ops.imports.values import Fault, Moment, read_ds, read_id, read_moment, read_money, read_quantity, read_text

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
NEW_YORK, LONDON = ZoneInfo("America/New_York"), ZoneInfo("Europe/London")


def moment(text: str, *, format_: str | None = None, source: ZoneInfo = NEW_YORK, zone: ZoneInfo = NEW_YORK) -> Moment | Fault:
    return read_moment(text, format_=format_, source_zone=source, zone=zone, now=NOW)


@pytest.mark.parametrize(
    ("text", "at", "precision", "ds"),
    [
        ("2017-10-30 18:05:00", datetime(2017, 10, 30, 22, 5, tzinfo=UTC), "second", "2017-10-30"),
        ("2017-10-30T18:05", datetime(2017, 10, 30, 22, 5, tzinfo=UTC), "second", "2017-10-30"),
        ("2017-10-31 02:05:00Z", datetime(2017, 10, 31, 2, 5, tzinfo=UTC), "second", "2017-10-30"),  # still the 30th in New York
        ("2017-10-31T04:05:00+02:00", datetime(2017, 10, 31, 2, 5, tzinfo=UTC), "second", "2017-10-30"),
        ("2017-10-30 18:05:00.123456789", datetime(2017, 10, 30, 22, 5, 0, 123456, tzinfo=UTC), "second", "2017-10-30"),
        ("2017-10-30", datetime(2017, 10, 30, 4, 0, tzinfo=UTC), "day", "2017-10-30"),  # the first instant of that day there
        ("2017-11-05 01:30:00", datetime(2017, 11, 5, 5, 30, tzinfo=UTC), "second", "2017-11-05"),  # occurs twice: the first
        ("2016-02-29", datetime(2016, 2, 29, 5, 0, tzinfo=UTC), "day", "2016-02-29"),
    ],
)
def test_a_time_becomes_an_instant_and_a_business_date(text: str, at: datetime, precision: str, ds: str) -> None:
    assert moment(text) == Moment(at, precision, ds)


def test_a_utc_source_has_its_days_in_the_business_zone() -> None:
    result = moment("2018-01-01 04:01:20", source=ZoneInfo("UTC"))
    assert isinstance(result, Moment)
    assert (result.at.hour, result.ds) == (4, "2017-12-31")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2017-02-29", "unparsable_time"),  # no leap year
        ("2017-13-01", "unparsable_time"),
        ("30.10.2017", "unparsable_time"),
        ("2017-10-30 24:00:00", "unparsable_time"),
        ("2017-10-30 18:05:60", "unparsable_time"),
        ("٢٠١٧-10-30", "unparsable_time"),
        ("yesterday", "unparsable_time"),
        ("0001-01-01", "time_out_of_range"),
        ("1969-12-31 23:59:59", "time_out_of_range"),
        ("9999-12-31 23:59:59", "future_time"),
        ("2026-11-30 12:00:01Z", "future_time"),
        ("2017-03-12 02:30:00", "nonexistent_time"),  # clocks went from 02:00 to 03:00
    ],
)
def test_a_time_that_cannot_be_is_a_fault(text: str, reason: str) -> None:
    result = moment(text)
    assert isinstance(result, Fault)
    assert result.reason == reason


@pytest.mark.parametrize(
    ("text", "format_", "at"),
    [
        ("30.10.2017 18:05", "%d.%m.%Y %H:%M", datetime(2017, 10, 30, 18, 5, tzinfo=UTC)),
        ("1509386700", "epoch_seconds", datetime(2017, 10, 30, 18, 5, tzinfo=UTC)),
        ("1509386700000", "epoch_milliseconds", datetime(2017, 10, 30, 18, 5, tzinfo=UTC)),
    ],
)
def test_a_format_says_how_a_time_is_written(text: str, format_: str, at: datetime) -> None:
    assert moment(text, format_=format_, source=LONDON, zone=LONDON) == Moment(at, "second", "2017-10-30")


def test_a_format_without_an_hour_tells_the_day_only() -> None:
    assert moment("01.07.2017", format_="%d.%m.%Y", source=LONDON, zone=LONDON) == Moment(
        datetime(2017, 6, 30, 23, 0, tzinfo=UTC), "day", "2017-07-01"
    )


@pytest.mark.parametrize(("text", "expected"), [("2", 2), ("2.0", 2), ("+3", 3), ("1e3", 1000)])
def test_a_quantity_is_a_whole_number_of_pieces(text: str, expected: int) -> None:
    assert read_quantity(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("two", "quantity_not_a_number"),
        ("1,5", "quantity_not_a_number"),
        ("nan", "quantity_not_a_number"),
        ("1_000", "quantity_not_a_number"),
        ("٣", "quantity_not_a_number"),
        ("1.5", "quantity_not_whole"),
        ("0", "quantity_out_of_range"),
        ("-1", "quantity_out_of_range"),
        ("1e30", "quantity_out_of_range"),
    ],
)
def test_what_is_no_count_of_pieces_is_a_fault(text: str, reason: str) -> None:
    result = read_quantity(text)
    assert isinstance(result, Fault)
    assert result.reason == reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("-0.01", "negative_amount"),
        ("−3", "amount_not_a_number"),  # a typographic minus
        ("NaN", "amount_not_a_number"),
        ("inf", "amount_not_a_number"),
        ("1e999", "amount_not_a_number"),
        ("1e300", "amount_out_of_range"),
        ("12,50", "amount_not_a_number"),
        ("$5", "amount_not_a_number"),
    ],
)
def test_what_is_no_money_is_a_fault(text: str, reason: str) -> None:
    result = read_money(text, name="amount")
    assert isinstance(result, Fault)
    assert result.reason == reason


def test_minus_zero_is_zero_so_that_equal_rows_have_equal_digests() -> None:
    assert str(read_money("-0.0", name="amount")) == "0.0"


@pytest.mark.parametrize("text", ["1e5", "007", "1.0", "a b", "ünïcode", "-"])
def test_an_id_stays_as_the_source_spells_it(text: str) -> None:
    assert read_id(text, name="item_id") == text


def test_an_id_with_a_line_break_or_of_endless_length_is_a_fault() -> None:
    assert read_id("a\nb", name="item_id") == Fault("control_characters", "expected item_id on one line, got 'a\\nb'")
    assert read_id("x" * 257, name="user_id") == Fault("user_id_too_long", "expected at most 256 characters, got 257")


def test_a_text_has_its_white_space_collapsed_and_a_limit() -> None:
    assert read_text("green\n\ttea  100 g", name="title") == "green tea 100 g"
    assert read_text("x" * 2001, name="title") == Fault("title_too_long", "expected at most 2,000 characters, got 2,001")


def test_a_date_may_carry_a_time_that_is_left_out() -> None:
    assert read_ds("2010-12-01 08:26:00", name="valid_from_ds") == "2010-12-01"
    assert isinstance(read_ds("2010-12-32", name="valid_from_ds"), Fault)
