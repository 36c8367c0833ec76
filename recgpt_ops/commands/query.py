"""`recgpt query`: SQL over the warehouse, for reading only."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from recgpt_ops.commands.options import FormatOption, WarehouseOption, existing_warehouse, settings_for
from recgpt_ops.commands.output import render_rows

EXAMPLE = 'Example: recgpt query "select user_id, rank, tag from intent_tags order by 1, 2"'


def query(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One SELECT; tables are called by their names without version.")],
    form: FormatOption = "table",
    warehouse: WarehouseOption = None,
) -> None:
    """Reads the warehouse by SQL (DuckDB). Night tables show all visible nights, with ds and method as columns; nothing is written."""
    opened = existing_warehouse(settings_for(warehouse))
    from recgpt_ops.delta.sql import connect, fetch_select

    columns, values = fetch_select(connect(opened), sql)
    rows = [dict(zip(columns, row, strict=True)) for row in values]
    sys.stdout.write(render_rows(rows, columns, form=form))
