"""What a night will take, told before anything runs: rows to compute, to reuse and to carry, calls, tokens, seconds, money.

audience: u1 new_behavior, u2 forced, u3 carried; u1 is on record already, u2 is not
->  intents: compute 1, reuse 1, carry 1 ("forced 1, on record 1"), 41 calls, 18,700 prompt tokens, 62 s, by attempt 2 of 2017-10-29

Calls are expected, not at most: the budget of the recipes times the share of it that a recorded night needed, less what is on record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow.compute as pc

from recgpt_ops.delta.reading import read_generation
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.judges.rules import judge_settings
from recgpt_ops.ledger.account import Prices
from recgpt_ops.ledger.summaries import ledger_root, prices_of
from recgpt_ops.nights import Standing
from recgpt_ops.planning.budget import Planned, night_budget
from recgpt_ops.planning.paces import CALL_STAGES, JUDGE_STAGES, Pace, stage_paces
from recgpt_ops.planning.reuse import Reuse, find_reuse, template_ids
from recgpt_ops.progress import STAGES
from recgpt_ops.settings import Settings

ROOM_OF = {"intents": "agents", "explanations": "explanations", "tag_verdicts": "judges", "explanation_verdicts": "judges"}
ROWLESS = ("behavior_days", "behavior_months", "behavior_years", "environment_signals")  # not of users, so no users are counted


class PlannedUser(NamedTuple):
    """One user whom a night would compute by one method. `is_fresh`: no visible generation of the day has a result yet."""

    method: str
    user_id: str
    reason: str
    is_fresh: bool = True


class StageForecast(NamedTuple):
    """One stage of a night. Rows are users, once a method; None where the stage has none of its own. `price` None: no prices are set."""

    stage: str
    compute: int | None
    reuse: int | None
    carry: int | None
    why: str
    calls: int
    calls_reused: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    price: float | None
    currency: str | None
    basis: str


def forecast_night(
    warehouse: Warehouse,
    settings: Settings,
    *,
    ds: str,
    methods: Sequence[str],
    users: Sequence[PlannedUser],
    carried: int,
    found: Standing,
) -> list[StageForecast]:
    """The forecast of every stage; `carried` rows are kept by reference. `found` tells which inputs changed since the visible night."""
    paces = stage_paces(warehouse, settings, methods)
    forecast: list[StageForecast] = []
    follows: dict[str, str] = {}  # method -> why nothing of its later stages can be counted on
    for stage in STAGES:
        if stage in CALL_STAGES:
            forecast.append(
                call_stage(warehouse, settings, stage, paces[stage], ds=ds, users=users, carried=carried, found=found, follows=follows)
            )
        else:
            forecast.append(plain_stage(stage, paces[stage], users=None if stage in ROWLESS else users, carried=carried))
    return forecast


def done_night(found: Standing, methods: Sequence[str]) -> list[StageForecast]:
    """The forecast of a night of which nothing is missing: every stage is reused as it is."""
    users = sum(found.present[method] for method in methods)
    told = []
    for stage in STAGES:
        compute, reuse, carry = (None, None, None) if stage in ROWLESS else (0, users, 0)
        told.append(StageForecast(stage, compute, reuse, carry, "done", 0, 0, 0, 0, 0.0, None, None, "nothing runs"))
    return told


def plain_stage(stage: str, pace: Pace, *, users: Sequence[PlannedUser] | None, carried: int) -> StageForecast:
    """A stage that asks no model. `users` None: it is of no users."""
    compute, reuse, carry = (None, None, None) if users is None else (len(users), 0, carried)
    why = "" if users is None else reasons(users)
    return StageForecast(stage, compute, reuse, carry, why, 0, 0, 0, 0, round(pace.fixed_seconds, 1), None, None, pace.basis)


def call_stage(
    warehouse: Warehouse, settings: Settings, stage: str, pace: Pace, *, ds: str, users: Sequence[PlannedUser], carried: int,
    found: Standing, follows: dict[str, str],
) -> StageForecast:  # fmt: skip
    """A stage that asks a model, all methods together."""
    chosen = judge_settings(settings) if stage in JUDGE_STAGES else settings
    calls, reused, computed, told = 0, 0, 0, list[str]()
    for method in dict.fromkeys(user.method for user in users):
        mine = [user for user in users if user.method == method]
        reuse = find_reuse(
            ledger_root(settings, warehouse.root), ds=ds, method=method, stage=stage, model=chosen.engine.model,
            templates=template_ids(ROOM_OF[stage]),
        )  # fmt: skip
        if method in found.visible and any(user.is_fresh for user in mine):
            del reuse.answers[None]  # shared ones were asked for the users of the visible night; newcomers want others
        changed = changed_inputs(found, method)
        if changed:
            follows.setdefault(method, f"changed inputs: {', '.join(changed)}")
        if method in follows:
            reuse = Reuse()
        made = method_calls(settings, stage, pace, mine, reuse)
        calls, reused, computed = calls + made.calls, reused + made.reused, computed + made.users
        if method in follows:
            told.append(f"{method}: {follows[method]}")
        elif reuse.changed_roles:
            kept = f", {' and '.join(sorted(reuse.roles))} reused" if reuse.roles else ""
            told.append(f"{method}: changed prompt of {', '.join(reuse.changed_roles)}{kept}")
            follows[method] = f"follows the changed {reuse.changed_roles[0]}"
    on_record = len(users) - computed
    why = "; ".join([*told, *([f"on record {on_record}"] if on_record else []), reasons(users)])
    prompt, completion = round(calls * pace.prompt_tokens), round(calls * pace.completion_tokens)
    prices: Prices | None = prices_of(chosen.engine)
    price = None if prices is None else prices.of(prompt, completion)
    return StageForecast(
        stage, computed, on_record, carried, why, calls, reused, prompt, completion, round(pace.fixed_seconds + calls * pace.seconds, 1),
        price, prices.currency if prices else None, pace.basis,
    )  # fmt: skip


class MethodCalls(NamedTuple):
    """Calls of one method and stage, and the users for whom some of them have to be made."""

    calls: int
    reused: int
    users: int


def method_calls(settings: Settings, stage: str, pace: Pace, users: Sequence[PlannedUser], reuse: Reuse) -> MethodCalls:
    """What is expected for these users, less what fits on record. Of users whose night was done nothing is asked that still fits."""
    method = users[0].method
    done = [user for user in users if not user.is_fresh]
    needed = expected(settings, stage, pace, method, len(users))
    if done and len(done) == len(users) and not reuse.changed_roles and reuse.total:
        return MethodCalls(0, reuse.total, 0)
    of_users = sum(reuse.answers[user.user_id] for user in users) + reuse.answers[None]
    usable = min(of_users, needed)
    each = needed / len(users)
    short = sum(reuse.answers[user.user_id] + reuse.answers[None] / len(users) < each for user in users)
    return MethodCalls(needed - usable, usable, max(short, int(needed > usable)))


def expected(settings: Settings, stage: str, pace: Pace, method: str, users: int) -> int:
    """Calls of so many users when nothing is on record."""
    return round(night_budget(settings, {method: users}).get(stage, Planned(0, 0)).calls * pace.share)


def changed_inputs(found: Standing, method: str) -> list[str]:
    """What changed besides prompts, whose effect is known role by role."""
    return [name for name in found.changed.get(method, []) if not name.startswith("prompts of ")]


def reasons(users: Sequence[PlannedUser]) -> str:
    """`new_behavior 5, forced 3`, the commonest first."""
    return ", ".join(f"{reason} {count}" for reason, count in Counter(user.reason for user in users).most_common())


def total_of(forecast: Sequence[StageForecast]) -> dict[str, float]:
    """Calls, tokens and seconds of all stages, and the price where prices are set."""
    names = ("calls", "calls_reused", "prompt_tokens", "completion_tokens", "seconds")
    told: dict[str, float] = {name: sum(getattr(stage, name) for stage in forecast) for name in names}
    if any(stage.price is not None for stage in forecast):
        told["price"] = sum(stage.price or 0.0 for stage in forecast)
    return told


def as_detail(forecast: Sequence[StageForecast]) -> dict[str, Any]:
    """The forecast as the night's record keeps it: stage -> its numbers."""
    return {stage.stage: {name: value for name, value in stage._asdict().items() if name != "stage"} for stage in forecast}


def planned_users(rows: Sequence[Mapping[str, Any]], *, publish_id: str, done: Mapping[str, set[str]]) -> list[PlannedUser]:
    """Whom the generation computes itself, of the rows of its audience; `done`: by method, who has a visible result of the day."""
    return sorted(
        PlannedUser(row["method"], row["user_id"], row["reason"], row["user_id"] not in done.get(row["method"], set()))
        for row in rows
        if row["made_by"] == publish_id and row["status"] == "computed"
    )


def done_users(warehouse: Warehouse, found: Standing) -> dict[str, set[str]]:
    """By method the users who have a visible result that was computed for this day."""
    done: dict[str, set[str]] = {}
    for method, row in found.visible.items():
        shown = read_generation(warehouse, "night_users", ds=str(row["ds"]), publish_id=str(row["publish_id"]), methods=[method])
        fresh = shown.filter((pc.field("status") == "computed") & (pc.field("computed_ds") == row["ds"]))
        done[method] = set(map(str, fresh["user_id"].to_pylist()))
    return done
