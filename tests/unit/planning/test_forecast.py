"""A night foretold from what is on record: who is computed, reused and carried, which calls, how far it was off afterwards."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recgpt_ops.delta.records import append_records
from recgpt_ops.delta.warehouse import Warehouse, open_warehouse
from recgpt_ops.ids import row_id, user_bucket
from recgpt_ops.ledger.segments import SHARED_BUCKET, SegmentWriter, pack
from recgpt_ops.nights import Standing
from recgpt_ops.planning.accuracy import error_text, forecast_error
from recgpt_ops.planning.budget import night_budget
from recgpt_ops.planning.forecast import PlannedUser, done_night, forecast_night, total_of
from recgpt_ops.planning.paces import GUESS, stage_paces
from recgpt_ops.planning.reuse import find_reuse, template_ids
from recgpt_ops.settings import Settings, load_settings

DS = "2017-10-30"
NOW = frozenset({"planner words", "expert words", "arbiter words"})
MODEL = "smollm2-135m-instruct"
NOTHING_CHANGED = Standing({}, {}, {}, {}, {}, None)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings({}, warehouse=str(tmp_path / "warehouse"))


@pytest.fixture
def warehouse(settings: Settings) -> Warehouse:
    return open_warehouse(settings.warehouse, create=True)


def record(warehouse: Warehouse, *calls: tuple[str, str | None, str], stage: str = "intents", model: str = MODEL) -> None:
    """Recorded answers of method v2: (role, user or None where it is shared, template)."""
    writer = SegmentWriter(Path(warehouse.root) / "_ledger" / DS / "v2" / stage / "0000-1023", 1)
    for number, (role, user_id, template) in enumerate(calls):
        row = {"role": role, "user_id": user_id, "prompt_id": template, "model": model, "status": "ok", "attempt": 1}
        bucket = SHARED_BUCKET if user_id is None else user_bucket(user_id)
        writer.append(pack(row_id((role, user_id, template, number, model)), bucket, {"row": row, "text": "", "logprobs": None}))
    writer.close()


def reuse(warehouse: Warehouse, templates: frozenset[str] = NOW):
    return find_reuse(Path(warehouse.root) / "_ledger", ds=DS, method="v2", stage="intents", model=MODEL, templates=templates)


def night(warehouse: Warehouse, ds: str, stage: str, *, calls: int = 0, seconds: float, detail: dict[str, object], methods=("v2",)) -> None:
    """One finished stage of a recorded night."""
    row = {
        "ds": ds, "scenario": "default", "method": "all", "stage": stage, "attempt": 1, "state": "done", "run_id": "r",
        "publish_id": f"p{ds}",
        "counts_in": 1, "counts_out": 1, "quarantined_count": 0, "calls_made": calls, "calls_reused": 0, "input_digest": None,
        "detail": json.dumps({"methods": list(methods), **detail}), "seconds": seconds, "peak_memory_mb": 1.0,
        "recorded_at": datetime(2026, 1, int(ds[-2:]), tzinfo=UTC),
    }  # fmt: skip
    append_records(warehouse, "nights", [row])


def test_case_014_a_word_in_the_experts_prompt_leaves_the_planners_calls_reused(warehouse):
    calls = [("planner", "u1", "planner words"), ("expert", "u1", "expert words"), ("arbiter", "u1", "arbiter words")]
    record(warehouse, *calls, ("arbiter_null", None, "arbiter words"))
    assert (reuse(warehouse).total, reuse(warehouse).changed_roles) == (4, ())
    changed = reuse(warehouse, NOW - {"expert words"} | {"expert other words"})
    assert (dict(changed.roles), changed.changed_roles) == ({"planner": 1}, ("expert",))
    record(warehouse, ("expert", "u1", "expert other words"))  # the night was made again since: what it asked then fits
    again = reuse(warehouse, NOW - {"expert words"} | {"expert other words"})
    assert again.changed_roles == ()


def test_case_017_what_a_killed_night_has_asked_is_not_asked_again(warehouse):
    record(warehouse, *[("planner", f"u{number}", "planner words") for number in range(3)], ("expert", "u0", "expert words"))
    found = reuse(warehouse)
    assert (found.answers["u0"], found.answers["u1"], found.changed_roles) == (2, 1, ())


def test_another_models_answers_are_of_no_use(warehouse):
    record(warehouse, ("planner", "u1", "planner words"), model="another")
    assert reuse(warehouse).total == 0


def test_before_any_night_numbers_are_a_stated_guess_within_the_budget(warehouse, settings):
    users = [PlannedUser("v2", f"u{number}", "forced") for number in range(4)]
    forecast = {
        stage.stage: stage
        for stage in forecast_night(warehouse, settings, ds=DS, methods=["v2"], users=users, carried=2, found=NOTHING_CHANGED)
    }
    intents = forecast["intents"]
    assert (intents.compute, intents.reuse, intents.carry, intents.why, intents.basis) == (4, 0, 2, "forced 4", GUESS)
    assert intents.calls == night_budget(settings, {"v2": 4})["intents"].calls
    assert (intents.price, forecast["behavior_days"].compute) == (None, None)


def test_seconds_tokens_and_calls_are_those_of_a_recorded_night_of_the_same_method_and_model(warehouse, settings):
    """Half of the budget in 100 s of which 10 are there without any call: twice the users take twice the calls and 190 s."""
    half = night_budget(settings, {"v2": 2})["intents"].calls // 2
    account = {"prompt_tokens": half * 400, "completion_tokens": half * 5}
    for ds, calls, seconds in (("2017-10-27", 0, 10.0), ("2017-10-28", half, 100.0)):
        night(warehouse, ds, "night_users", seconds=5.0, detail={"users_by_status": {"computed": 2}})
        night(warehouse, ds, "intents", calls=calls, seconds=seconds, detail={"engine": {"model": MODEL}, "account": account})
    night(warehouse, "2017-10-29", "night_users", seconds=5.0, detail={"users_by_status": {"computed": 2}})
    night(warehouse, "2017-10-29", "intents", calls=1, seconds=9999.0, detail={"engine": {"model": "another"}, "account": account})
    users = [PlannedUser("v2", f"u{number}", "forced") for number in range(4)]
    priced = replace(
        settings,
        engine=replace(settings.engine, price_per_million_prompt_tokens=1.0, price_per_million_completion_tokens=2.0, currency="EUR"),
    )
    forecast = forecast_night(warehouse, priced, ds=DS, methods=["v2"], users=users, carried=0, found=NOTHING_CHANGED)
    intents = next(stage for stage in forecast if stage.stage == "intents")
    assert intents.basis == "attempt 1 of 2017-10-28"
    assert intents.calls == pytest.approx(2 * half, abs=1)
    assert intents.seconds == pytest.approx(190.0, abs=1.0)
    assert (intents.prompt_tokens, intents.completion_tokens) == (400 * intents.calls, 5 * intents.calls)
    assert intents.price == pytest.approx((400 * 1.0 + 5 * 2.0) * intents.calls / 1e6)
    assert (intents.currency, total_of(forecast)["price"] >= intents.price) == ("EUR", True)


def test_users_whose_night_is_done_are_reused_until_a_prompt_changes(warehouse, settings, monkeypatch):
    record(warehouse, *[(role, "u1", f"{role} words") for role in ("planner", "expert", "arbiter")])
    users = [PlannedUser("v2", "u1", "forced", is_fresh=False)]
    templates = {"agents": NOW, "explanations": frozenset(), "judges": frozenset()}
    monkeypatch.setattr("recgpt_ops.planning.forecast.template_ids", templates.__getitem__)

    def intents(found: Standing = NOTHING_CHANGED):
        stages = forecast_night(warehouse, settings, ds=DS, methods=["v2"], users=users, carried=0, found=found)
        return {stage.stage: stage for stage in stages}

    done = intents()["intents"]
    assert (done.compute, done.reuse, done.calls, done.calls_reused) == (0, 1, 0, 3)
    assert done.why == "on record 1; forced 1"
    templates["agents"] = NOW - {"expert words"}
    changed = intents()
    assert (changed["intents"].compute, changed["intents"].reuse, changed["intents"].calls_reused) == (1, 0, 1)
    assert changed["intents"].why == "v2: changed prompt of expert, planner reused; forced 1"
    assert changed["tag_verdicts"].why == "v2: follows the changed expert; forced 1"
    templates["agents"] = NOW
    late = intents(replace_changed({"v2": ["feed behavior_events", "prompts of judges"]}))["intents"]
    assert (late.calls_reused, late.why) == (0, "v2: changed inputs: feed behavior_events; forced 1")


def replace_changed(changed: dict[str, list[str]]) -> Standing:
    return NOTHING_CHANGED._replace(changed=changed)


def test_template_ids_are_those_of_the_prompts_that_are_asked_with():
    assert all(len(template_ids(room)) > 2 for room in ("agents", "explanations", "judges"))


def test_paces_of_stages_that_ask_nothing_are_their_own_seconds(warehouse, settings):
    night(warehouse, "2017-10-28", "night_users", seconds=7.5, detail={"users_by_status": {"computed": 2}})
    paces = stage_paces(warehouse, settings, ["v2"])
    assert (paces["night_users"].fixed_seconds, paces["night_users"].basis) == (7.5, "attempt 1 of 2017-10-28")
    assert paces["publish_night"].basis == GUESS


def test_a_forecasts_error_is_what_came_over_what_was_foretold():
    planned = {"calls": 300, "prompt_tokens": 0, "completion_tokens": 0, "seconds": 400.0}
    taken = {"calls": 330, "prompt_tokens": 5, "completion_tokens": 0, "seconds": 380.0}
    error = forecast_error({"intents": planned, "publish_night": planned}, {"intents": taken})  # the last stage has not ended yet
    assert {name: numbers["error"] for name, numbers in error.items()} == {
        "calls": 0.1,
        "prompt_tokens": None,
        "completion_tokens": 0.0,
        "seconds": -0.05,
    }
    assert error_text(error).startswith("calls 300 foretold, 330 in fact (+10%), prompt tokens 0 foretold, 5 in fact, ")


def test_a_done_night_reuses_everybody_in_every_stage():
    stages = done_night(NOTHING_CHANGED._replace(present={"v1": 8, "v2": 8, "v3": 5}), ["v1", "v2"])
    assert {(stage.compute, stage.reuse, stage.carry) for stage in stages} == {(0, 16, 0), (None, None, None)}
    assert total_of(stages)["seconds"] == 0.0


def test_what_the_visible_users_share_is_not_counted_for_newcomers(warehouse, settings, monkeypatch):
    record(warehouse, ("arbiter_null", None, "arbiter words"), ("planner", "u2", "planner words"))
    monkeypatch.setattr("recgpt_ops.planning.forecast.template_ids", lambda room: NOW)
    reused = {}
    for name, visible in (("killed night", {}), ("visible night", {"v2": {}})):
        found, users = NOTHING_CHANGED._replace(visible=visible), [PlannedUser("v2", "u2", "forced")]
        stages = forecast_night(warehouse, settings, ds=DS, methods=["v2"], users=users, carried=1, found=found)
        reused[name] = next(stage.calls_reused for stage in stages if stage.stage == "intents")
    assert reused == {"killed night": 2, "visible night": 1}
