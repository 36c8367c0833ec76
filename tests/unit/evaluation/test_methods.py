"""A whole evaluation on the three users of conftest, every figure worked out by hand."""

from __future__ import annotations

import dataclasses
import json

import pytest

from recgpt_ops.delta.records import append_records, read_rows
from recgpt_ops.delta.sql import connect
from recgpt_ops.errors import UsageError
from recgpt_ops.evaluation.labels import Label
from recgpt_ops.evaluation.measures import compared, is_one_channel
from recgpt_ops.evaluation.methods import TABLE, Terms, open_study, stored_rows, study_rows
from recgpt_ops.recipes import load_recipe
from recgpt_ops.tables import load_contract
from tests.unit.cli.conftest import write
from tests.unit.evaluation.conftest import DS, FUTURE, AxisEmbedder, add_night, call, make_shop

TERMS = Terms(DS, "default", 28, 0, 1000)


def open_(warehouse, *names: str, terms: Terms = TERMS):
    connection = connect(warehouse)
    return connection, open_study(connection, warehouse, [load_recipe(name) for name in names], terms, embedder_hash="axis")


def evaluate(warehouse, *names: str) -> list[dict]:
    connection, study = open_(warehouse, *names)
    return study_rows(warehouse, connection, study, AxisEmbedder())


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple:
    """The warehouse, its study and its rows."""
    warehouse = make_shop(str(tmp_path_factory.mktemp("made") / "shop"))
    for method, tokens in (("v1", 100), ("v2", 40)):
        add_night(warehouse, method)
        write(warehouse, "llm_calls", [call(f"{method}-{user}", user, prompt=tokens, method=method) for user in ("u1", "u2", "u3")])
    return warehouse, open_(warehouse, "v1", "v2")[1], evaluate(warehouse, "v1", "v2")


def value(made: tuple, metric: str, arm: str) -> float:
    return next(row["value"] for row in made[2] if (row["metric"], row["arm"]) == (metric, arm))


def test_labels_are_what_was_bought_in_the_28_days_after(made) -> None:
    """The mailing to u3 is no wish, its beef of November 29 comes a day too late, u2's beef of October 30 is no future."""
    assert made[1].labels == {"u1": Label("beef", frozenset({"beef", "cheese"})), "u2": Label("tea", frozenset({"tea"}))}
    assert made[1].shared["split"] == "known to 2021-10-31, labels 28 days after (purchase), categories by item_type"


@pytest.mark.parametrize(
    ("metric", "arm", "expected"),
    [
        ("hr_next1@6", "v1", 0.0),  # u1 tea for beef, u2 beef for tea
        ("hr_next1@6", "v2", 0.5),  # u1 beef
        ("hr_next1@6", "own_repeats", 0.5),  # u2 tea
        ("hr_next1@6", "most_bought_types", 0.5),  # cheese, tea, socks: u2 tea
        ("hr_next1@6", "closed_list_order", 1.0),  # the list is the whole vocabulary of four words
        ("hr_any@6", "v2", 0.5),
        ("hr_any@6", "own_repeats", 1.0),  # u1 cheese, u2 tea
        ("hr_next1@6 - own_repeats", "v2", 0.0),
        ("hr_next1@6 - v1", "v2", 0.5),
        ("distinct_categories@6", "v2", 1.5),  # of u1 and u2, who have labels
        ("tags@6", "own_repeats", 3.0),
        ("recall@6", "v2", 1 / 3),  # one of the three wanted: beef, cheese; tea
        ("recall@6", "own_repeats", 2 / 3),
        ("exclusive_recall@6", "v2", 0.0),  # the closed list finds all
        ("duplication_tags", "v2", 0.5),  # both routes say the same
        ("exclusive_recall_routes", "v2", 0.0),
        ("prompt_tokens_computed", "v1", 100.0),
        ("prompt_tokens_computed", "v2", 40.0),
        ("prompt_tokens_computed / v1", "v2", 0.4),
        ("calls", "v2", 1.0),
        ("completion_tokens / v1", "v2", 1.0),
        ("busy_seconds", "v1", 2 / 3),  # three calls in the same two seconds, three users
        ("labelled_users", "all", 2.0),
        ("tag_to_cate_accuracy_names", "all", 1.0),
    ],
)
def test_a_figure_by_hand(made, metric, arm, expected) -> None:
    assert value(made, metric, arm) == pytest.approx(expected)


def test_rows_fit_their_table_and_each_stands_once(made) -> None:
    _, study, rows = made
    assert {frozenset(row) for row in rows} == {frozenset(load_contract(TABLE).column_names)}
    keys = [(row["evaluation_id"], row["metric"], row["arm"]) for row in rows]
    assert len(set(keys)) == len(keys)
    assert {row["evaluation_id"] for row in rows} == {study.evaluation_id}
    assert all(row["lo"] <= row["value"] + 1e-9 and row["value"] - 1e-9 <= row["hi"] for row in rows if row["lo"] is not None)


