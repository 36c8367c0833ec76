"""Contracts: what each table holds, read from `schemas/<table>_v<N>.yaml`.

The only module that DAG files import from this package, so it needs the standard library and yaml alone. Everything else
that knows a table's shape is derived from here: the Spark and Arrow schemas, the checks, the assets and the data dictionary.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import yaml

from recgpt_ops.errors import ConfigError

ROOT = Path(__file__).resolve().parent.parent
SCHEMAS = ROOT / "schemas"

Kind = Literal["feed", "state", "night", "record"]
Grade = Literal["fail", "warn"]
Rule = Literal["not_null", "unique", "in_set", "between", "matches", "length_between", "row_count_between"]

SCALARS = frozenset({"string", "int", "long", "double", "boolean", "timestamp"})


class Column(NamedTuple):
    """One column. `type` is a Spark DDL type: a scalar, array<...> or struct<name:type,...>."""

    name: str
    type: str
    nullable: bool
    description: str
    unit: str | None = None
    source: str | None = None


class Check(NamedTuple):
    """One rule over the staged rows; `grade` fail stops the publication, warn is told in the summary."""

    rule: Rule
    columns: tuple[str, ...]
    grade: Grade
    arguments: dict[str, object]


@dataclass(frozen=True)
class Contract:
    """One table's contract. `key` is in contract order; `volatile` columns are left out of digests."""

    name: str
    version: int
    kind: Kind
    description: str
    grain: str
    key: tuple[str, ...]
    partition_by: tuple[str, ...]
    volatile: tuple[str, ...]
    retention: str
    producer: str
    readers: tuple[str, ...]
    target_file_mb: int
    columns: tuple[Column, ...]
    checks: tuple[Check, ...]

    @property
    def table_id(self) -> str:
        """Name with version, as on disk: `intent_tags_v1`."""
        return f"{self.name}_v{self.version}"

    @property
    def column_names(self) -> tuple[str, ...]:
        """All columns in contract order."""
        return tuple(column.name for column in self.columns)

    @property
    def digest_key(self) -> tuple[str, ...]:
        """The key columns that go into ids and key digests: all but the volatile ones."""
        return tuple(name for name in self.key if name not in self.volatile)

    @property
    def digest_columns(self) -> tuple[str, ...]:
        """The columns whose values make up a row's digest."""
        return tuple(name for name in self.column_names if name not in self.volatile)

    def column(self, name: str) -> Column:
        """The column called `name`; ConfigError names the columns there are."""
        for column in self.columns:
            if column.name == name:
                return column
        raise ConfigError(self.table_id, [f"has no column {name!r}; it has {', '.join(self.column_names)}"])


def split_fields(inner: str) -> list[str]:
    """Splits `a:int,b:array<struct<c:int,d:int>>` at the commas of the outermost level only."""
    fields, depth, start = [], 0, 0
    for index, char in enumerate(inner):
        depth += (char == "<") - (char == ">")
        if char == "," and depth == 0:
            fields.append(inner[start:index])
            start = index + 1
    return [*fields, inner[start:]]


def type_faults(type_: str) -> list[str]:
    """What is wrong with a type's spelling; empty when it is fine."""
    if type_ in SCALARS:
        return []
    if match := re.fullmatch(r"array<(.+)>", type_):
        return type_faults(match[1])
    if match := re.fullmatch(r"struct<(.+)>", type_):
        faults = []
        for field in split_fields(match[1]):
            name, _, inner = field.partition(":")
            faults += type_faults(inner) if name.isidentifier() else [f"field {field!r} is not name:type"]
        return faults
    return [f"unknown type {type_!r}; known are {', '.join(sorted(SCALARS))}, array<...>, struct<name:type,...>"]


def parse_contract(path: Path) -> Contract:
    """Reads and checks one contract file; every fault of the file is told at once."""
    raw = yaml.safe_load(path.read_text())
    faults: list[str] = []
    columns = tuple(
        Column(
            name,
            spec["type"].replace(" ", ""),
            bool(spec.get("nullable", False)),
            spec.get("description", ""),
            spec.get("unit"),
            spec.get("source"),
        )
        for name, spec in raw["columns"].items()
    )
    names = {column.name for column in columns}
    for column in columns:
        faults += [f"column {column.name}: {fault}" for fault in type_faults(column.type)]
        if not column.description:
            faults.append(f"column {column.name} has no description; write one")
    checks = []
    for spec in raw.get("checks", []):
        arguments = {k: v for k, v in spec.items() if k not in {"rule", "columns", "grade"}}
        check = Check(spec["rule"], tuple(spec.get("columns", ())), spec.get("grade", "fail"), arguments)
        if check.rule not in get_args(Rule) or check.grade not in get_args(Grade):
            faults.append(f"check {spec!r}: rule is one of {get_args(Rule)}, grade one of {get_args(Grade)}")
        checks.append(check)
    for use, used in (("key", raw["key"]), ("partition_by", raw.get("partition_by", [])), ("volatile", raw.get("volatile", []))):
        faults += [f"{use} names {name!r}, which is no column" for name in used if name not in names]
    for check in checks:
        faults += [f"check {check.rule} names {name!r}, which is no column" for name in check.columns if name not in names]
    if raw["kind"] not in get_args(Kind):
        faults.append(f"kind is {raw['kind']!r}; expected one of {get_args(Kind)}")
    if path.stem != f"{raw['table']}_v{raw['version']}":
        faults.append(f"file name and table disagree: {raw['table']}_v{raw['version']} stands in {path.name}")
    if faults:
        raise ConfigError(f"schemas/{path.name}", faults)
    return Contract(
        name=raw["table"],
        version=raw["version"],
        kind=raw["kind"],
        description=raw["description"].strip(),
        grain=raw["grain"],
        key=tuple(raw["key"]),
        partition_by=tuple(raw.get("partition_by", [])),
        volatile=tuple(raw.get("volatile", [])),
        retention=raw["retention"],
        producer=raw["producer"],
        readers=tuple(raw["readers"]),
        target_file_mb=raw.get("target_file_mb", 256),
        columns=columns,
        checks=tuple(checks),
    )


@cache
def all_contracts() -> dict[str, Contract]:
    """Every contract by table name (without version), in file order."""
    return {contract.name: contract for contract in map(parse_contract, sorted(SCHEMAS.glob("*_v*.yaml")))}


def load_contract(name: str) -> Contract:
    """The contract of one table; an unknown name is told with the names there are."""
    contracts = all_contracts()
    if name not in contracts:
        raise ConfigError("schemas/", [f"no contract for table {name!r}; there are {', '.join(contracts)}"])
    return contracts[name]
