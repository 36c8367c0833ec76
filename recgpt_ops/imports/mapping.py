"""Mappings: which column of somebody's file becomes which column of a feed, read from YAML with all its errors at once.

    source: own-shop
    table: events
    time_zone: Europe/Berlin          # local times are read in it, and business days are its days
    columns:
      user_id: customer
      event_at: {column: when, format: "%d.%m.%Y %H:%M"}
      action: {column: kind, on_bad: drop}
      currency: {default: EUR}
    actions: {buy: purchase, view: detail_view}

The sources that come with the project use the same class, so that one path reads all.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo, available_timezones

import yaml

from recgpt_ops.errors import ConfigError, UsageError
from recgpt_ops.imports.values import EPOCH_FORMATS, Fault, Reader, column_reader
from recgpt_ops.tables import load_contract

TABLES = {"events": "behavior_events", "items": "items", "profiles": "user_profiles"}
ACTIONS: tuple[str, ...] = next(
    tuple(check.arguments["values"])  # type: ignore[arg-type]  # a YAML list of strings, checked by the contract's own tests
    for check in load_contract("behavior_events").checks
    if check.columns == ("action",)
)
REQUIRED = {
    "behavior_events": ("user_id", "action", "event_at"),
    "items": ("item_id", "title", "locale"),
    "user_profiles": ("user_id", "locale", "region"),
}
OPTIONAL = {
    "behavior_events": ("event_id", "item_id", "query", "campaign_id", "quantity", "amount", "currency", "arrived_ds", "locale"),
    "items": ("category", "item_type", "brand", "price", "currency", "valid_from_ds", "valid_to_ds"),
    "user_profiles": ("valid_from_ds", "valid_to_ds"),
}
ATTRIBUTE = "attributes."  # a profile's attribute `age` is mapped as `attributes.age`
TOP_KEYS = ("source", "table", "time_zone", "columns", "actions")
NO_PLACES = {"localtime", "Factory"}  # names in the time zone database that mean another zone on another machine, or none
COLUMN_KEYS = ("column", "format", "map", "default", "on_bad")
PLAIN_TAGS = ("tag:yaml.org,2002:null", "tag:yaml.org,2002:merge")


class Letters(yaml.SafeLoader):
    """YAML in which a scalar is the letters that stand there: `NO` is Norway, `007` no seven, `12:30` a time. Nothing is still None.

    `repeated` tells the keys that stand twice in one place, of which YAML would take the last in silence.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.repeated: list[str] = []

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The same mapping, its repeated keys noted."""
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    self.repeated.append(f"the key {key.value!r} stands twice in one place (line {key.start_mark.line + 1}); leave one out")
                seen.add(key.value)
        return super().construct_mapping(node, deep)


Letters.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if tag in PLAIN_TAGS]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


@dataclass(frozen=True)
class FieldRule:
    """How one contract column is read. `source` None: always the default, which also stands for an empty value. `map` comes first."""

    column: str
    source: str | None
    format: str | None = None
    map: Mapping[str, str] = field(default_factory=dict)
    default: str | None = None
    on_bad: Literal["quarantine", "drop"] = "quarantine"
    tidy: Callable[[str], str] | None = None  # of the sources that come with the project: words a reader of the text would use


@dataclass(frozen=True)
class ImportMapping:
    """How one table is read from one kind of file. `source_zone` is the zone of times without offset, `time_zone` the business zone."""

    source: str
    table: str
    time_zone: str
    source_zone: str
    fields: tuple[FieldRule, ...]
    actions: Mapping[str, str]

    @property
    def locale(self) -> str | None:
        """The locale that holds for all rows; None when it is told row by row or not at all."""
        return next((rule.default for rule in self.fields if rule.column == "locale"), None)

    @property
    def digest(self) -> str:
        """sha256 of the mapping, the same for any spelling of its YAML."""
        rules = sorted(
            (r.column, r.source or "", r.format or "", sorted(r.map.items()), r.default or "", r.on_bad, getattr(r.tidy, "__name__", ""))
            for r in self.fields
        )
        told = [self.source, self.table, self.time_zone, self.source_zone, rules, sorted(self.actions.items())]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()

    def rule(self, column: str) -> FieldRule | None:
        """The rule of a contract column, if it is mapped."""
        return next((rule for rule in self.fields if rule.column == column), None)


def nearest(name: object, names: Sequence[str]) -> str:
    """The end of a sentence about an unknown name: the nearest one, or all there are."""
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"


def load_mapping(path: Path, table: str) -> ImportMapping:
    """The mapping in a YAML file for `table` (events, items or profiles); ConfigError tells every fault."""
    try:
        loader = Letters(path.read_text(encoding="utf-8"))
        raw = loader.get_single_data()
    except OSError as error:
        raise UsageError(f"{path}: the mapping cannot be read: {error.strerror}; check the path") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(path.name, [f"is no YAML: {' '.join(str(error).split())}"]) from error
    faults = loader.repeated
    mapping = parse_mapping(raw, table, faults)
    if faults or mapping is None:
        raise ConfigError(path.name, faults)
    return mapping


def parse_mapping(raw: Any, table: str, faults: list[str]) -> ImportMapping | None:
    """A mapping from parsed YAML; None and entries in `faults` when it is wrong."""
    if not isinstance(raw, dict):
        faults.append(f"expected the keys {', '.join(TOP_KEYS)}, got {type(raw).__name__}")
        return None
    faults += [f"unknown key {key!r}; {nearest(key, TOP_KEYS)}" for key in raw if key not in TOP_KEYS]
    source = raw.get("source")
    if not isinstance(source, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", source):
        faults.append(f"source is {source!r}; expected a short name such as own-shop")
    named = raw.get("table")
    if not isinstance(named, str) or named not in TABLES:
        faults.append(f"table is {named!r}; {nearest(named, list(TABLES))}")
    elif named != table:
        faults.append(f"table is {named!r}, but the command imports {table!r}; name the mapping of {table}, or import {named}")
    zone = raw.get("time_zone")
    if not isinstance(zone, str) or zone not in available_timezones() - NO_PLACES:
        faults.append(
            f"time_zone is {zone!r}; {nearest(zone, sorted(available_timezones())) if zone else 'expected a name such as Europe/Berlin'}"
        )
    contract = TABLES.get(table, "behavior_events")
    actions = parse_actions(raw.get("actions"), contract, faults)
    columns = raw.get("columns")
    if not isinstance(columns, dict) or not columns:
        faults.append(f"columns is {columns!r}; expected contract column: source column, for at least {', '.join(REQUIRED[contract])}")
        return None
    known = REQUIRED[contract] + OPTIONAL[contract]
    faults += [f"columns.{name} is missing; {contract} needs it" for name in REQUIRED[contract] if name not in columns]
    rules = []
    for name, spec in columns.items():
        if str(name) not in known and not (
            contract == "user_profiles"
            and str(name).startswith(ATTRIBUTE)
            and str(name).removeprefix(ATTRIBUTE).strip()
            and str(name).isprintable()
        ):
            more = known + ((f"{ATTRIBUTE}<name>",) if contract == "user_profiles" else ())
            faults.append(f"columns.{name} is no column that can be mapped; {nearest(name, more)}")
        elif (rule := parse_rule(str(name), spec, faults)) is not None:
            rules.append(rule)
    if faults:
        return None
    mapping = ImportMapping(str(source), contract, str(zone), str(zone), tuple(rules), actions)
    for rule in rules:
        faults += constant_faults(mapping, rule)
    return mapping


def parse_actions(raw: Any, contract: str, faults: list[str]) -> dict[str, str]:
    """The action names of the source, translated; without any, the contract's own names are expected in the file."""
    if raw is None:
        return {action: action for action in ACTIONS}
    if contract != "behavior_events":
        faults.append("actions only mean something for events; leave the key out")
        return {}
    if not isinstance(raw, dict) or not raw:
        faults.append(f"actions is {raw!r}; expected source value: contract value")
        return {}
    faults += [f"actions.{key} is {value!r}; {nearest(value, ACTIONS)}" for key, value in raw.items() if value not in ACTIONS]
    return {plain(key): str(value) for key, value in raw.items()}


