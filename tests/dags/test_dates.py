from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from dags.common.dates import business_date, resolve_ds
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
