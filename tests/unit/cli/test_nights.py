from __future__ import annotations

import shutil

import pytest

from recgpt_ops import nights
from recgpt_ops.delta.pointer import claim_attempt, move_pointer, visible_publications
from recgpt_ops.delta.reading import read_rows
from recgpt_ops.errors import NightError, UsageError
from recgpt_ops.ids import user_order
from recgpt_ops.nights import NOBODY, Asked, asked_users, check_ds, input_version, standing
from recgpt_ops.runs import StageCounts, claim_common_attempt, record_state
from tests.unit.cli.conftest import DS, add_audience, add_events, add_tags, begin, night_run, publish

BY_HASH = sorted(["u1", "u2", "u3"], key=user_order)


def stand(warehouse, settings, asked=NOBODY, methods=("v2",)):
    return standing(warehouse, settings, ds=DS, scenario="default", methods=methods, asked=asked)


def test_methods_that_run_apart_have_attempts_apart(warehouse, settings):
    """Otherwise `nights`, whose rows are of all methods of a run, would hold two runs under one number and drop the second."""
    claimed = [
        claim_common_attempt(warehouse, ds=DS, scenario="default", methods=methods) for methods in (["v2"], ["v1"], ["v1", "v2"], ["v2"])
    ]
    assert claimed == [1, 2, 3, 4]
    assert claim_common_attempt(warehouse, ds="2017-10-29", scenario="default", methods=["v1"]) == 1


def test_a_night_that_never_ran_is_to_be_run(warehouse, settings):
    found = stand(warehouse, settings)
    assert (found.is_done, found.why, found.changed) == (False, "night", {})


def test_a_done_night_is_done_for_the_policy_and_for_everyone_in_it(done, settings):
    assert stand(done, settings).is_done
    assert stand(done, settings, Asked(None, ("u1", "u2"))).is_done


def test_users_who_are_not_in_it_make_it_a_night_of_more_users(done, settings):
    found = stand(done, settings, Asked(None, ("u1", "u3")))
    assert (found.is_done, found.why, found.missing) == (False, "more_users", {"v2": ("u3",)})


def test_a_method_that_is_missing_is_the_only_one_with_something_to_do(done, settings):
    found = stand(done, settings, methods=("v1", "v2"))
    assert (found.is_done, found.open_methods, found.why) == (False, ("v1",), "night")
    assert stand(done, settings, Asked(None, ("u1", "u3")), methods=("v1", "v2")).open_methods == ("v1", "v2")


@pytest.mark.parametrize(
    ("asked", "rebuild", "most"),
    [
        (NOBODY, False, {"v1": 2, "v2": 0}),  # the newcomer takes the audience that is there
        (NOBODY, True, {"v1": 2, "v2": 2}),
        (Asked(None, ("u1", "u3")), False, {"v1": 2, "v2": 1}),
        (Asked(None, ("u3",)), True, {"v1": 1, "v2": 3}),
    ],
)
def test_how_many_users_a_night_computes_is_known_before_it_starts(done, settings, asked, rebuild, most):
    found = stand(done, settings, asked, methods=("v1", "v2"))
    assert found.most_users(["v1", "v2"], rebuild=rebuild, policy=8) == most


def test_before_any_night_the_policy_says_how_many(warehouse, settings):
    assert stand(warehouse, settings).most_users(["v2"], rebuild=False, policy=8) == {"v2": 8}


@pytest.mark.parametrize("import_id_and_day", [("late", DS), ("other", "2017-10-01")])
def test_case_015_an_import_into_the_nights_past_is_told_by_the_feeds_name(done, settings, import_id_and_day):
    add_events(done, *import_id_and_day)
    found = stand(done, settings)
    assert (found.is_done, found.changed) == (False, {"v2": ["feed behavior_events"]})


def test_an_import_of_later_days_changes_nothing(done, settings):
    add_events(done, "tomorrow", "2017-10-31")
    assert stand(done, settings).is_done


