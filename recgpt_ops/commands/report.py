"""`recgpt report`: a night as pages that open in a browser."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from recgpt_ops.commands.options import WarehouseOption, checked_ds, existing_warehouse, settings_for

EXAMPLE = "Example: recgpt report --ds 2017-10-30"


def report(
    ds: Annotated[str, typer.Option("--ds", metavar="DATE", help="Which night; it must be visible.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The pages are written to DIR/DATE.")] = Path("reports"),
    users: Annotated[int, typer.Option("--users", metavar="N", min=0, help="Most users that get a page, smallest sha256 first.")] = 1000,
    warehouse: WarehouseOption = None,
) -> None:
    """Writes DIR/DATE/index.html: the night in figures, a page a user, every tag beside what it rests on. Needs no server to be read."""
    started = time.monotonic()
    settings = settings_for(warehouse)
    opened, ds = existing_warehouse(settings), checked_ds(ds)
    from recgpt_ops.report.site import write_report

    made = write_report(opened, ds=ds, scenario=settings.night.scenario, folder=out, most_users=users)
    sys.stdout.write(
        f"{made.index}\n{made.user_count} users, {made.file_count} files, {made.size / 1e6:.1f} MB, in {time.monotonic() - started:.1f} s\n"
    )