def plain(value: Any) -> str:
    """A YAML scalar as the text that stands in a file. A key that is `null` means these letters."""
    return "null" if value is None else str(value)


def parse_rule(name: str, spec: Any, faults: list[str]) -> FieldRule | None:
    """How one contract column is read."""
    if isinstance(spec, str | int | float) and not isinstance(spec, bool):
        return FieldRule(name, str(spec))
    where = f"columns.{name}"
    if not isinstance(spec, dict):
        faults.append(f"{where} is {spec!r}; expected a source column, or {{{', '.join(COLUMN_KEYS)}}}")
        return None
    before = len(faults)
    faults += [f"{where}.{key} is unknown; {nearest(key, COLUMN_KEYS)}" for key in spec if key not in COLUMN_KEYS]
    source, default, format_, translate = spec.get("column"), spec.get("default"), spec.get("format"), spec.get("map") or {}
    if source is None and default is None:
        faults.append(f"{where} names neither a column nor a default; name one")
    faults += [
        f"{where}.{key} is {spec[key]!r}; expected one value"
        for key in ("column", "format", "default")
        if isinstance(spec.get(key), list | dict)
    ]
    if spec.get("on_bad", "quarantine") not in ("quarantine", "drop"):
        faults.append(f"{where}.on_bad is {spec['on_bad']!r}; expected quarantine or drop")
    if not isinstance(translate, dict):
        faults.append(f"{where}.map is {translate!r}; expected source value: value")
    else:
        faults += [
            f"{where}.map.{key} is {v!r}; expected one value" for key, v in translate.items() if v is None or isinstance(v, list | dict)
        ]
    if format_ is not None:
        faults += [f"{where}.{fault}" for fault in format_faults(name, str(format_))]
    if len(faults) > before:
        return None
    return FieldRule(
        name,
        None if source is None else str(source),
        None if format_ is None else str(format_),
        {plain(key): plain(value) for key, value in translate.items()},
        None if default is None else plain(default),
        spec.get("on_bad", "quarantine"),
    )


