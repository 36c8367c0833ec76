"""`recgpt plan`: what a night would compute, reuse and carry, and what that takes, before anything runs."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recgpt_ops.commands.night import MethodOption, UserOption, night_question
from recgpt_ops.commands.options import FormatOption, WarehouseOption, as_option
from recgpt_ops.commands.output import plain, render_rows
from recgpt_ops.errors import UsageError

if TYPE_CHECKING:
    from recgpt_ops.delta.warehouse import Warehouse
    from recgpt_ops.nights import Asked, Standing
    from recgpt_ops.planning.forecast import StageForecast
    from recgpt_ops.settings import Settings

EXAMPLE = "Example: recgpt plan --ds 2017-10-30 --users 8"
PLAN_ID = "plan"  # stands where a generation's publish_id would; nothing is written under it


def plan(
    ds: Annotated[str, typer.Option("--ds", metavar="DATE", help="Business date, YYYY-MM-DD.")],
    users: Annotated[int | None, typer.Option("--users", min=1, metavar="N", help="As `recgpt night` takes it.")] = None,
    user: UserOption = None,
    users_file: Annotated[Path | None, typer.Option("--users-file", metavar="FILE", help="Users by id, one a line.")] = None,
    method: MethodOption = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="As if the night were computed again, from recorded answers where they fit.")
    ] = False,
    form: FormatOption = "table",
    warehouse: WarehouseOption = None,
) -> None:
    """Tells for each stage of a night how many users it would compute, reuse and carry, and why.

    Also calls, tokens and seconds, and money where prices are set. Nothing is computed and nothing is written.
    """
    checked, methods, settings, opened, asked, found = night_question(ds, users, user, users_file, method, warehouse)
    from recgpt_ops.planning.forecast import StageForecast, as_detail, done_night, total_of

    is_done = found.is_done and not rebuild
    forecast = done_night(found, methods) if is_done else make_forecast(opened, settings, checked, methods, asked, found, rebuild=rebuild)
    if form == "json":
        told = {"ds": checked, "stages": as_detail(forecast), "total": total_of(forecast), "changed": dict(found.changed)}
        sys.stdout.write(json.dumps(plain(told), ensure_ascii=False, indent=1) + "\n")
        return
    columns = [name for name in StageForecast._fields if any(getattr(stage, name) is not None for stage in forecast)]
    sys.stdout.write(render_rows([stage._asdict() for stage in forecast], columns, form=form))
    if form == "table" and is_done:
        sys.stdout.write(f"The night of {checked} is done: nothing would run. `--rebuild` tells what computing it again would take.\n")
    elif form == "table":
        again = " --rebuild" if rebuild or found.changed else ""
        options = night_options(users, user, users_file, method) + again + as_option(warehouse)
        sys.stdout.write(plan_text(found, forecast) + f"  recgpt night --ds {checked}{options}\n")


def make_forecast(
    warehouse: Warehouse, settings: Settings, ds: str, methods: Sequence[str], asked: Asked, found: Standing, *, rebuild: bool
) -> list[StageForecast]:
    """The forecast for the audience that the night would have, found by the night's own code."""
    from recgpt_ops.planning.forecast import done_users, forecast_night, planned_users

    computed = tuple(methods) if rebuild or found.changed else found.open_methods
    why = "rebuild" if (rebuild or found.changed) and found.visible else found.why
    rows, carried = audience(warehouse, settings, ds, computed, asked, why)
    users = planned_users(rows, publish_id=PLAN_ID, done=done_users(warehouse, found))
    return forecast_night(warehouse, settings, ds=ds, methods=computed, users=users, carried=carried, found=found)


def audience(
    warehouse: Warehouse, settings: Settings, ds: str, methods: Sequence[str], asked: Asked, why: str
) -> tuple[list[dict[str, Any]], int]:
    """The rows of night_users that the first stage of the night would make, and how many it would keep by reference."""
    from recgpt_ops.contexts.audience import NightKey
    from recgpt_ops.contexts.night_audience import Wanted, night_audience, split_audience
    from recgpt_ops.contexts.signals import load_weather
    from recgpt_ops.spark import spark_session

    session, weather = spark_session(settings.spark), load_weather(settings.signals.weather_connector)
    wanted = Wanted(asked.users, asked.user_ids, why)
    rows: list[dict[str, Any]] = []
    carried = 0
    for method in methods:
        key = NightKey(ds, settings.night.scenario, method, PLAN_ID, 0)
        made = night_audience(session, warehouse, key, wanted, policy=settings.audience, weather=weather)
        own, kept = split_audience(made, PLAN_ID)
        rows, carried = rows + own, carried + kept
    if not rows and not carried:
        raise UsageError(f"ds={ds}: there is nobody to compute; name users with --user or --users, or take a date with events")
    return rows, carried


def night_options(users: int | None, user: Sequence[str] | None, users_file: Path | None, method: Sequence[str] | None) -> str:
    """The options that were given, as `recgpt night` takes them."""
    words = [] if users is None else [f"--users {users}"]
    words += [f"--user {shlex.quote(user_id)}" for user_id in user or ()]
    words += [] if users_file is None else [f"--users-file {shlex.quote(str(users_file))}"]
    words += [f"--method {shlex.quote(name)}" for name in method or ()]
    return "".join(f" {word}" for word in words)


def plan_text(found: Standing, forecast: Sequence[StageForecast]) -> str:
    """The totals in one line, and what changed."""
    from recgpt_ops.planning.forecast import total_of
    from recgpt_ops.progress import clock

    total = total_of(forecast)
    money = ""
    if "price" in total:
        money = f", {total['price']:.2f} {next(stage.currency for stage in forecast if stage.currency)}"
    told = (
        f"In all about {total['calls']:,.0f} calls, {total['calls_reused']:,.0f} more on record, {total['prompt_tokens']:,.0f} prompt "
        f"and {total['completion_tokens']:,.0f} written tokens, {clock(total['seconds'])}{money}.\n"
    )
    if found.changed:
        names = sorted({name for some in found.changed.values() for name in some})
        told += f"Changed since the visible night: {', '.join(names)}.\n"
    return told
