from __future__ import annotations

import pytest

from recgpt_ops.contexts.places import signal_lines, weather_class
from recgpt_ops.contexts.signals import load_weather, place_signals, season_of, situation_id
from recgpt_ops.errors import ConfigError


def lines(region, locale, serve_ds, *, days=14, weather=None, trends=()):
    told = place_signals(region, locale, serve_ds, holiday_days=days, weather=weather, trends=trends)
    return [row["text"] for row in told]


def test_halloween_is_today_for_the_night_before_it():
    assert lines("US", "en-US", "2017-10-31") == ["Season: autumn", "Holiday: Halloween (today)", "Holiday: Veterans Day (in 11 days)"]


def test_the_day_before_a_holiday_it_is_tomorrow_and_after_it_nothing():
    assert "Holiday: Halloween (tomorrow)" in lines("US", "en-US", "2017-10-30")
    assert not any("Halloween" in line for line in lines("US", "en-US", "2017-11-01"))


def test_a_chinese_user_reads_chinese_at_home_and_abroad():
    assert lines("CN", "zh-CN", "2021-02-10") == ["季节：冬季", "节日：春节（2天后）"]
    assert lines("US-NY", "zh-CN", "2017-10-31", days=0) == ["季节：秋季", "节日：万圣节（今天）"]


def test_a_region_of_a_country_has_its_own_holidays():
    assert "Holiday: Boxing Day (tomorrow)" in lines("GB-ENG", "en-GB", "2011-12-25")
    assert lines("XX", "en-US", "2017-10-31") == ["Season: autumn"]


@pytest.mark.parametrize(
    ("region", "serve_ds", "season"),
    [
        ("US", "2017-11-30", "autumn"),
        ("US", "2017-12-01", "winter"),
        ("AU-NSW", "2017-12-01", "summer"),
        ("AU", "2017-09-01", "spring"),
        ("SG", "2017-12-01", None),
    ],
)
def test_seasons_begin_on_the_first_of_a_month_and_turn_around_below_the_equator(region, serve_ds, season):
    assert season_of(region, serve_ds) == season


def test_trends_and_weather_stand_after_season_and_holidays_ranked_within_their_kind():
    told = place_signals(
        "US", "en-US", "2017-10-31", holiday_days=0, weather=("rain", "Weather: rain"), trends=[("Candy\nbags", 2.345), ("Masks", 1.5)]
    )
    assert [(row["kind"], row["rank"]) for row in told] == [("season", 1), ("holiday", 1), ("weather", 1), ("trend", 1), ("trend", 2)]
    assert told[3]["text"] == "Selling more than usual: Candy bags (2.3 times the rate of the four weeks before)"
    rows = list(reversed(told))
    assert signal_lines(rows, ("US", "en-US")) == [row["text"] for row in told]
    assert signal_lines(rows, ("US", "es-US")) == []
    assert weather_class(rows, ("US", "en-US")) == "rain"


def test_a_situation_changes_with_place_season_next_holiday_and_weather_but_not_with_the_days_to_go():
    base = situation_id("en-US", "US", "2017-10-30", weather=None)
    assert situation_id("en-US", "US", "2017-10-31", weather=None) == base
    others = [
        ("en-GB", "US", "2017-10-30", None),
        ("en-US", "US-NY", "2017-10-30", None),
        ("en-US", "US", "2017-11-01", None),
        ("en-US", "US", "2017-10-30", "rain"),
    ]
    ids = {situation_id(locale, region, ds, weather=weather) for locale, region, ds, weather in others}
    assert len(ids | {base}) == 5


def test_without_a_connector_nothing_is_said_about_weather_and_a_wrong_one_is_told():
    assert load_weather(None)("US", "en-US", "2017-10-31") is None
    with pytest.raises(ConfigError, match=r"no_such_module.*expected module:function"):
        load_weather("no_such_module:now")