def test_case_014_a_changed_prompt_is_a_changed_input(done, settings, monkeypatch, tmp_path):
    for room in ("agents", "explanations", "judges"):
        shutil.copytree(nights.ROOMS / room / "prompts", tmp_path / room / "prompts")
    monkeypatch.setattr(nights, "ROOMS", tmp_path)
    assert stand(done, settings).is_done
    for changed, room in enumerate(("agents", "explanations", "judges"), start=1):
        (tmp_path / room / "prompts" / "new_v1.en.jinja").write_text("other words")
        assert len(stand(done, settings).changed["v2"]) == changed
    assert stand(done, settings).changed == {"v2": ["prompts of agents", "prompts of explanations", "prompts of judges"]}


def test_smallest_hashes_and_named_users_make_up_who_is_asked_for(warehouse):
    assert asked_users(warehouse, DS, NOBODY) == ()
    assert asked_users(warehouse, DS, Asked(2, ())) == tuple(BY_HASH[:2])
    assert asked_users(warehouse, DS, Asked(1, (BY_HASH[2],))) == (BY_HASH[2], BY_HASH[0])
    assert asked_users(warehouse, DS, Asked(99, ())) == tuple(BY_HASH)


def test_an_unknown_user_is_told(warehouse):
    with pytest.raises(UsageError, match="no profile as of 2017-10-30 for 'nobody'"):
        asked_users(warehouse, DS, Asked(None, ("u1", "nobody")))


@pytest.mark.parametrize(("ds", "is_fine"), [("2017-10-29", True), (DS, True), ("2017-10-28", False), ("2017-10-31", False)])
def test_a_day_outside_of_the_events_is_refused_with_the_days_there_are(warehouse, ds, is_fine):
    if is_fine:
        check_ds(warehouse, ds)
    else:
        with pytest.raises(UsageError, match=f"ds={ds} has no data: .* from 2017-10-29 to 2017-10-30"):
            check_ds(warehouse, ds)


def test_publishing_shows_the_generation_as_it_is_when_nobody_failed(done, settings):
    [row] = read_rows(done, "publications")
    assert (row["publish_id"], row["fence"], row["why"], row["published_by"]) == ("p1", 1, "night", "run-1")
    assert row["input_digest"] == input_version(done, settings, ds=DS, method="v2").digest


def test_a_user_without_a_result_is_shown_as_failed_and_the_others_keep_their_rows(warehouse, settings):
    begin(warehouse, settings, "p1")
    add_audience(warehouse, "p1", u1="computed", u2="computed", u3="carried")
    add_tags(warehouse, "p1", "u1")
    counts = publish(warehouse, settings, "p1")
    shown = visible_publications(warehouse)[DS, "default", "v2"]["publish_id"]
    rows = {row["user_id"]: (row["status"], row["made_by"]) for row in read_rows(warehouse, "night_users") if row["publish_id"] == shown}
    assert shown != "p1"
    assert rows == {"u1": ("computed", "p1"), "u2": ("failed", "p1"), "u3": ("carried", "p0")}
    assert (counts.counts_in, counts.counts_out, counts.detail["failed_users"]) == (3, 2, {"v2": 1})


def test_publishing_again_writes_nothing(done, settings):
    publish(done, settings, "p1")
    assert len(read_rows(done, "publications")) == 1


def test_an_older_attempt_does_not_overwrite_a_newer_one(done, settings):
    for _ in range(3):
        claim_attempt(done, ds=DS, scenario="default", method="v2")
    begin(done, settings, "p3", attempt=3)
    add_audience(done, "p3", attempt=3, u1="computed")
    add_tags(done, "p3", "u1")
    publish(done, settings, "p3", attempt=3)
    begin(done, settings, "p2", attempt=2)
    add_audience(done, "p2", attempt=2, u1="computed")
    add_tags(done, "p2", "u1")
    with pytest.raises(NightError, match="attempt 2 comes after a newer one"):
        publish(done, settings, "p2", attempt=2)
    assert visible_publications(done)[DS, "default", "v2"]["publish_id"] == "p3"


def test_a_generation_without_its_first_stage_is_not_published(warehouse, settings):
    with pytest.raises(NightError, match="no finished night_users of generation p9"):
        publish(warehouse, settings, "p9")


def test_the_version_of_a_night_is_that_of_its_beginning(warehouse, settings):
    """An import that lands while the night runs must not look as if the night had read it."""
    begin(warehouse, settings, "p1")
    add_audience(warehouse, "p1", u1="computed")
    add_tags(warehouse, "p1", "u1")
    add_events(warehouse, "meanwhile", DS)
    publish(warehouse, settings, "p1")
    assert stand(warehouse, settings).changed == {"v2": ["feed behavior_events"]}