def test_an_evaluation_of_the_same_inputs_is_written_once(made) -> None:
    warehouse, _, rows = made
    assert append_records(warehouse, TABLE, rows) == len(rows)
    _, again = open_(warehouse, "v1", "v2")
    assert len(stored_rows(warehouse, again)) == len(rows)
    assert append_records(warehouse, TABLE, evaluate(warehouse, "v1", "v2")) == 0
    assert len(read_rows(warehouse, TABLE)) == len(rows)


def test_another_seed_length_or_method_is_another_evaluation(made) -> None:
    warehouse, study, _ = made
    others = [open_(warehouse, "v1", "v2", terms=TERMS._replace(**change))[1] for change in ({"seed": 1}, {"label_days": 27})]
    ids = {study.evaluation_id, open_(warehouse, "v1")[1].evaluation_id, *(other.evaluation_id for other in others)}
    assert len(ids) == 4


def test_versions_name_what_each_night_was_made_from(made) -> None:
    versions = json.loads(made[2][0]["versions"])
    assert versions["methods"]["v2"]["publish_id"] == "p1"
    assert {"embedder", "feeds", "labels", "users", "neighbors", "resamples", "scenario", "revision"} < set(versions)


def test_no_arm_reads_a_label(made, tmp_path) -> None:
    """With another future every list is as long, as broad and as costly as before; only what was hit differs."""
    other = make_shop(str(tmp_path / "other"), [("u1", "i5", "2021-11-02"), ("u2", "i5", "2021-11-03"), ("u3", "i1", "2021-11-29")])
    for method in ("v1", "v2"):
        add_night(other, method)
    blind = ("distinct_categories@", "tags@", "duplication_", "tag_to_cate_")
    found = {(row["metric"], row["arm"]): row["value"] for row in evaluate(other, "v1", "v2")}
    before = {(row["metric"], row["arm"]): row["value"] for row in made[2]}
    same = [key for key in before if key[0].startswith(blind)]
    assert len(same) == 16
    assert [found[key] for key in same] == [before[key] for key in same]
    assert (found["recall@6", "v2"], before["recall@6", "v2"]) == (0.5, pytest.approx(1 / 3))  # of two pairs of socks u2's was found


def test_a_method_without_a_night_is_named_with_the_command_that_makes_one(made) -> None:
    with pytest.raises(UsageError, match=r"no visible night of 2021-10-31 by 'v1_shared'.*recgpt night --ds 2021-10-31 --method v1_shared"):
        open_(made[0], "v1", "v1_shared")


def test_a_window_that_the_data_does_not_fill_is_refused_with_the_one_that_fits(made) -> None:
    with pytest.raises(UsageError, match=r"hold 2021-08-10 to 2021-11-29, the labels .* would reach 2021-11-30; give --label-days 29"):
        open_(made[0], "v1", terms=TERMS._replace(label_days=30))


def test_users_who_did_nothing_after_it_cannot_be_evaluated_on(tmp_path) -> None:
    warehouse = make_shop(str(tmp_path / "shop"), [("u9", "i1", "2021-11-29")])
    add_night(warehouse, "v1")
    with pytest.raises(UsageError, match="none of the 3 users did anything to guess in the 28 days after"):
        open_(warehouse, "v1")


def test_a_user_that_a_method_failed_on_is_evaluated_all_the_same(tmp_path) -> None:
    warehouse = make_shop(str(tmp_path / "shop"), FUTURE)
    add_night(warehouse, "v2")
    failed = {"status": "failed", "reason": "forced", "made_by": "p1", "computed_ds": DS}
    write(warehouse, "night_users", [{"ds": DS, "publish_id": "p1", "scenario": "default", "method": "v2", "user_id": "u4", **failed}])
    _, study = open_(warehouse, "v2")
    assert study.user_ids == ("u1", "u2", "u3", "u4")


def test_methods_that_differ_in_counts_and_prompts_only_are_one_channel() -> None:
    recipes = {name: load_recipe(name) for name in ("v1", "v1_shared", "v1_hr30", "v2")}
    assert is_one_channel("v1", "v1_shared", recipes)
    assert is_one_channel("v1", "v1_hr30", recipes)
    assert not is_one_channel("v1", "v2", recipes)
    assert not is_one_channel("v1", "own_repeats", recipes)
    assert is_one_channel("own_repeats", "own_repeats", recipes)
    recipes["v1_shared"] = dataclasses.replace(recipes["v1_shared"], vocabulary="free")
    assert not is_one_channel("v1", "v1_shared", recipes)


def test_each_method_is_compared_with_every_list_without_a_model_and_every_method_before_it() -> None:
    assert list(compared(["v1", "v2", "own"], ["v1", "v2"])) == [("v1", "own"), ("v2", "v1"), ("v2", "own")]
