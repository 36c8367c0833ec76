from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pendulum
import pytest

from dags.common.dates import RULES_OF, business_date, due_hour, resolve_ds
from recgpt_ops.errors import UsageError

NEW_YORK = "America/New_York"
EASTERN = ZoneInfo(NEW_YORK)


@pytest.mark.parametrize(
    ("param", "key", "logical_date", "expected"),
    [
        ("2026-03-01", None, None, "2026-03-01"),  # by hand
        (None, "2026-03-01", None, "2026-03-01"),  # schedule, asset, backfill, console with a key
        ("2026-03-01", "2026-03-01", None, "2026-03-01"),  # both, and they agree
        (None, None, datetime(2026, 3, 1, tzinfo=UTC), "2026-03-01"),  # the console's date picker
        (None, None, datetime(2026, 3, 1, tzinfo=EASTERN), "2026-03-01"),  # midnight of the shop, 05:00 UTC
        (None, None, datetime(2026, 7, 1, 4, tzinfo=UTC), "2026-07-01"),  # midnight in New York in summer
        ("2026-03-01", None, datetime(2026, 3, 9, 14, 30, tzinfo=UTC), "2026-03-01"),  # the moment of the click says nothing
    ],
)
def test_case_083_a_run_works_on_the_date_that_was_stated(param, key, logical_date, expected):
    assert resolve_ds(param=param, partition_key=key, logical_date=logical_date, zone=NEW_YORK) == expected


@pytest.mark.parametrize(
    ("param", "key", "logical_date", "told"),
    [
        ("2026-03-01", "2026-03-02", None, "two business dates"),
        (None, None, None, "no business date"),
        (None, None, datetime(2026, 3, 1, 2, 30, tzinfo=UTC), "midnight neither"),
        (None, None, datetime(2026, 3, 1) + timedelta(hours=0), "no time zone"),
        (None, "bad", None, "partition key is 'bad'"),  # Airflow takes any key on an asset-started DAG
        ("01/03/2026", None, None, "parameter ds is '01/03/2026'"),
        ("20260301", None, None, "write 2026-03-01"),
    ],
)
def test_case_083_anything_else_is_an_error_that_asks_for_ds(param, key, logical_date, told):
    with pytest.raises(UsageError, match=told):
        resolve_ds(param=param, partition_key=key, logical_date=logical_date, zone=NEW_YORK)


@pytest.mark.parametrize("hour", range(24))
def test_case_084_a_logical_date_never_means_the_day_before(hour):
    moment = datetime(2026, 3, 1, hour, tzinfo=UTC)
    try:
        ds = resolve_ds(param=None, partition_key=None, logical_date=moment, zone="Asia/Tokyo")
    except UsageError:
        assert hour not in (0, 15)
    else:
        assert (hour, ds) in {(0, "2026-03-01"), (15, "2026-03-02")}  # 15:00 UTC is midnight of the 2nd in Tokyo


def test_the_context_of_a_task_is_read_as_airflow_fills_it():
    context = {"params": {"ds": None}, "partition_key": "2017-10-30", "logical_date": None}
    assert business_date(context, NEW_YORK) == "2017-10-30"
    assert business_date({"params": {"ds": "2017-10-30"}}, NEW_YORK) == "2017-10-30"


def keys_of_the_clock(zone: str, first: str, last: str) -> list[str]:
    """The business dates of the runs that the clock starts on the mornings of these days, with the head DAG's own timetable."""
    from airflow.timetables.base import TimeRestriction
    from airflow.timetables.trigger import CronPartitionTimetable

    timetable = CronPartitionTimetable(f"0 {due_hour(zone)} * * *", timezone=zone, run_offset=-1, key_format="%Y-%m-%d")
    start, end = pendulum.parse(first, tz=zone), pendulum.parse(last, tz=zone).end_of("day")
    keys, run = [], timetable.next_dagrun_info_v2(last_dagrun_info=None, restriction=TimeRestriction(start, end, True))
    while run is not None:
        keys.append(run.partition_key)
        run = timetable.next_dagrun_info_v2(last_dagrun_info=run, restriction=TimeRestriction(start, end, True))
    return keys


@pytest.mark.parametrize(
    ("zone", "spring", "autumn"),
    [
        ("America/New_York", "2026-03-08", "2026-11-01"),  # 2:00 does not exist; 1:00 comes twice
        ("Africa/Cairo", "2026-04-24", "2026-10-29"),  # midnight itself does not exist; comes twice
        ("America/Havana", "2026-03-08", "2026-11-01"),
        ("Asia/Beirut", "2026-03-29", "2026-10-25"),
        ("America/Santiago", "2026-09-06", "2026-04-05"),
        ("Europe/Berlin", "2026-03-29", "2026-10-25"),
        ("Australia/Lord_Howe", "2026-10-04", "2026-04-05"),  # half an hour
        ("Asia/Shanghai", "2026-03-08", "2026-11-01"),  # never
    ],
)
def test_every_day_has_one_night_when_the_clocks_change(zone, spring, autumn):
    for change in (spring, autumn):
        days = [date.fromisoformat(change) + timedelta(days=distance) for distance in range(-3, 4)]
        expected = [(day - timedelta(days=1)).isoformat() for day in days]
        assert keys_of_the_clock(zone, str(days[0]), str(days[-1])) == expected


def test_a_night_is_due_at_an_hour_that_no_zone_skips_or_repeats():
    for zone in sorted(available_timezones()):
        moment = datetime(RULES_OF.start, 1, 1, due_hour(zone), tzinfo=ZoneInfo(zone))
        for day in range(366):
            due = moment + timedelta(days=day)
            assert due.utcoffset() == due.replace(fold=1).utcoffset(), (zone, due)
