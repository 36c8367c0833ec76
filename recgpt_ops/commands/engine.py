"""`recgpt engine`: the local Ray head, on which engines are loaded. A night starts and stops one by itself when none is up."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from recgpt_ops.commands.options import FormatOption, WarehouseOption, settings_for
from recgpt_ops.commands.output import render_rows

app = typer.Typer(help="Start, stop and look at the local Ray head that engines run on.", rich_markup_mode=None)
COLUMNS = ("is_up", "job_address", "pid", "detail")


@app.command(epilog="Example: recgpt engine up")
def up(warehouse: WarehouseOption = None) -> None:
    """Starts the local Ray head and keeps it, so that each night starts 10 seconds sooner."""
    from recgpt_ops.llm.cluster import start_head

    head = start_head(settings_for(warehouse), keep=True)
    what = "started" if head.started_here else "was there already"
    sys.stdout.write(f"Ray head {what}: {head.job_address}. End it by `recgpt engine down`.\n")


@app.command(epilog="Example: recgpt engine down")
def down(
    force: Annotated[bool, typer.Option("--force", help="Stop it also while a night uses it; that night fails.")] = False,
    warehouse: WarehouseOption = None,
) -> None:
    """Stops the local Ray head and every engine on it. Refused while a night uses it."""
    from recgpt_ops.llm.cluster import stop_head

    stopped = stop_head(settings_for(warehouse), force=force)
    sys.stdout.write("Ray head stopped.\n" if stopped else "No Ray head of ours was running.\n")


@app.command(epilog="Example: recgpt engine status --format json")
def status(form: FormatOption = "table", warehouse: WarehouseOption = None) -> None:
    """Shows whether a Ray head answers, where, and whose it is."""
    from recgpt_ops.llm.cluster import head_status

    sys.stdout.write(render_rows([head_status(settings_for(warehouse))._asdict()], COLUMNS, form=form))
