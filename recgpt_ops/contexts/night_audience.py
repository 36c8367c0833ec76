"""The audience of one night read from the warehouse: the base, the named users, what changed around them (data_model, section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from recgpt_ops.contexts.audience import (
    TABLE,
    NightKey,
    active_users,
    audience_rows,
    choose_again,
    choose_anew,
    choose_by_name,
    choose_by_policy,
    first_choice,
    smallest_users,
)  # fmt: skip
from recgpt_ops.contexts.behaviors import is_reliable
from recgpt_ops.contexts.buckets import days_before
from recgpt_ops.contexts.feeds import arrived_events, current_profiles
from recgpt_ops.contexts.signals import WeatherConnector, situation_id
from recgpt_ops.delta.pointer import visible_publications
from recgpt_ops.delta.schemas import arrow_schema
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.errors import UsageError
from recgpt_ops.settings import Audience
from recgpt_ops.spark import frame_of, read_delta
from recgpt_ops.tables import load_contract


class Wanted(NamedTuple):
    """Who was asked for: the `users` smallest hashes and users by id, or nobody (the policy); and what the attempt is for."""

    users: int | None
    user_ids: Sequence[str]
    why: str


class Base(NamedTuple):
    """The night_users rows that count so far, and whether they are of the very ds that is being made."""

    rows: DataFrame
    is_same_ds: bool


def night_audience(
    session: SparkSession, warehouse: Warehouse, key: NightKey, wanted: Wanted, *, policy: Audience, weather: WeatherConnector
) -> DataFrame:
    """The night_users rows of one method. UsageError names users without a profile, or says that there is nobody."""
    profiles = current_profiles(session, warehouse, key.ds)
    events = arrived_events(session, warehouse, key.ds)
    base = find_base(session, warehouse, key)
    named = named_users(session, profiles, wanted)
    choices = []
    if wanted.why == "rebuild" and base.is_same_ds:
        choices.append(choose_again(base.rows))
    elif named is None and not base.is_same_ds and (others := users_of_other_methods(session, warehouse, key)) is not None:
        choices.append(others)
    if named is not None and wanted.why == "replay":
        choices.append(choose_anew(named))
    elif named is not None:
        choices.append(choose_by_name(named, base.rows, is_same_ds=base.is_same_ds))
    if not choices:
        situations = changed_situations(session, warehouse, profiles, base.rows, ds=key.ds, weather=weather)
        choices.append(
            choose_by_policy(
                profiles, base.rows, active=active_users(events, key.ds), situations=situations, ds=key.ds, is_same_ds=base.is_same_ds,
                max_users=policy.max_users, max_age_days=policy.max_age_days,
            )
        )  # fmt: skip
    chosen = local_rows(session, first_choice(choices))
    forced = chosen.filter(F.col("reason") == "forced").select("user_id")
    with_history = events.filter(is_reliable()).join(forced, "user_id", "left_semi").select("user_id").distinct()
    return audience_rows(profiles, base.rows, chosen, with_history=with_history, key=key)


def split_audience(audience: DataFrame, publish_id: str) -> tuple[list[dict[str, Any]], int]:
    """The rows that the generation makes itself (method, user_id, status, reason, made_by), and how many others it keeps by reference."""
    own = audience.filter(F.col("made_by") == publish_id).select("method", "user_id", "status", "reason", "made_by")
    return own.toArrow().to_pylist(), audience.filter(F.col("made_by") != publish_id).count()


def local_rows(session: SparkSession, choice: DataFrame) -> DataFrame:
    """The choice as fixed rows: it is used several times, and a sort by hash should run once. Bounded by the audience."""
    return frame_of(session, choice.toArrow())


def find_base(session: SparkSession, warehouse: Warehouse, key: NightKey) -> Base:
    """The visible generation of this ds, else of the newest visible night before it, else no rows."""
    visible = {
        ds: row["publish_id"]
        for (ds, scenario, method), row in visible_publications(warehouse).items()
        if scenario == key.scenario and method == key.method and ds <= key.ds
    }
    if not visible:
        return Base(frame_of(session, arrow_schema(load_contract(TABLE)).empty_table()), is_same_ds=False)
    newest = max(visible)
    rows = read_delta(session, warehouse.path(TABLE)).filter(
        (F.col("ds") == newest)
        & (F.col("publish_id") == visible[newest])
        & (F.col("scenario") == key.scenario)
        & (F.col("method") == key.method)
    )
    return Base(rows, is_same_ds=newest == key.ds)


def users_of_other_methods(session: SparkSession, warehouse: Warehouse, key: NightKey) -> DataFrame | None:
    """(user_id, reason) of everyone whom other methods computed on this ds; None where none is visible.

    A method that comes to a night later gets the audience that is there, so that the methods can be compared.
    """
    shown = [
        row["publish_id"]
        for (ds, scenario, method), row in visible_publications(warehouse).items()
        if (ds, scenario) == (key.ds, key.scenario) and method != key.method
    ]
    if not shown:
        return None
    rows = read_delta(session, warehouse.path(TABLE)).filter(
        (F.col("ds") == key.ds) & F.col("publish_id").isin(*shown) & (F.col("scenario") == key.scenario) & (F.col("method") != key.method)
    )
    return choose_again(rows).groupBy("user_id").agg(F.min("reason").alias("reason"))


def named_users(session: SparkSession, profiles: DataFrame, wanted: Wanted) -> DataFrame | None:
    """The users asked for by name or by number; None when nobody was, then the policy decides."""
    if wanted.users is None and not wanted.user_ids:
        return None
    asked = frame_of(session, pa.table({"user_id": pa.array(sorted(set(wanted.user_ids)), pa.string())}))
    unknown = [row["user_id"] for row in asked.join(profiles, "user_id", "left_anti").collect()]
    if unknown:
        raise UsageError(f"--user: no profile for {', '.join(map(repr, sorted(unknown)))}; only users with a profile can be in a night")
    return asked.unionByName(smallest_users(profiles, wanted.users)) if wanted.users else asked


def changed_situations(
    session: SparkSession, warehouse: Warehouse, profiles: DataFrame, base: DataFrame, *, ds: str, weather: WeatherConnector
) -> DataFrame:
    """(user_id, is_changed) of the users who show rows: whether what surrounds them differs from when these were made."""
    shown = base.filter(F.col("status").isin("computed", "carried")).select("user_id", "method", "scenario", "computed_ds", "made_by")
    made = [(row["computed_ds"], row["made_by"]) for row in shown.select("computed_ds", "made_by").distinct().collect()]
    if not made or not warehouse.exists("user_contexts"):
        return frame_of(session, pa.table({"user_id": pa.array([], pa.string()), "is_changed": pa.array([], pa.bool_())}))
    contexts = read_delta(session, warehouse.path("user_contexts")).filter(
        F.col("ds").isin(*{computed_ds for computed_ds, _ in made}) & F.col("publish_id").isin(*{made_by for _, made_by in made})
    )
    then = contexts.select("user_id", "method", "scenario", F.col("publish_id").alias("made_by"), "situation_id")
    now = current_situations(session, profiles.join(shown.select("user_id"), "user_id", "left_semi"), ds, weather)
    return (
        shown.join(then, ["user_id", "method", "scenario", "made_by"])
        .join(now, "user_id")
        .select("user_id", (F.col("situation_id") != F.col("situation_now")).alias("is_changed"))
    )


def current_situations(session: SparkSession, profiles: DataFrame, ds: str, weather: WeatherConnector) -> DataFrame:
    """(user_id, situation_now); the situation is computed once per place."""
    serve_ds = days_before(ds, -1)
    rows = []
    for place in profiles.select("locale", "region").distinct().collect():
        locale, region = place["locale"], place["region"]
        told = weather(region, locale, serve_ds)
        rows.append((locale, region, situation_id(locale, region, serve_ds, weather=told[0] if told else None)))
    places = pa.table(
        {name: pa.array([row[n] for row in rows], pa.string()) for n, name in enumerate(("locale", "region", "situation_now"))}
    )
    return (
        profiles.select("user_id", "locale", "region")
        .join(frame_of(session, places), ["locale", "region"])
        .select("user_id", "situation_now")
    )
