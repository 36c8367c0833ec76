"""`recgpt evaluate`: what the methods are worth, on the weeks after a night."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from recgpt_ops.commands.options import WarehouseOption, checked_ds, existing_warehouse, settings_for

app = typer.Typer(help="Measures methods on what people did after a night.", no_args_is_help=True, rich_markup_mode=None)

USERS_EXAMPLE = "Example: recgpt evaluate users --ds 2021-10-31 --count 100 > users.txt"

DsOption = Annotated[str, typer.Option("--ds", metavar="DATE", help="Business date of the nights, YYYY-MM-DD.")]
LabelDaysOption = Annotated[
    int, typer.Option("--label-days", min=1, max=366, metavar="DAYS", help="How many days after DATE are to be guessed.")
]


@app.command(name="users", epilog=USERS_EXAMPLE)
def users(
    ds: DsOption,
    count: Annotated[int, typer.Option("--count", min=1, metavar="N", help="At most N users, smallest sha256(user_id) first.")] = 100,
    min_before: Annotated[
        int, typer.Option("--min-before", min=1, metavar="M", help="They did at least M things that the night may read.")
    ] = 10,
    label_days: LabelDaysOption = 28,
    warehouse: WarehouseOption = None,
) -> None:
    """Prints the users to evaluate on, one id a line: with a profile, enough of a past, and something to guess after DATE.

    The lines are what `recgpt night --users-file` reads.
    """
    opened = existing_warehouse(settings_for(warehouse))
    from recgpt_ops.evaluation.audience import choose_users
    from recgpt_ops.evaluation.feeds import Window, check_window, connect_feeds

    window = Window(checked_ds(ds), label_days)
    connection = connect_feeds(opened)
    check_window(connection, window)
    chosen, qualified = choose_users(connection, window, count=count, min_before=min_before)
    sys.stdout.write("".join(f"{user_id}\n" for user_id in chosen))
    sys.stderr.write(f"{len(chosen)} users of {qualified} that qualify\n")
