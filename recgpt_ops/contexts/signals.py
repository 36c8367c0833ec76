"""What the surroundings say on the day people will see the result: season, holidays ahead, weather. Plain functions.

    region US-NY, serving day 2017-10-31   ->   Season: autumn
                                                Holiday: Halloween (today)
                                                Holiday: Veterans Day (in 11 days)

Weather is told only by a configured connector. What sells more than usual is counted in trends.py.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date
from functools import cache
from typing import NamedTuple

import holidays

from recgpt_ops.contexts.words import clean_text
from recgpt_ops.errors import ConfigError
from recgpt_ops.ids import row_id
from recgpt_ops.prompts import language_of

SITUATION_DAYS = 14  # a situation names the next holiday within this many days
SEASONS = ("winter", "spring", "summer", "autumn")
# Below the equator the meteorological seasons are half a year apart; near it a year has no four seasons, so none is told.
SOUTHERN = frozenset(["AR", "AU", "BO", "BW", "CL", "LS", "MG", "MZ", "NA", "NZ", "PY", "SZ", "UY", "ZA", "ZM", "ZW"])
TROPICAL = frozenset([
    "BN", "BR", "CO", "CR", "DO", "EC", "GH", "GT", "HN", "ID", "JM", "KE", "KH", "LA", "LK",
    "MY", "NG", "NI", "PA", "PE", "PH", "PR", "SG", "SV", "TH", "TZ", "UG", "VE", "VN",
])  # fmt: skip
CHINESE_SEASONS = {"winter": "冬季", "spring": "春季", "summer": "夏季", "autumn": "秋季"}
CHINESE_HOLIDAYS = {
    "New Year's Day": "元旦",
    "New Year's Eve": "跨年夜",
    "Martin Luther King Jr. Day": "马丁·路德·金纪念日",
    "Groundhog Day": "土拨鼠日",
    "Valentine's Day": "情人节",
    "Washington's Birthday": "总统日",
    "Saint Patrick's Day": "圣帕特里克节",
    "Good Friday": "耶稣受难日",
    "Easter Sunday": "复活节",
    "Easter Monday": "复活节星期一",
    "Mother's Day": "母亲节",
    "Memorial Day": "阵亡将士纪念日",
    "Father's Day": "父亲节",
    "Juneteenth National Independence Day": "六月节",
    "Independence Day": "独立日",
    "Labor Day": "劳动节",
    "Columbus Day": "哥伦布日",
    "Halloween": "万圣节",
    "Veterans Day": "退伍军人节",
    "Thanksgiving Day": "感恩节",
    "Day After Thanksgiving": "感恩节次日",
    "Christmas Eve": "平安夜",
    "Christmas Day": "圣诞节",
    "Boxing Day": "节礼日",
}

ENGLISHES = ("en_US", "en_GB", "en_AU", "en_CA")

Weather = tuple[str, str]  # weather class (`rain`) and the line that tells it, in the locale's language
WeatherConnector = Callable[[str, str, str], Weather | None]  # region, locale, serving day


class Signal(NamedTuple):
    """One signal of a region. `name` is the canonical (English) name; `text` the line of a context."""

    kind: str
    name: str
    text: str
    days_to_go: int | None = None
    value: float | None = None


def season_of(region: str, serve_ds: str) -> str | None:
    """The meteorological season (December to February is winter in the north); None near the equator."""
    country = region.split("-")[0]
    if country in TROPICAL:
        return None
    quarter = date.fromisoformat(serve_ds).month % 12 // 3
    return SEASONS[(quarter + 2) % 4 if country in SOUTHERN else quarter]


class Holiday(NamedTuple):
    """A holiday ahead: its English name, its name in Chinese, and the days to go from the serving day."""

    name: str
    chinese_name: str
    days_to_go: int


def holidays_ahead(region: str, serve_ds: str, *, days: int) -> list[Holiday]:
    """The holidays from the serving day on, nearest first, ties by name.

    Public holidays, and widely kept days (Halloween) where the `holidays` package lists them; a day off in place of a holiday
    is left out. Of a holiday over several days only the nearest is told. A country that the package does not know has none.
    """
    start = date.fromisoformat(serve_ds)
    ahead: dict[str, Holiday] = {}
    chinese = calendar_of(region, start.year, ("zh_CN",))
    for day, joined in sorted(calendar_of(region, start.year, ENGLISHES).items()):
        to_go = (day - start).days
        if not 0 <= to_go <= days:
            continue
        names = joined.split("; ")
        native = chinese.get(day, "").split("; ")
        for index, name in enumerate(names):
            if not name.startswith("Day off"):
                spare = native[index] if len(native) == len(names) and native[index] else name
                ahead.setdefault(name, Holiday(name, CHINESE_HOLIDAYS.get(name, spare), to_go))
    return sorted(ahead.values(), key=lambda holiday: (holiday.days_to_go, holiday.name))


@cache
def calendar_of(region: str, year: int, languages: tuple[str, ...]) -> dict[date, str]:
    """Day -> names (joined by `; `) of a year and the next, in the first language that the package has for the country.

    Where it has none of them: the native names for English, nothing for another language.
    """
    country, _, subdivision = region.partition("-")
    known = holidays.list_supported_countries()
    if country not in known:
        return {}
    offered = holidays.country_holidays(country)
    language = next((language for language in languages if language in offered.supported_languages), None)
    if language is None and languages is not ENGLISHES:
        return {}
    return dict(
        holidays.country_holidays(
            country,
            subdiv=subdivision if subdivision in known[country] else None,
            years=(year, year + 1),
            observed=False,
            language=language,
            categories=tuple(category for category in ("public", "unofficial") if category in offered.supported_categories),
        )
    )


def season_text(season: str, locale: str) -> str:
    """The season as a line."""
    return f"季节：{CHINESE_SEASONS[season]}" if language_of(locale) == "zh" else f"Season: {season}"


def holiday_text(holiday: Holiday, locale: str) -> str:
    """A holiday and how far it is, as a line."""
    to_go = holiday.days_to_go
    if language_of(locale) == "zh":
        chinese_when = {0: "今天", 1: "明天"}.get(to_go, f"{to_go}天后")
        return f"节日：{holiday.chinese_name}（{chinese_when}）"
    when = {0: "today", 1: "tomorrow"}.get(to_go, f"in {to_go} days")
    return f"Holiday: {holiday.name} ({when})"


def trend_text(name: str, times_usual: float, locale: str) -> str:
    """An item type that sells more than usual, as a line."""
    if language_of(locale) == "zh":
        return f"近期热销：{name}（是前四周的{times_usual:.1f}倍）"
    return f"Selling more than usual: {name} ({times_usual:.1f} times the rate of the four weeks before)"


def place_signals(
    region: str, locale: str, serve_ds: str, *, holiday_days: int, weather: Weather | None, trends: Sequence[tuple[str, float]]
) -> list[dict[str, object]]:
    """The signals of one place as columns of environment_signals, ranked within their kind. `trends`: (item type, value)."""
    ranks: Counter[str] = Counter()
    rows: list[dict[str, object]] = []
    for signal in [
        *region_signals(region, locale, serve_ds, holiday_days=holiday_days, weather=weather),
        *[Signal("trend", clean_text(name), trend_text(clean_text(name), value, locale), value=value) for name, value in trends],
    ]:
        ranks[signal.kind] += 1
        rows.append({**signal._asdict(), "region": region, "locale": locale, "rank": ranks[signal.kind]})
    return rows


def region_signals(region: str, locale: str, serve_ds: str, *, holiday_days: int, weather: Weather | None) -> list[Signal]:
    """Season, holidays and weather of one region."""
    season = season_of(region, serve_ds)
    told = [Signal("season", season, season_text(season, locale))] if season else []
    for holiday in holidays_ahead(region, serve_ds, days=holiday_days):
        told.append(Signal("holiday", holiday.name, holiday_text(holiday, locale), days_to_go=holiday.days_to_go))
    if weather is not None:
        told.append(Signal("weather", weather[0], weather[1]))
    return told


class Situation(NamedTuple):
    """What a shared text may depend on besides place and language; None where a part is not told."""

    season: str | None
    holiday: Holiday | None
    weather: str | None


def situation_of(region: str, serve_ds: str, *, weather: str | None) -> Situation:
    """Season, next holiday within 14 days, weather class."""
    ahead = holidays_ahead(region, serve_ds, days=SITUATION_DAYS)
    return Situation(season_of(region, serve_ds), ahead[0] if ahead else None, weather)


def situation_id(locale: str, region: str, serve_ds: str, *, weather: str | None) -> str:
    """Hash of what a shared text may depend on: locale, region, season, next holiday within 14 days, weather class."""
    season, holiday, _ = situation_of(region, serve_ds, weather=weather)
    return row_id((locale, region, season, holiday.name if holiday else None, weather))


def situation_text(situation: Situation, locale: str) -> str:
    """A situation in words, without days to go, so that it reads the same as long as its id is the same.

    >>> situation_text(Situation("autumn", Holiday("Halloween", "万圣节", 1), None), "en-US")
    'autumn, Halloween'
    """
    season, holiday, weather = situation
    if language_of(locale) == "zh":
        parts = [CHINESE_SEASONS[season] if season else None, holiday.chinese_name if holiday else None, weather]
        return "，".join(part for part in parts if part) or "平日"
    return ", ".join(part for part in (season, holiday.name if holiday else None, weather) if part) or "any day"


def load_weather(connector: str | None) -> WeatherConnector:
    """The configured connector, `module:function`; without one, nothing is said about weather."""
    if connector is None:
        return lambda region, locale, serve_ds: None
    module_name, _, function_name = connector.partition(":")
    try:
        found: WeatherConnector = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError("signals.weather_connector", [f"{connector!r} cannot be loaded ({error}); expected module:function"]) from error
    return found
