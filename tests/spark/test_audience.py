from __future__ import annotations

import pytest

from recgpt_ops.contexts.audience import (
    NightKey,
    active_users,
    audience_rows,
    choose_again,
    choose_anew,
    choose_by_name,
    choose_by_policy,
    first_choice,
    smallest_users,
)
from recgpt_ops.contexts.feeds import as_of
from recgpt_ops.ids import user_order
from tests.spark.frames import events, frame, profile

DS = "2017-10-30"
KEY = NightKey(DS, "default", "v2", "p2", 2)


def users(spark, *names):
    return spark.createDataFrame([(name,) for name in names], "user_id string")


def base_row(user_id, status="computed", *, computed_ds="2017-10-29", made_by="p1", reason="new_behavior"):
    return {
        "ds": computed_ds, "publish_id": "p1", "scenario": "default", "method": "v2", "user_id": user_id, "user_bucket": 1,
        "status": status, "reason": reason, "made_by": made_by, "computed_ds": computed_ds, "attempt": 1, "locale": "en-US", "region": "US",
    }  # fmt: skip


def no_situations(spark):
    return spark.createDataFrame([], "user_id string, is_changed boolean")


def policy(spark, base, *, active=(), changed=(), is_same_ds=False, max_users=8, names="abcdef"):
    situations = spark.createDataFrame([(name, True) for name in changed], "user_id string, is_changed boolean")
    chosen = choose_by_policy(
        frame(spark, "user_profiles", *[profile(name) for name in names]), frame(spark, "night_users", *base),
        active=spark.createDataFrame([(name,) for name in active], "user_id string"), situations=situations, ds=DS, is_same_ds=is_same_ds,
        max_users=max_users, max_age_days=14,
    )  # fmt: skip
    return {row.user_id: row.reason for row in chosen.collect()}


def test_new_behavior_is_a_kept_event_that_arrived_on_the_day(spark):
    frame_ = events(
        spark,
        ("a", "purchase", "x", 1, "2017-10-30"),
        ("b", "click", "x", None, "2017-10-30"),
        ("c", "return", "x", 1, "2017-10-30"),
        ("d", "purchase", "x", 1, "2017-10-20", "2017-10-30"),
        ("e", "purchase", "x", 1, "2017-10-29"),
    )
    assert sorted(row.user_id for row in active_users(frame_, DS).collect()) == ["a", "d"]


def test_the_policy_names_new_behavior_then_situation_then_age_then_what_failed(spark):
    base = [
        base_row("a"),
        base_row("b"),
        base_row("c", "carried", computed_ds="2017-10-16"),
        base_row("d", "failed", reason="forced"),
        base_row("e", computed_ds="2017-10-17"),
        base_row("f", "skipped"),
    ]
    assert policy(spark, base, active=["a"], changed=["a", "b"]) == {
        "a": "new_behavior",
        "b": "situation_changed",
        "c": "max_age",
        "d": "forced",
    }


def test_a_user_who_was_carried_because_of_a_failure_is_due_again_until_computed(spark):
    base = [base_row("a", "carried", computed_ds="2017-10-28", reason="retry"), base_row("b", "computed", reason="retried")]
    assert policy(spark, base) == {"a": "retried"}
    assert policy(spark, [base_row("b", "carried", reason="retried")]) == {}  # the night after, once it was computed
    again = {row.user_id: row.reason for row in choose_again(frame(spark, "night_users", *base)).collect()}
    assert again == {"a": "retried", "b": "retried"}
    by_name = choose_by_name(users(spark, "a", "b"), frame(spark, "night_users", *base), is_same_ds=True)
    assert {row.user_id for row in by_name.collect()} == {"a"}


def test_a_replay_computes_the_named_users_whatever_the_night_shows_of_them(spark):
    chosen = choose_anew(users(spark, "a", "a", "b"))
    assert {row.user_id: row.reason for row in chosen.collect()} == {"a": "forced", "b": "forced"}


