"""Rows for people (table), for spreadsheets (csv) and for programs (json)."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from recgpt_ops.commands.options import Format

WIDE = 100_000  # columns of a table that is not written to a terminal: nothing is cut there


def render_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, form: Format) -> str:
    """The rows as text that ends in a line break. Empty: the heading alone, `[]` for json."""
    if form == "json":
        return json.dumps([{name: plain(row[name]) for name in columns} for row in rows], ensure_ascii=False, indent=1) + "\n"
    if form == "csv":
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([["" if row[name] is None else text_of(row[name], exact=True) for name in columns] for row in rows])
        return buffer.getvalue()
    return render_table(rows, columns)


def render_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """A table as wide as the terminal, or as wide as it needs to be where there is none."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        numeric = any(isinstance(row[name], int | float) and not isinstance(row[name], bool) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text("" if row[name] is None else visible(text_of(short(row[name])))) for name in columns))
    buffer = io.StringIO()
    Console(file=buffer, width=None if sys.stdout.isatty() else WIDE, color_system=None).print(table)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines() if line.strip()) + "\n"


def plain(value: Any) -> Any:
    """A value as JSON knows it; times as ISO 8601, NaN and infinity as null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)  # decimals, intervals, bytes


def text_of(value: Any, *, exact: bool = False) -> str:
    """A value in one cell: nested ones as JSON. For people, numbers without a tail of digits, sums of money to the cent.

    >>> text_of(1 / 3), text_of(1234567.891), text_of(1 / 3, exact=True)
    ('0.333333', '1234567.89', '0.3333333333333333')
    """
    if isinstance(value, float):
        if exact:
            return repr(value)
        return f"{value:.2f}".rstrip("0").rstrip(".") if 1e4 <= abs(value) < 1e15 else f"{value:.6g}"
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(plain(value), ensure_ascii=False)
    return str(plain(value))


def short(value: Any) -> Any:
    """A time to the second, as people read it; anything else as it is."""
    return f"{value:%Y-%m-%d %H:%M:%S}" if isinstance(value, datetime) else value


def visible(text: str) -> str:
    """The text with control characters spelled out: people's data may not steer the terminal.

    >>> visible("a\\x1b[31mb")
    'a\\\\x1b[31mb'
    """
    return "".join(char if char.isprintable() or char == " " else ascii(char)[1:-1] for char in text)
