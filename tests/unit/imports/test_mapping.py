"""Mappings: everything that is wrong with one is told at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from recgpt_ops.errors import ConfigError, UsageError
from recgpt_ops.imports.mapping import FieldRule, check_columns, load_mapping, parse_mapping
from recgpt_ops.imports.run import SOURCES
from recgpt_ops.tables import load_contract

OWN_SHOP = Path(__file__).parents[2] / "fixtures" / "own_shop"


def events(**changes: Any) -> dict[str, Any]:
    return {
        "source": "shop",
        "table": "events",
        "time_zone": "Europe/Berlin",
        "columns": {"user_id": "who", "action": "what", "event_at": "when", "item_id": "thing"},
    } | changes


def faults_of(raw: Any, table: str = "events") -> list[str]:
    faults: list[str] = []
    parse_mapping(raw, table, faults)
    return faults


def test_a_mapping_says_which_column_is_which() -> None:
    faults: list[str] = []
    mapping = parse_mapping(events(actions={"buy": "purchase", 1: "click"}), "events", faults)
    assert faults == []
    assert mapping is not None
    assert mapping.rule("user_id") == FieldRule("user_id", "who")
    assert mapping.actions == {"buy": "purchase", "1": "click"}
    assert (mapping.table, mapping.time_zone) == ("behavior_events", "Europe/Berlin")


def test_without_actions_the_contracts_own_names_are_expected() -> None:
    mapping = parse_mapping(events(), "events", [])
    assert mapping is not None
    assert mapping.actions["purchase"] == "purchase"


def test_all_faults_are_told_at_once_with_the_nearest_names() -> None:
    columns = {"user_id": "who", "acton": "what", "event_at": {"column": "when", "fromat": "%d"}, "amount": {"on_bad": "ignore"}}
    told = faults_of({"sorce": "shop", "table": "event", "time_zone": "Europe/Berln", "columns": columns, "actions": {"buy": "purchas"}})
    assert told == [
        "unknown key 'sorce'; did you mean 'source'?",
        "source is None; expected a short name such as own-shop",
        "table is 'event'; did you mean 'events'?",
        "time_zone is 'Europe/Berln'; did you mean 'Europe/Berlin'?",
        "actions.buy is 'purchas'; did you mean 'purchase'?",
        "columns.action is missing; behavior_events needs it",
        "columns.acton is no column that can be mapped; did you mean 'action'?",
        "columns.event_at.fromat is unknown; did you mean 'format'?",
        "columns.amount names neither a column nor a default; name one",
        "columns.amount.on_bad is 'ignore'; expected quarantine or drop",
    ]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"table": "items"}, "table is 'items', but the command imports 'events'; name the mapping of events, or import items"),
        ({"columns": {}}, "columns is {}; expected contract column: source column, for at least user_id, action, event_at"),
        ({"actions": {}}, "actions is {}; expected source value: contract value"),
        (
            {"columns": {"user_id": "a", "action": "b", "event_at": {"column": "c", "format": "yyyy-MM-dd"}}},
            "columns.event_at.format is 'yyyy-MM-dd', which does not tell year, month and day; expected a strptime pattern such as "
            "%d.%m.%Y %H:%M, or epoch_seconds or epoch_milliseconds",
        ),
        (
            {"columns": {"user_id": "a", "action": "b", "event_at": "c", "currency": {"default": "Euro"}}},
            "columns.currency.default: expected a currency such as USD, got 'Euro'",
        ),
        (
            {"columns": {"user_id": "a", "action": "b", "event_at": "c", "user_bucket": "d"}},
            "columns.user_bucket is no column that can be mapped; did you mean 'user_id'?",
        ),
    ],
)
def test_a_fault_says_what_was_expected(change: dict[str, Any], fault: str) -> None:
    assert faults_of(events(**change)) == [fault]


@pytest.mark.parametrize(
    ("format_", "told"),
    [
        ("%d.%m.%Q %Y", "'Q' is a bad directive"),
        ("%d.%m.%Y %", "stray %"),
        ("%d.%d.%Y", "the same part twice"),
        ("%m.%Y", "does not tell year, month and day"),
        ("%H:%M %d.%m.", "does not tell year, month and day"),
        ("%%Y-%%m-%%d", "does not tell year, month and day"),
        ("%Y-%m-%d %H:%M %Z", "%Z cannot be read, write %z"),
    ],
)
def test_a_format_that_could_read_no_row_or_a_wrong_day_is_told_at_once(format_: str, told: str) -> None:
    columns = {"user_id": "a", "action": "b", "event_at": {"column": "c", "format": format_}}
    (fault,) = faults_of(events(columns=columns))
    assert fault.startswith("columns.event_at.format is ")
    assert told in fault


@pytest.mark.parametrize("format_", ["%Y%j", "%G-W%V-%u", "%c", "%d %b %y %I:%M %p", "%Y-%m-%dT%H:%M:%S%z", "%d%%%m%%%Y", "epoch_seconds"])
def test_a_format_that_tells_a_day_is_fine(format_: str) -> None:
    assert faults_of(events(columns={"user_id": "a", "action": "b", "event_at": {"column": "c", "format": format_}})) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"table": ["events"]}, "table is ['events']; "),
        ({"time_zone": ["UTC"]}, "time_zone is ['UTC']; "),
        ({"time_zone": "localtime"}, "time_zone is 'localtime'; "),
        ({"actions": {"buy": ["purchase"]}}, "actions.buy is ['purchase']; "),
        ({"columns": {"currency": {"column": ["a"]}}}, "columns.currency.column is ['a']; expected one value"),
        ({"columns": {"currency": {"default": {"a": "b"}}}}, "columns.currency.default is {'a': 'b'}; expected one value"),
        (
            {"columns": {"currency": {"column": "a", "on_bad": ["drop"]}}},
            "columns.currency.on_bad is ['drop']; expected quarantine or drop",
        ),
        ({"columns": {"currency": {"column": "a", "map": {"x": ["EUR"]}}}}, "columns.currency.map.x is ['EUR']; expected one value"),
        (
            {"columns": {"currency": {"column": "a", "map": {"x": "eur"}}}},
            "columns.currency.map.x: expected a currency such as USD, got 'eur'",
        ),
        ({"columns": {"action": {"column": "a", "map": {"x": "teleport"}}}}, "columns.action.map.x: expected one of click, "),
    ],
)
def test_a_value_of_the_wrong_kind_is_told_and_never_a_stack_trace(change: dict[str, Any], fault: str) -> None:
    if "columns" in change:
        change = {"columns": events()["columns"] | change["columns"]}
    (told,) = faults_of(events(**change))
    assert told.startswith(fault)


@pytest.mark.parametrize("name", ["attributes.", "attributes.  ", "attributes.age\nhobby"])
def test_an_attribute_has_a_printable_name(name: str) -> None:
    columns = {"user_id": "a", "locale": {"default": "en-GB"}, "region": "b", name: "c"}
    (told,) = faults_of({"source": "shop", "table": "profiles", "time_zone": "UTC", "columns": columns}, "profiles")
    assert "is no column that can be mapped" in told


def test_the_letters_of_a_mapping_are_what_stands_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "profiles.yaml"
    path.write_text(
        "source: 2024-01\ntable: profiles\ntime_zone: UTC\ncolumns:\n  user_id: 007\n  locale: {default: en-GB}\n"
        "  region: {column: yes, map: {no: NO, 1_0: SE, 12:30: DK, null: FI}}\n"
    )
    mapping = load_mapping(path, "profiles")
    assert mapping.source == "2024-01"
    assert mapping.fields[0].source == "007"
    assert mapping.fields[2] == FieldRule("region", "yes", map={"no": "NO", "1_0": "SE", "12:30": "DK", "null": "FI"})


def test_a_key_that_stands_twice_is_told_with_its_line_among_the_other_faults(tmp_path: Path) -> None:
    path = tmp_path / "events.yaml"
    path.write_text(
        "source: shop\ntable: events\ntime_zone: Mars\nsource: mall\n"
        "columns: {user_id: a, action: b, event_at: c}\nactions:\n  buy: purchase\n  buy: cart\n"
    )
    with pytest.raises(ConfigError) as told:
        load_mapping(path, "events")
    assert told.value.faults[:2] == [
        "the key 'source' stands twice in one place (line 4); leave one out",
        "the key 'buy' stands twice in one place (line 8); leave one out",
    ]
    assert told.value.faults[2].startswith("time_zone is 'Mars'")
    assert len(told.value.faults) == 3


@pytest.mark.parametrize("raw", [None, [], "text", 7])
def test_what_is_no_mapping_at_all_is_told(raw: Any) -> None:
    assert faults_of(raw) == [f"expected the keys source, table, time_zone, columns, actions, got {type(raw).__name__}"]


def test_a_default_action_is_the_contracts_own_word() -> None:
    columns = {"user_id": "who", "event_at": "when", "item_id": "thing", "action": {"default": "purchase"}}
    assert faults_of(events(columns=columns, actions={"buy": "purchase"})) == []


def test_a_missing_or_broken_mapping_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the mapping cannot be read: No such file"):
        load_mapping(tmp_path / "no.yaml", "events")
    broken = tmp_path / "broken.yaml"
    broken.write_text("columns: {a: [")
    with pytest.raises(ConfigError, match="is no YAML"):
        load_mapping(broken, "events")


def test_columns_that_a_file_lacks_are_all_told_with_the_nearest() -> None:
    mapping = parse_mapping(events(), "events", [])
    assert mapping is not None
    with pytest.raises(ConfigError) as told:
        check_columns(mapping, ["who", "wat", "when", "thing#2", "thing"], "shop.csv")
    assert told.value.faults == [
        "columns.action: the file has no column 'what'; did you mean 'wat'?",
        "columns.item_id: the file has more than one column 'thing'; rename one",
    ]
    with pytest.raises(ConfigError, match=r"the header has ';' in it: write the file with commas"):
        check_columns(mapping, ["who;what;when;thing"], "shop.csv")


def test_a_mapping_has_one_digest_however_its_yaml_is_written() -> None:
    swapped = {key: events()[key] for key in reversed(list(events()))}
    first, second = parse_mapping(events(), "events", []), parse_mapping(swapped, "events", [])
    changed = parse_mapping(events(time_zone="UTC"), "events", [])
    assert first is not None
    assert second is not None
    assert changed is not None
    assert first.digest == second.digest != changed.digest


@pytest.mark.parametrize("table", ["events", "items", "profiles"])
def test_the_sample_mappings_are_right(table: str) -> None:
    assert load_mapping(OWN_SHOP / f"{table}.yaml", table).source == "own-shop"
    assert yaml.safe_load((OWN_SHOP / f"{table}.yaml").read_text())["table"] == table


def test_every_known_source_maps_columns_of_its_contracts() -> None:
    assert sorted(SOURCES) == ["complete-journey", "online-retail", "open-ecommerce"]
    for source in SOURCES.values():
        assert [feed.mapping.table for feed in source.feeds] == ["items", "user_profiles", "behavior_events"]
        for feed in source.feeds:
            names = {rule.column for rule in feed.mapping.fields if not rule.column.startswith("attributes.")}
            assert names <= set(load_contract(feed.mapping.table).column_names)
