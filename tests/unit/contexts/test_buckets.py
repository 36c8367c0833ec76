from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recgpt_ops.contexts.buckets import STATE_TABLES, bucket_span, calendar_buckets


@pytest.mark.parametrize(
    ("ds", "days", "months", "last_year"),
    [
        ("2017-10-30", ("2017-09-01", "2017-10-30"), ("2016-01-01", "2017-08-31"), "2015-12-31"),
        ("2017-01-15", ("2016-12-01", "2017-01-15"), ("2016-01-01", "2016-11-30"), "2015-12-31"),
        ("2016-03-01", ("2016-02-01", "2016-03-01"), ("2015-01-01", "2016-01-31"), "2014-12-31"),
    ],
)
def test_days_are_two_calendar_months_and_months_two_calendar_years(ds, days, months, last_year):
    assert bucket_span("behavior_days", ds) == days
    assert bucket_span("behavior_months", ds) == months
    assert bucket_span("behavior_years", ds) == (None, last_year)


def test_a_night_at_the_end_of_october_has_60_days_20_months_and_the_last_whole_year():
    assert len(calendar_buckets("behavior_days", "2017-10-30")) == 30 + 30
    assert calendar_buckets("behavior_months", "2017-10-30")[::19] == ["2016-01", "2017-08"]
    assert len(calendar_buckets("behavior_months", "2017-10-30")) == 12 + 8
    assert calendar_buckets("behavior_years", "2017-10-30") == ["2015"]


@given(st.dates(date(1990, 1, 1), date(2090, 1, 1)))
def test_the_spans_of_every_night_touch_and_never_overlap(day):
    years, months, days = (bucket_span(table, day.isoformat()) for table in reversed(STATE_TABLES))
    assert date.fromisoformat(months.first_ds) - date.fromisoformat(years.last_ds) == date.resolution
    assert date.fromisoformat(days.first_ds) - date.fromisoformat(months.last_ds) == date.resolution
    assert days.last_ds == day.isoformat()
    assert 28 <= len(calendar_buckets("behavior_days", day.isoformat())) <= 62
