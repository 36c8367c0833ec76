"""The command line that the three import jobs share: which rows, into which warehouse."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from recgpt_ops.imports.mapping import TABLES
from recgpt_ops.imports.report import ImportReport
from recgpt_ops.imports.run import SOURCES, Say, import_mapped, import_source
from recgpt_ops.settings import load_settings


def parse_arguments(table: str, argv: Sequence[str] | None) -> argparse.Namespace:
    """The arguments of an import job: a known source, or a mapping with a path."""
    parser = argparse.ArgumentParser(prog=TABLES[table], description=f"Imports {table}; importing again adds nothing.")
    parser.add_argument("--warehouse", required=True, help="root folder of the warehouse; made when it is not there")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--source", choices=sorted(SOURCES), help="a data set that the project knows")
    what.add_argument("--mapping", type=Path, help="YAML file that says which column is which")
    parser.add_argument("--path", type=Path, default=None, help="folder with the files of --source")
    parser.add_argument("file", nargs="?", type=Path, help="with --mapping: CSV, Parquet or Delta, a file or a folder")
    parser.add_argument("--arrived-ds", type=date.fromisoformat, default=None, help="first business date whose night may read the rows")
    arguments = parser.parse_args(argv)
    if arguments.mapping is not None and arguments.file is None:
        parser.error("--mapping needs the file or folder to import behind it")
    if arguments.source is not None and arguments.file is not None:
        parser.error("--source takes its folder by --path")
    return arguments


def import_table(table: str, argv: Sequence[str] | None, *, say: Say) -> ImportReport:
    """Runs one import job. `table` is events, items or profiles."""
    arguments = parse_arguments(table, argv)
    settings = load_settings(warehouse=arguments.warehouse)
    arrived_ds = arguments.arrived_ds.isoformat() if arguments.arrived_ds else None
    if arguments.source is not None:
        tables = (TABLES[table],)
        return import_source(
            settings.warehouse, arguments.source, path=arguments.path, arrived_ds=arrived_ds, settings=settings, say=say, tables=tables
        )
    return import_mapped(
        settings.warehouse, table, mapping=arguments.mapping, path=arguments.file, arrived_ds=arrived_ds, settings=settings, say=say
    )
