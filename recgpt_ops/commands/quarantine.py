"""`recgpt quarantine`: what could not be imported or computed, why, and running just that again."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from recgpt_ops.commands.options import FormatOption, WarehouseOption, as_option, checked_ds, existing_warehouse, settings_for
from recgpt_ops.commands.output import render_rows
from recgpt_ops.errors import UsageError

if TYPE_CHECKING:
    from recgpt_ops.commands.quarantine_rows import Filter

app = typer.Typer(help="Rows that could not be imported or computed: list, show, replay.", rich_markup_mode=None)

DsOption = Annotated[str | None, typer.Option("--ds", metavar="DATE", help="Of one night.")]
StageOption = Annotated[str | None, typer.Option("--stage", metavar="NAME", help="Of one stage, such as intents.")]
ReasonOption = Annotated[str | None, typer.Option("--reason", metavar="WORD", help="With one reason, such as poison or timeout.")]
MethodOption = Annotated[list[str] | None, typer.Option("--method", metavar="NAME", help="Of one recipe; may be given again.")]
UserOption = Annotated[list[str] | None, typer.Option("--user", metavar="ID", help="Of one user; may be given again.")]
LIST_COLUMNS = ("ds", "stage", "table", "method", "reason", "rows", "keys", "attempts", "newest_at", "newest_key", "newest_detail")
SHOW_COLUMNS = ("ds", "scenario", "method", "stage", "attempt", "reason", "at", "detail")


@app.command(name="list", epilog="Example: recgpt quarantine list --ds 2017-10-30 --stage intents")
def list_rows(
    ds: DsOption = None,
    stage: StageOption = None,
    reason: ReasonOption = None,
    method: MethodOption = None,
    user: UserOption = None,
    form: FormatOption = "table",
    warehouse: WarehouseOption = None,
) -> None:
    """Counts rows in quarantine by night, stage and reason, the newest first, each with its newest example."""
    opened = existing_warehouse(settings_for(warehouse))
    from recgpt_ops.commands.quarantine_rows import counted, read_quarantine

    chosen = chosen_rows(ds, stage, reason, method, user)
    rows = counted(read_quarantine(opened, chosen))
    sys.stdout.write(render_rows(rows, LIST_COLUMNS, form=form))
    if form == "table":
        option = as_option(warehouse)
        known = f" --ds {rows[0]['ds']}" if rows and rows[0]["ds"] else ""
        sys.stdout.write(
            f"  recgpt quarantine show KEY{option}      every attempt at one row\n"
            f"  recgpt quarantine replay{known or ' --ds DATE'}{option}      runs exactly these rows again\n"
            if rows
            else "nothing is in quarantine" + (" that these options name\n" if any(chosen) else "\n")
        )


@app.command(epilog="Example: recgpt quarantine show 1031 --ds 2017-10-30")
def show(
    key: Annotated[str, typer.Argument(metavar="KEY", help="A row's key as `list` tells it, or a user's id.")],
    ds: DsOption = None,
    stage: StageOption = None,
    form: FormatOption = "table",
    warehouse: WarehouseOption = None,
) -> None:
    """Shows one row with the reasons of all its attempts, oldest first, and the row as it came."""
    opened = existing_warehouse(settings_for(warehouse))
    from recgpt_ops.commands.quarantine_rows import history, mending, read_quarantine

    rows = history(read_quarantine(opened, chosen_rows(ds, stage, None, None, None)), key)
    if not rows:
        raise UsageError(f"nothing in quarantine has the key {key!r}; `recgpt quarantine list` tells the newest key of each reason")
    if form != "table":
        sys.stdout.write(render_rows(rows, (*SHOW_COLUMNS, "raw"), form=form))
        return
    sys.stdout.write(render_rows(rows, SHOW_COLUMNS, form=form))
    for raw in dict.fromkeys(row["raw"] for row in rows):
        sys.stdout.write(f"\nThe row as it came:\n{raw}\n")
    sys.stdout.write(f"\n{mending(rows, option=as_option(warehouse))}\n")


@app.command(epilog="Example: recgpt quarantine replay --ds 2017-10-30 --reason timeout")
def replay(
    ds: Annotated[str, typer.Option("--ds", metavar="DATE", help="Business date of the night.")],
    stage: StageOption = None,
    reason: ReasonOption = None,
    method: MethodOption = None,
    user: UserOption = None,
    form: FormatOption = "table",
    warehouse: WarehouseOption = None,
) -> None:
    """Runs the users whose rows are in quarantine through the stages they miss, and shows them beside the others' rows.

    What was answered well is read from the record; what was refused, or never answered, is asked again. Users who have a fresh result
    by now, and all others, keep their rows. Rows of an import are mended in their file and imported again.
    """
    settings = settings_for(warehouse)
    checked = checked_ds(ds)
    opened = existing_warehouse(settings)
    from recgpt_ops.commands.quarantine_rows import read_quarantine
    from recgpt_ops.commands.replaying import open_users, replay_orders, run_replay

    chosen = chosen_rows(checked, stage, reason, method, user)
    rows = read_quarantine(opened, chosen)
    found = open_users(opened, rows, ds=checked, scenario=settings.night.scenario)
    orders = replay_orders(found, ds=checked, scenario=settings.night.scenario)
    if not orders:
        sys.stdout.write(
            f"Nothing to replay: of {len(rows)} rows in quarantine for {checked}{' that these options name' if any(chosen[1:]) else ''} "
            "none is of a user who lacks a result that readers could see.\n"
        )
        return
    run_replay(opened, settings, orders, form=form, option=as_option(warehouse))


def chosen_rows(ds: str | None, stage: str | None, reason: str | None, method: list[str] | None, user: list[str] | None) -> Filter:
    """The options as one filter."""
    from recgpt_ops.commands.quarantine_rows import Filter

    return Filter(None if ds is None else checked_ds(ds), stage, reason, tuple(method or ()), tuple(user or ()))