def test_the_policy_adds_at_most_so_many_users_those_with_the_smallest_hash(spark):
    chosen = policy(spark, [], active="abcdef", max_users=2)
    assert sorted(chosen, key=user_order) == sorted("abcdef", key=user_order)[:2]
    assert policy(spark, [], names="a", active=["a", "no_profile"]) == {"a": "new_behavior"}


def test_a_user_computed_in_this_very_night_is_not_chosen_again_by_the_policy(spark):
    assert policy(spark, [base_row("a", computed_ds=DS)], active=["a", "b"], is_same_ds=True) == {"b": "new_behavior"}


def test_the_n_smallest_users_are_the_same_as_in_python(spark):
    names = [f"user-{n}" for n in range(50)]
    found = smallest_users(frame(spark, "user_profiles", *[profile(name) for name in names]), 5)
    assert {row.user_id for row in found.collect()} == set(sorted(names, key=user_order)[:5])


def test_named_users_are_added_to_a_visible_night_and_forced_into_a_new_one(spark):
    base = frame(spark, "night_users", base_row("a"), base_row("b", "failed"))
    named = users(spark, "a", "b", "c", "c")
    assert {row.user_id for row in choose_by_name(named, base, is_same_ds=True).collect()} == {"b", "c"}
    assert {row.user_id: row.reason for row in choose_by_name(named, base, is_same_ds=False).collect()} == dict.fromkeys("abc", "forced")


def result(spark, base, chosen, *, with_history=()):
    rows = audience_rows(
        frame(spark, "user_profiles", *[profile(name, region="US-NY") for name in "abcdef"]), frame(spark, "night_users", *base),
        spark.createDataFrame(chosen, "user_id string, reason string"),
        with_history=spark.createDataFrame([(name,) for name in with_history], "user_id string"), key=KEY,
    )  # fmt: skip
    return {row.user_id: (row.status, row.made_by, row.computed_ds, row.region) for row in rows.collect()}


def test_who_is_not_chosen_is_carried_with_the_generation_that_made_the_rows(spark):
    base = [base_row("a"), base_row("b", "carried", computed_ds="2017-10-20", made_by="p0"), base_row("c")]
    assert result(spark, base, [("c", "new_behavior")]) == {
        "a": ("carried", "p1", "2017-10-29", "US"),
        "b": ("carried", "p0", "2017-10-20", "US"),
        "c": ("computed", "p2", DS, "US-NY"),
    }


def test_more_users_keep_the_rows_of_the_same_night_computed_by_its_older_generation(spark):
    rows = result(spark, [base_row("a", computed_ds=DS)], [("b", "forced")], with_history=["b"])
    assert rows == {"a": ("computed", "p1", DS, "US"), "b": ("computed", "p2", DS, "US-NY")}


def test_a_named_user_without_any_history_is_skipped(spark):
    assert result(spark, [], [("a", "forced"), ("b", "new_behavior")]) == {
        "a": ("skipped", "p2", DS, "US-NY"),
        "b": ("computed", "p2", DS, "US-NY"),
    }


def test_a_rebuild_computes_again_what_this_night_computed_and_carries_what_it_carried(spark):
    base = frame(spark, "night_users", base_row("a"), base_row("b", "carried"), base_row("c", "failed"), base_row("d", "skipped"))
    chosen = first_choice([choose_again(base), users(spark, "a", "e").selectExpr("user_id", "'forced' as reason")])
    assert {row.user_id: row.reason for row in chosen.collect()} == {
        "a": "new_behavior",
        "c": "new_behavior",
        "d": "new_behavior",
        "e": "forced",
    }


@pytest.mark.parametrize(("ds", "region"), [("2017-01-01", "US"), ("2017-06-30", "CA"), ("2017-07-01", None), ("2018-01-01", "MX")])
def test_the_newest_version_that_has_begun_holds_until_its_end(spark, ds, region):
    versions = frame(
        spark,
        "user_profiles",
        profile("a"),
        profile("a", valid_from_ds="2017-06-01", valid_to_ds="2017-06-30", region="CA"),
        profile("a", valid_from_ds="2018-01-01", region="MX"),
    )
    assert [row.region for row in as_of(versions, ds, key="user_id").collect()] == ([region] if region else [])
