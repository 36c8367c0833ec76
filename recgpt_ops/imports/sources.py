"""What a source that comes with the project is made of: its files, its zone and locale, and how each feed is shaped from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame

from recgpt_ops.errors import UsageError
from recgpt_ops.imports.landing import SourceFile, file_kind
from recgpt_ops.imports.mapping import ACTIONS, FieldRule, ImportMapping

META = ("file", "line", "raw", "fault", "detail")  # what every landed and every shaped frame begins with
Frames = Mapping[str, DataFrame]


@dataclass(frozen=True)
class FileSet:
    """Files of one kind. `columns`: the source's name -> our word in the frame. `natural_key` False: rows are told apart by content."""

    name: str
    columns: Mapping[str, str]
    has_natural_key: bool = True


@dataclass(frozen=True)
class Feed:
    """How one feed is made: from which file sets, and shaped how.

    The shaped frame has META, `dropped` (a reason or null) and a text column per field of the mapping; events also `identity`.
    """

    mapping: ImportMapping
    file_sets: tuple[str, ...]
    shape: Callable[[Frames], DataFrame]


@dataclass(frozen=True)
class Source:
    """One data set that the project can read by itself. `find` gives the files of each file set below a folder, or without one."""

    name: str
    locale: str
    time_zone: str
    file_sets: tuple[FileSet, ...]
    find: Callable[[Path | None], Mapping[str, Sequence[SourceFile]]]
    feeds: tuple[Feed, ...]


def field_rules(*rules: FieldRule | str) -> tuple[FieldRule, ...]:
    """Rules whose shaped column has the contract column's name, unless said otherwise."""
    return tuple(rule if isinstance(rule, FieldRule) else FieldRule(rule, rule) for rule in rules)


def feed_mapping(source: str, table: str, rules: Sequence[FieldRule], *, time_zone: str, source_zone: str) -> ImportMapping:
    """The mapping of a shaped feed; actions are the contract's own."""
    return ImportMapping(source, table, time_zone, source_zone, tuple(rules), {action: action for action in ACTIONS})


def folder_files(path: Path | None, *, source: str, names: Mapping[str, Sequence[str]]) -> dict[str, list[SourceFile]]:
    """The files of each set by name, with or without .gz, in `path` or its folder `raw`; UsageError names all that are missing."""
    if path is None:
        raise UsageError(f"{source} does not come with the project; say with --path where its files are")
    if not path.is_dir():
        raise UsageError(
            f"{path}: {'is no folder' if path.exists() else 'no such folder'}; --path names the folder with the files of {source}"
        )
    roots = [root for root in (path, path / "raw") if root.is_dir()]
    found: dict[str, list[SourceFile]] = {}
    missing = []
    for name, files in names.items():
        paths = [root / (file + end) for file in files for root in roots for end in (".csv.gz", ".csv") if (root / (file + end)).is_file()]
        found[name] = [SourceFile(p.name, p, file_kind(p)) for p in paths]
        if not paths:
            missing.append(" or ".join(f"{file}.csv.gz" for file in files))
    if missing:
        raise UsageError(f"{path}: expected the files of {source}, missing {', '.join(missing)}; check --path")
    return found
