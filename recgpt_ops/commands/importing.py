"""`recgpt import`: the data sets that the project knows, and anybody's own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recgpt_ops.commands.options import Format, FormatOption, WarehouseOption, checked_ds, settings_for
from recgpt_ops.commands.output import render_rows
from recgpt_ops.tables import ROOT

if TYPE_CHECKING:
    from recgpt_ops.imports.report import ImportReport

app = typer.Typer(help="Bring events, items and user profiles into the warehouse. Importing twice adds nothing.", rich_markup_mode=None)
COLUMNS = ("table", "rows", "reason", "count")

PathOption = Annotated[Path | None, typer.Option("--path", metavar="DIR", help="Folder of the data set's files.")]
ArrivedOption = Annotated[
    str | None,
    typer.Option("--arrived-ds", metavar="DATE", help="First night that may read the rows.  [default: the day they happened on]"),
]
MappingOption = Annotated[Path, typer.Option("--mapping", metavar="FILE", help="Which source column is which column of ours (YAML).")]
FileArgument = Annotated[Path, typer.Argument(metavar="PATH", help="A CSV or Parquet file, a folder of them, or a Delta table.")]


@app.command("complete-journey", epilog="Example: recgpt import complete-journey")
def complete_journey(
    path: PathOption = None, arrived_ds: ArrivedOption = None, form: FormatOption = "table", warehouse: WarehouseOption = None
) -> None:
    """The Complete Journey: a year of grocery shopping of 2,469 households. Without --path, from the installed package."""
    run_source("complete-journey", path, arrived_ds, form=form, warehouse=warehouse)


@app.command("open-ecommerce", epilog="Example: recgpt import open-ecommerce --path ../data/open_ecommerce")
def open_ecommerce(
    path: PathOption = None, arrived_ds: ArrivedOption = None, form: FormatOption = "table", warehouse: WarehouseOption = None
) -> None:
    """Open e-commerce 1.0: purchases of 5,027 people at one large shop, by day."""
    run_source("open-ecommerce", path, arrived_ds, form=form, warehouse=warehouse)


@app.command("online-retail", epilog="Example: recgpt import online-retail --path ../data/online_retail")
def online_retail(
    path: PathOption = None, arrived_ds: ArrivedOption = None, form: FormatOption = "table", warehouse: WarehouseOption = None
) -> None:
    """Online Retail II: two years of orders at a British gift shop."""
    run_source("online-retail", path, arrived_ds, form=form, warehouse=warehouse)


@app.command(
    "events", epilog="Example: recgpt import events --mapping tests/fixtures/own_shop/events.yaml tests/fixtures/own_shop/events.csv"
)
def events(
    path: FileArgument,
    mapping: MappingOption,
    arrived_ds: ArrivedOption = None,
    form: FormatOption = "table",
    warehouse: WarehouseOption = None,
) -> None:
    """Anybody's events: who did what with which item, and when."""
    run_mapped("events", path, mapping, arrived_ds, form=form, warehouse=warehouse)


@app.command("items", epilog="Example: recgpt import items --mapping items.yaml items.csv")
def items(
    path: FileArgument,
    mapping: MappingOption,
    arrived_ds: ArrivedOption = None,
    form: FormatOption = "table",
    warehouse: WarehouseOption = None,
) -> None:
    """Anybody's items: id, title, category, type."""
    run_mapped("items", path, mapping, arrived_ds, form=form, warehouse=warehouse)


@app.command("profiles", epilog="Example: recgpt import profiles --mapping profiles.yaml profiles.csv")
def profiles(
    path: FileArgument,
    mapping: MappingOption,
    arrived_ds: ArrivedOption = None,
    form: FormatOption = "table",
    warehouse: WarehouseOption = None,
) -> None:
    """Anybody's users: id, language, region and further attributes."""
    run_mapped("profiles", path, mapping, arrived_ds, form=form, warehouse=warehouse)


def run_source(source: str, path: Path | None, arrived_ds: str | None, *, form: Format, warehouse: str | None) -> None:
    """Imports a known data set and tells its counts; one that was imported before is recognized by its files."""
    settings = settings_for(warehouse)
    arrived_ds = None if arrived_ds is None else checked_ds(arrived_ds, "--arrived-ds")
    from recgpt_ops.commands.import_memo import fingerprint, recall, remember
    from recgpt_ops.delta.warehouse import open_warehouse
    from recgpt_ops.imports.run import SOURCES, import_source

    opened = open_warehouse(settings.warehouse, create=True)
    known = SOURCES[source]
    files = [file.path for found in known.find(path).values() for file in found]
    code = sorted((ROOT / "recgpt_ops" / "imports").glob("*.py"))  # what shapes the rows
    name = fingerprint([source, arrived_ds or "", *(feed.mapping.digest for feed in known.feeds)], [*files, *code])
    report = recall(opened, name)
    if report is not None:
        tell(f"{source}: these files were imported before; nothing new")
    else:
        report = import_source(settings.warehouse, source, path=path, arrived_ds=arrived_ds, settings=settings, say=tell)
        remember(opened, name, report)
    write_report(report, form=form, warehouse=settings.warehouse)


def run_mapped(table: str, path: Path, mapping: Path, arrived_ds: str | None, *, form: Format, warehouse: str | None) -> None:
    """Imports a file by a mapping and tells its counts."""
    settings = settings_for(warehouse)
    arrived_ds = None if arrived_ds is None else checked_ds(arrived_ds, "--arrived-ds")
    from recgpt_ops.imports.run import import_mapped

    report = import_mapped(settings.warehouse, table, mapping=mapping, path=path, arrived_ds=arrived_ds, settings=settings, say=tell)
    write_report(report, form=form, warehouse=settings.warehouse)


def tell(text: str) -> None:
    """Progress goes to stderr, because stdout is for the result."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def write_report(report: ImportReport, *, form: Format, warehouse: str) -> None:
    """Counts in = kept + already there + dropped + quarantined, by reason."""
    if form != "table":
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in report.rows()]
        sys.stdout.write(render_rows(rows, COLUMNS, form=form))
        return
    sys.stdout.write("\n".join(report.lines()) + "\n")
    if any(table.quarantined_count for table in report.tables):
        sys.stdout.write('Rows in quarantine: recgpt query "select row_key, reason, detail, raw from quarantine limit 20"\n')
    sys.stdout.write(f"The feeds are in {warehouse}. Next: recgpt night --ds DATE --users 8\n")
