"""`recgpt query`: SQL over the warehouse, for reading only."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Annotated, Any, TextIO

import typer

from recgpt_ops.commands.options import FormatOption, WarehouseOption, existing_warehouse, settings_for
from recgpt_ops.commands.output import render_rows
from recgpt_ops.errors import UsageError

EXAMPLE = 'Example: recgpt query "select user_id, rank, tag from intent_tags order by 1, 2"'
QUIET_SECONDS = 2.0  # a query that is done by then says nothing but its rows
TERMINAL_SECONDS, LINE_SECONDS = 0.5, 10.0  # between two words of progress
INTERRUPT_SECONDS = 0.1

Rows = tuple[list[str], list[tuple[Any, ...]]]


def query(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One SELECT; tables are called by their names without version.")] = "",
    listing: Annotated[bool, typer.Option("--list", help="Tell what there is to query, instead of a query.")] = False,
    form: FormatOption = "table",
    warehouse: WarehouseOption = None,
) -> None:
    """Reads the warehouse by SQL (DuckDB). Night tables show all visible nights, with ds and method as columns; nothing is written."""
    if listing == bool(sql):
        raise UsageError("query: expected one SELECT, or --list alone; such as: recgpt query 'select * from night_summary'")
    if listing:
        rows = relation_rows()
        sys.stdout.write(render_rows(rows, list(rows[0]), form=form))
        return
    opened = existing_warehouse(settings_for(warehouse))
    from recgpt_ops.delta.sql import connect, fetch_select

    connection = connect(opened)
    columns, values = run_watched(
        lambda: fetch_select(connection, sql), progress=connection.query_progress, interrupt=connection.interrupt, stream=sys.stderr
    )
    told = [dict(zip(columns, row, strict=True)) for row in values]
    sys.stdout.write(render_rows(told, columns, form=form))


def relation_rows() -> Sequence[Mapping[str, Any]]:
    """Name, kind and grain of every table and view: views first, because they are made for people."""
    from recgpt_ops.tables import all_contracts
    from recgpt_ops.views import all_views, shown_name

    views = [{"name": view.name, "kind": "view", "holds": view.grain} for view in all_views().values()]
    tables = [{"name": shown_name(table), "kind": table.kind, "holds": table.grain} for table in all_contracts().values()]
    return [*views, *tables]


def run_watched(
    ask: Callable[[], Rows], *, progress: Callable[[], float], interrupt: Callable[[], None], stream: TextIO, quiet: float = QUIET_SECONDS
) -> Rows:
    """The rows of a query that runs beside, so that Ctrl-C ends it at once and a long one tells how far it is."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        answer = pool.submit(ask)
        try:
            tell_progress(answer, progress=progress, stream=stream, quiet=quiet)
        except BaseException:
            while not answer.done():  # one that had not begun yet would not hear the first call
                interrupt()
                wait([answer], timeout=INTERRUPT_SECONDS)
            raise
        return answer.result()


def tell_progress(answer: Future[Rows], *, progress: Callable[[], float], stream: TextIO, quiet: float) -> None:
    """Waits for the answer; after the quiet seconds one line that changes on a terminal, elsewhere a line now and then."""
    started, on_terminal, told = time.monotonic(), stream.isatty(), ""
    wait([answer], timeout=quiet if on_terminal else max(quiet, LINE_SECONDS))
    while not answer.done():
        told = progress_line(time.monotonic() - started, progress())
        stream.write(f"\r{told}\x1b[K" if on_terminal else f"{told}\n")
        stream.flush()
        wait([answer], timeout=TERMINAL_SECONDS if on_terminal else LINE_SECONDS)
    if told and on_terminal:
        stream.write("\r\x1b[K")
        stream.flush()


def progress_line(seconds: float, percent: float) -> str:
    """How long and how far; DuckDB says -1 where it cannot tell.

    >>> progress_line(12.3, 40.4), progress_line(75, -1)
    ('query: running for 12 s, 40 % read', 'query: running for 75 s')
    """
    return f"query: running for {seconds:.0f} s{f', {percent:.0f} % read' if percent >= 0 else ''}"
