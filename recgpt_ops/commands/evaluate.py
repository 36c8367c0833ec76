"""`recgpt evaluate`: what the methods are worth, on the weeks after a night."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from recgpt_ops.commands.evaluation_tables import as_markdown, as_text
from recgpt_ops.commands.options import FormatOption, WarehouseOption, checked_ds, existing_warehouse, settings_for
from recgpt_ops.commands.output import render_rows
from recgpt_ops.errors import UsageError
from recgpt_ops.recipes import load_recipe
from recgpt_ops.tables import load_contract

app = typer.Typer(help="Measures methods on what people did after a night.", no_args_is_help=True, rich_markup_mode=None)

METHODS_EXAMPLE = "Example: recgpt evaluate methods --ds 2021-10-31 --methods v1,v1_shared,v2"
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
    from recgpt_ops.delta.sql import connect
    from recgpt_ops.evaluation.audience import choose_users
    from recgpt_ops.evaluation.feeds import Window, check_window

    window = Window(checked_ds(ds), label_days)
    connection = connect(opened)
    check_window(connection, window)
    chosen, qualified = choose_users(connection, window, count=count, min_before=min_before)
    sys.stdout.write("".join(f"{user_id}\n" for user_id in chosen))
    tell(f"{len(chosen)} users of {qualified} that qualify")


@app.command(name="methods", epilog=METHODS_EXAMPLE)
def methods(
    ds: DsOption,
    names: Annotated[str, typer.Option("--methods", metavar="A,B", help="Methods with a visible night of DATE, the baseline first.")],
    label_days: LabelDaysOption = 28,
    scenario: Annotated[
        str | None, typer.Option("--scenario", metavar="NAME", help="Where results are shown.  [default: the setting]")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the bootstrap and of samples.")] = 0,
    resamples: Annotated[int, typer.Option("--resamples", min=1000, max=100_000, metavar="B", help="Resamples of the bootstrap.")] = 2000,
    markdown: Annotated[bool, typer.Option("--markdown", help="The tables as Markdown, for a page.")] = False,
    form: FormatOption = "table",
    warehouse: WarehouseOption = None,
) -> None:
    """Compares methods on what people did after DATE, beside lists without a model, and keeps every figure in `evaluations`.

    The same nights, data and seed are evaluated once: the second time the stored figures are shown.
    """
    if markdown and form != "table":
        raise UsageError(f"--markdown writes tables, --format {form} writes rows; give one of the two")
    settings = settings_for(warehouse)
    checked, chosen = checked_ds(ds), method_names(names)
    recipes = [load_recipe(name) for name in chosen]
    opened = existing_warehouse(settings)
    from recgpt_ops.delta.records import append_records
    from recgpt_ops.delta.sql import connect
    from recgpt_ops.evaluation.methods import TABLE, Terms, open_study, stored_rows, study_rows
    from recgpt_ops.llm.models import model_directory, model_hash, models_root

    root = models_root(settings.warehouse)
    terms = Terms(checked, scenario or settings.night.scenario, label_days, seed, resamples)
    connection = connect(opened)
    embedder_hash = model_hash(model_directory(settings.embedder.model, models_root=root))
    study = open_study(connection, opened, recipes, terms, embedder_hash=embedder_hash)
    for night in study.nights:
        if night.is_recipe_changed:
            tell(f"recipe {night.method} has changed since its night; lengths are those of the recipe as it is now")
    rows = stored_rows(opened, study)
    if rows:
        said = f"these nights were evaluated on {rows[0]['made_at']:%Y-%m-%d %H:%M} UTC; nothing new is written to {TABLE}"
    else:
        from recgpt_ops.llm.embedder import load_embedder  # torch

        rows = study_rows(opened, connection, study, load_embedder(settings.embedder, models_root=root), tell=tell)
        said = f"{append_records(opened, TABLE, rows)} rows were written to {TABLE}"
    sys.stdout.write(
        as_markdown(rows)
        if markdown
        else as_text(rows)
        if form == "table"
        else render_rows(rows, load_contract(TABLE).column_names, form=form)
    )
    tell(f"{said} (evaluation_id {study.evaluation_id})")


def method_names(text: str) -> list[str]:
    """`v1,v2` as names; UsageError for none, or for one that comes twice."""
    names = [name.strip() for name in text.split(",")]
    if not all(names) or len(set(names)) < len(names):
        raise UsageError(f"--methods: expected names of methods, each once, such as v1,v2; got {text!r}")
    return names


def tell(line: str) -> None:
    """What is being done, beside the output."""
    sys.stderr.write(f"evaluate: {line}\n")
    sys.stderr.flush()