def show_night(warehouse, ds, publish_id, **statuses):
    """Makes an earlier night the visible one of its day."""
    add_audience(warehouse, publish_id, ds=ds, **statuses)
    fence = claim_attempt(warehouse, ds=ds, scenario="default", method="v2")
    move_pointer(
        warehouse, ds=ds, scenario="default", method="v2", fence=fence, publish_id=publish_id, input_digest="d",
        certificate_sha256="c", why="night", published_by="test",
    )  # fmt: skip


def shown_rows(warehouse, ds=DS):
    shown = visible_publications(warehouse)[ds, "default", "v2"]["publish_id"]
    return {
        row["user_id"]: (row["status"], row["reason"], row["made_by"], row["computed_ds"])
        for row in read_rows(warehouse, "night_users")
        if (row["ds"], row["publish_id"]) == (ds, shown)
    }


def test_a_user_who_failed_shows_the_newest_older_result_that_is_young_enough(warehouse, settings):
    show_night(warehouse, "2017-10-15", "old", u1="computed", u2="computed", u3="computed")  # 15 days: too old
    show_night(warehouse, "2017-10-16", "older", u1="computed", u2="computed")
    show_night(warehouse, "2017-10-29", "newer", u1="computed", u2="failed")
    begin(warehouse, settings, "p1")
    add_audience(warehouse, "p1", u1="computed", u2="computed", u3="computed", u4="computed")
    add_tags(warehouse, "p1", "u4")
    counts = publish(warehouse, settings, "p1")
    assert shown_rows(warehouse) == {
        "u1": ("carried", "retry", "newer", "2017-10-29"),
        "u2": ("carried", "retry", "older", "2017-10-16"),
        "u3": ("failed", "forced", "p1", DS),
        "u4": ("computed", "forced", "p1", DS),
    }
    assert (counts.detail["failed_users"], counts.detail["carried_users"], counts.counts_out) == ({"v2": 1}, {"v2": 2}, 3)


def test_a_rebuild_that_fails_on_a_user_takes_the_older_result_of_the_day_not_away(done, settings):
    claim_common_attempt(done, ds=DS, scenario="default", methods=["v2"])
    begin(done, settings, "p2", attempt=2)
    add_audience(done, "p2", attempt=2, u1="computed", u2="computed")
    add_tags(done, "p2", "u1")
    publish(done, settings, "p2", attempt=2)
    assert shown_rows(done) == {"u1": ("computed", "forced", "p2", DS), "u2": ("carried", "retry", "p1", DS)}


@pytest.mark.parametrize(("failed", "outcome"), [(0, "ok"), (1, "ok"), (2, "degraded")])
def test_a_night_is_degraded_when_more_users_failed_than_the_settings_take_for_well(warehouse, settings, failed, outcome):
    """1 of 20 is the ratio itself, 2 of 20 are above it."""
    users = [f"u{number}" for number in range(20)]
    begin(warehouse, settings, "p1")
    add_audience(warehouse, "p1", **dict.fromkeys(users, "computed"))
    add_tags(warehouse, "p1", *users[failed:])
    counts = publish(warehouse, settings, "p1")
    told = {"publish_night": "2 of 20"} if failed == 2 else {}
    assert (counts.detail["outcome"], counts.detail["degraded_stages"]) == (outcome, told)
    assert (DS, "default", "v2") in visible_publications(warehouse)


def test_a_degraded_stage_makes_the_night_degraded(warehouse, settings):
    begin(warehouse, settings, "p1")
    add_audience(warehouse, "p1", u1="computed")
    add_tags(warehouse, "p1", "u1")
    detail = {"outcome": "degraded", "inputs_failed": 3, "inputs": 16}
    record_state(night_run(warehouse, settings, "p1", stage="explanations"), StageCounts(detail=detail), state="done", seconds=1.0)
    counts = publish(warehouse, settings, "p1")
    assert (counts.detail["outcome"], counts.detail["degraded_stages"]) == ("degraded", {"explanations": "3 of 16"})