def format_faults(name: str, format_: str) -> list[str]:
    """What is wrong with a time format; found now, because it would put every row into quarantine, or under a wrong day."""
    if name != "event_at" and not name.endswith("_ds"):
        return ["format only means something for times and dates; leave it out"]
    if format_ in EPOCH_FORMATS:
        return []
    wanted = f"a strptime pattern such as %d.%m.%Y %H:%M, or {' or '.join(EPOCH_FORMATS)}"
    letters = set(re.findall(r"%(.)", format_.replace("%%", "")))
    try:
        datetime.strptime("", format_)
    except re.error:
        return [f"format is {format_!r}, which has the same part twice; expected {wanted}"]
    except ValueError as error:
        if "does not match" not in str(error):
            return [f"format is {format_!r} ({error}); expected {wanted}"]
    if "Z" in letters:  # strptime reads a zone's name and forgets it
        return [f"format is {format_!r}; %Z cannot be read, write %z for an offset or leave the zone to time_zone"]
    return [] if tells_a_day(letters) else [f"format is {format_!r}, which does not tell year, month and day; expected {wanted}"]


def tells_a_day(letters: set[str]) -> bool:
    """Whether the letters of a strptime pattern make up a whole date: strptime takes 1900-01-01 for what is not there."""
    by_month = bool(letters & set("mbB")) and "d" in letters
    by_week = bool(letters & set("UW")) and bool(letters & set("aAwu"))
    in_year = bool(letters & set("yY")) and (by_month or by_week or "j" in letters)
    return in_year or bool(letters & set("cx")) or (letters >= {"G", "V"} and bool(letters & set("aAwu")))


def constant_faults(mapping: ImportMapping, rule: FieldRule) -> list[str]:
    """Defaults and targets of `map` that could never be read would put their rows into quarantine: told when the mapping is loaded."""
    now = datetime.now(UTC)
    read = reader_of(mapping, rule, now=now)
    told = {f"map.{key}": read(text.strip()) for key, text in rule.map.items() if text.strip()}
    told["default"] = constant(mapping, rule, now=now)
    return [f"columns.{rule.column}.{place}: {value.detail}" for place, value in told.items() if isinstance(value, Fault)]


def constant(mapping: ImportMapping, rule: FieldRule, *, now: datetime) -> Any:
    """The default of a column, read; None without one. A default action is the contract's own word, it needs no translation."""
    if rule.default is None or (rule.column == "action" and rule.default in ACTIONS):
        return rule.default
    return reader_of(mapping, rule, now=now)(rule.default)


def reader_of(mapping: ImportMapping, rule: FieldRule, *, now: datetime) -> Reader:
    """The reader of one mapped column; `now`, aware, is the latest time that an event may have."""
    return column_reader(
        rule.column,
        format_=rule.format,
        actions=dict(mapping.actions),
        source_zone=ZoneInfo(mapping.source_zone),
        zone=ZoneInfo(mapping.time_zone),
        now=now,
    )


def check_columns(mapping: ImportMapping, columns: Sequence[str], where: str) -> None:
    """Every source column of the mapping must be in the file, once; ConfigError names all that are not, and the nearest."""
    faults = []
    for rule in mapping.fields:
        if rule.source is not None and rule.source not in columns:
            hint = nearest(rule.source, columns)
            if len(columns) == 1 and (mark := next((mark for mark in ";\t|" if mark in columns[0]), None)):
                hint = f"the header has {mark!r} in it: write the file with commas"
            faults.append(f"columns.{rule.column}: the file has no column {rule.source!r}; {hint}")
        elif rule.source is not None and f"{rule.source}#2" in columns:
            faults.append(f"columns.{rule.column}: the file has more than one column {rule.source!r}; rename one")
    if faults:
        raise ConfigError(where, faults)
