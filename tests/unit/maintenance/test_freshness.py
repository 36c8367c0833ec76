from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from recgpt_ops.maintenance.freshness import Freshness, expected_ds, newest_days
from recgpt_ops.settings import Settings, load_settings


def nights(*, is_scheduled: bool, zone: str = "America/New_York", deadline_hours: float = 2) -> Settings:
    settings = load_settings({})
    night = replace(settings.night, is_scheduled=is_scheduled, cron_time_zone=zone, deadline_hours=deadline_hours)
    return replace(settings, night=night)


@pytest.mark.parametrize(
    ("zone", "now", "expected"),
    [
        ("America/New_York", "2026-11-30T17:00", "2026-11-29"),  # noon
        ("America/New_York", "2026-11-30T06:59", "2026-11-28"),  # 01:59, the night has until 02:00
        ("America/New_York", "2026-11-30T07:00", "2026-11-29"),
        ("Asia/Shanghai", "2026-11-30T17:00", "2026-11-29"),  # 01:00 on 1 December: the night of the 30th has an hour left
        ("Asia/Shanghai", "2026-11-30T18:00", "2026-11-30"),
    ],
)
def test_a_night_is_expected_some_hours_after_its_day_ended(zone, now, expected):
    moment = datetime.fromisoformat(now).replace(tzinfo=UTC)
    assert expected_ds(nights(is_scheduled=True, zone=zone), moment) == expected


def test_nothing_is_expected_where_nights_are_only_asked_for():
    assert expected_ds(nights(is_scheduled=False), datetime(2026, 11, 30, tzinfo=UTC)) is None
    assert not Freshness("v2", None, None).is_late


def test_case_087_a_night_that_was_never_run_is_told_with_the_first_missing_day():
    late = Freshness("v2", "2026-11-27", "2026-11-29")
    assert late.is_late
    assert str(late).startswith("LATE  v2: newest night 2026-11-27, expected 2026-11-29; next: recgpt status --ds 2026-11-28")
    assert not Freshness("v2", "2026-11-29", "2026-11-29").is_late
    assert Freshness("v2", None, "2026-11-29").is_late


def test_the_newest_night_of_a_recipe_is_that_of_its_place():
    visible = dict.fromkeys([("2026-11-28", "default", "v2"), ("2026-11-27", "default", "v2"), ("2026-11-29", "app", "v2")])
    assert newest_days(visible, scenario="default") == {"v2": "2026-11-28"}
