"""Options that every command has, and how a command finds its settings and warehouse."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from recgpt_ops.errors import UsageError
from recgpt_ops.settings import Settings, load_settings

if TYPE_CHECKING:
    from recgpt_ops.delta.warehouse import Warehouse

Format = Literal["table", "csv", "json"]
FormatOption = Annotated[Format, typer.Option("--format", help="How rows are written.")]
WarehouseOption = Annotated[
    str | None, typer.Option("--warehouse", metavar="DIR", help="Root of the warehouse.  [default: the setting `warehouse`]")
]


def settings_for(warehouse: str | None) -> Settings:
    """The settings, with the warehouse as an absolute path, because jobs run in other folders than this command."""
    chosen = load_settings(warehouse=warehouse).warehouse
    if not chosen.strip() or "://" in chosen:
        raise UsageError(f"warehouse {chosen!r} is no folder; name one that every job sees, mounted where it lies elsewhere")
    try:
        return load_settings(warehouse=str(Path(chosen).expanduser().absolute()))
    except RuntimeError as error:  # ~somebody
        raise UsageError(f"warehouse {chosen!r}: {error}; name another with --warehouse") from None


def checked_ds(text: str, option: str = "--ds") -> str:
    """The date in its one spelling."""
    from recgpt_ops.runs import parse_ds

    try:
        return parse_ds(text)
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"{option}: {error}") from None


def existing_warehouse(settings: Settings) -> Warehouse:
    """The warehouse of the settings; UsageError when nobody has imported anything yet."""
    from recgpt_ops.delta.warehouse import open_warehouse  # loads Arrow and delta-rs, which `--help` does not need

    return open_warehouse(settings.warehouse)


def as_option(warehouse: str | None) -> str:
    """The option as it was given, for the commands that are suggested next; nothing where the setting decides."""
    return "" if warehouse is None else f" --warehouse {shlex.quote(warehouse)}"
