"""`recgpt night`: one night, if there is anything to do. Everything that can be checked cheaply is checked before anything starts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from recgpt_ops.commands.options import FormatOption, WarehouseOption, as_option, checked_ds, existing_warehouse, settings_for
from recgpt_ops.errors import InputsChangedError, UsageError
from recgpt_ops.recipes import load_recipe

if TYPE_CHECKING:
    from recgpt_ops.delta.warehouse import Warehouse
    from recgpt_ops.nights import Asked, Standing
    from recgpt_ops.settings import Settings

EXAMPLE = "Example: recgpt night --ds 2017-10-30 --users 8"
UserOption = Annotated[list[str] | None, typer.Option("--user", metavar="ID", help="A user by id; may be given again.")]
MethodOption = Annotated[
    list[str] | None, typer.Option("--method", metavar="NAME", help="One recipe of infra/methods; may be given again.  [default: all]")
]


class NightQuestion(NamedTuple):
    """What the options of a night ask for, checked, and how the warehouse stands to it."""

    ds: str
    methods: list[str] | tuple[str, ...]
    settings: Settings
    warehouse: Warehouse
    asked: Asked
    found: Standing


def night(
    ds: Annotated[str, typer.Option("--ds", metavar="DATE", help="Business date, YYYY-MM-DD.")],
    users: Annotated[
        int | None, typer.Option("--users", min=1, metavar="N", help="The N users with the smallest sha256(user_id) that have a profile.")
    ] = None,
    user: UserOption = None,
    users_file: Annotated[
        Path | None, typer.Option("--users-file", metavar="FILE", help="Users by id, one a line, as `recgpt evaluate users` prints them.")
    ] = None,
    method: MethodOption = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Compute the night again, from recorded answers where they fit, beside the old one.")
    ] = False,
    form: FormatOption = "table",
    warehouse: WarehouseOption = None,
) -> None:
    """Runs the night of one business date through the real DAGs and shows its result. A night that is done is not run again.

    Without --users, --user and --users-file the audience policy decides who is computed.
    """
    checked, methods, settings, opened, asked, found = night_question(ds, users, user, users_file, method, warehouse)
    from recgpt_ops.commands.night_run import NightOrder, run_night
    from recgpt_ops.commands.night_summary import write_summary
    from recgpt_ops.planning.budget import budget_text, night_budget

    if found.is_done and not rebuild:
        sys.stdout.write(done_text(checked, found, as_option(warehouse)))
        return
    if found.changed and not rebuild:
        raise InputsChangedError(changed_text(checked, found, as_option(warehouse)))
    why = "rebuild" if rebuild and found.visible else found.why
    computed = tuple(methods) if rebuild else found.open_methods
    order = NightOrder(checked, settings.night.scenario, computed, asked.users, asked.user_ids, why)
    count = found.most_users(computed, rebuild=rebuild, policy=settings.audience.max_users)
    budget = night_budget(settings, count)
    sys.stderr.write(budget_text(budget, count) + "\n")
    result = run_night(opened, settings, order)
    write_summary(opened, result, checked, budget=budget, form=form, option=as_option(warehouse))


def night_question(
    ds: str, users: int | None, user: list[str] | None, users_file: Path | None, method: list[str] | None, warehouse: str | None
) -> NightQuestion:
    """The options of `recgpt night` and `recgpt plan`, checked in the order of what they cost; nothing is started."""
    settings = settings_for(warehouse)
    methods = method or settings.night.methods
    for name in methods:
        load_recipe(name, engine=settings.engine)
    checked = checked_ds(ds)
    opened = existing_warehouse(settings)
    from recgpt_ops.nights import Asked, check_ds, standing

    check_ds(opened, checked)
    asked = Asked(users, (*(user or ()), *read_user_ids(users_file)))
    found = standing(opened, settings, ds=checked, scenario=settings.night.scenario, methods=methods, asked=asked)
    return NightQuestion(checked, methods, settings, opened, asked, found)


def read_user_ids(path: Path | None) -> list[str]:
    """The ids of a file, one a line; blank lines count for nothing. No file: none."""
    if path is None:
        return []
    try:
        found = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--users-file {str(path)!r}: cannot be read ({error}); give a text file, one user id a line") from None
    if not found:
        raise UsageError(f"--users-file {str(path)!r}: expected a user id a line, got an empty file")
    return found


def done_text(ds: str, found: Standing, option: str) -> str:
    """What is said when there is nothing to do."""
    lines = [
        f"The night of {ds} by {method} is done: generation {row['publish_id']}, published {row['published_at']:%Y-%m-%d %H:%M} UTC."
        for method, row in found.visible.items()
    ]
    return "\n".join(
        [
            *lines,
            "Nothing was computed and nothing was written. Next:",
            f"  recgpt report --ds {ds}{option}",
            f"  recgpt query \"select method, user_id, rank, tag from intent_tags where ds = '{ds}' order by 1, 2, 3\"{option}",
            f"  recgpt status --ds {ds}{option}",
            f"  recgpt night --ds {ds} --users N{option}      with N above the users there are: computes the new ones only",
            f"  recgpt night --ds {ds} --rebuild{option}      computes the night again, from the recorded answers",
            "",
        ]
    )


def changed_text(ds: str, found: Standing, option: str) -> str:
    """What changed since the night was made, by name, with both digests."""
    told = [
        f"{method}: {', '.join(names)} changed; made from {found.visible[method]['input_digest']}, now {found.versions[method].digest}"
        for method, names in found.changed.items()
    ]
    return (
        f"the night of {ds} is done, but was made from other inputs than there are now ({'; '.join(told)}); "
        f"to make it again: recgpt night --ds {ds} --rebuild{option}"
    )
