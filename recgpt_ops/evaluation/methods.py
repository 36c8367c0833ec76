"""The evaluation of methods on the weeks after a night, from what is visible to rows of `evaluations`.

    study = open_study(warehouse, settings, recipes, terms)      reads nights and labels, knows its id
    rows  = stored_rows(warehouse, study) or study_rows(...)     an evaluation of the same inputs is not made twice

No arm sees a label: lists are made from what the night knew, and labels are read beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import duckdb
import pyarrow.dataset as pads

from recgpt_ops.agents.vocabulary import build_vocabulary
from recgpt_ops.contexts.words import clean_text, short_title
from recgpt_ops.delta.catalog import catalog_words, items_as_of
from recgpt_ops.delta.inputs import feeds_digest
from recgpt_ops.delta.records import read_rows
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.errors import UsageError
from recgpt_ops.evaluation import lists as model_free
from recgpt_ops.evaluation.bootstrap import RESAMPLES
from recgpt_ops.evaluation.efficiency import STAGES, read_calls, sum_costs
from recgpt_ops.evaluation.feeds import Window, check_window, label_actions
from recgpt_ops.evaluation.figures import Draw, Figure, as_row, without_interval
from recgpt_ops.evaluation.grades import JUDGED, read_verdicts
from recgpt_ops.evaluation.labels import Label, labels_digest, read_labels
from recgpt_ops.evaluation.measures import (
    Lists,
    cost_figures,
    explanation_figures,
    grade_figures,
    ranking_figures,
    recall_figures,
    route_figures,
)
from recgpt_ops.evaluation.nights import SHOWN, MethodNight, as_versions, common_users, read_contexts, read_night
from recgpt_ops.evaluation.tag_to_cate import NEIGHBORS, make_titles, map_tags, name_hits, title_hits, type_categories
from recgpt_ops.ids import row_id
from recgpt_ops.llm.encoder import TextEncoder
from recgpt_ops.recipes import Recipe

NAME = "methods"
TABLE = "evaluations"
ALL_ARMS = "all"  # of a figure that every arm shares, such as the accuracy of Tag-to-Cate
EXPLANATIONS = f"SELECT text_hash, text FROM explanations WHERE {SHOWN} ORDER BY ALL"
REVISION = 1  # raise it when a figure comes to mean something else: old rows then stand under another id


class Terms(NamedTuple):
    """What is asked for."""

    ds: str
    scenario: str
    label_days: int
    seed: int
    resamples: int = RESAMPLES

    @property
    def window(self) -> Window:
        """The days that are guessed at."""
        return Window(self.ds, self.label_days)


@dataclass(frozen=True)
class Study:
    """Everything that decides the figures: the nights, the users they have in common, what these did after `ds`."""

    terms: Terms
    nights: tuple[MethodNight, ...]
    user_ids: tuple[str, ...]
    labels: Mapping[str, Label]
    actions: tuple[str, ...]
    shared: Mapping[str, Any]  # columns that all rows have in common
    evaluation_id: str

    @property
    def recipes(self) -> dict[str, Recipe]:
        """By method, in the order asked for."""
        return {night.method: night.recipe for night in self.nights}

    @property
    def sizes(self) -> list[int]:
        """The list lengths that are compared, shortest first."""
        return sorted({night.recipe.final_tag_count for night in self.nights})


def open_study(
    connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, recipes: Sequence[Recipe], terms: Terms, *, embedder_hash: str
) -> Study:
    """Reads nights and labels. UsageError for a method without a visible night, no common user, or no label at all."""
    check_window(connection, terms.window)
    nights = tuple(read_night(connection, warehouse, recipe, ds=terms.ds, scenario=terms.scenario) for recipe in recipes)
    user_ids = tuple(common_users(nights))
    actions = label_actions(connection)
    labels, level = read_labels(connection, terms.window, actions=actions, user_ids=user_ids)
    if not labels:
        raise UsageError(
            f"methods: none of the {len(user_ids)} users did anything to guess in the {terms.label_days} days after {terms.ds} "
            f"({', '.join(actions)}); choose users by `recgpt evaluate users --ds {terms.ds}`"
        )
    sources = connection.execute("SELECT DISTINCT source FROM behavior_events ORDER BY 1").fetchall()
    data_set = ", ".join(source for (source,) in sources)
    split = f"known to {terms.ds}, labels {terms.label_days} days after ({', '.join(actions)}), categories by {level}"
    versions = as_versions(
        nights,
        scenario=terms.scenario,
        users=row_id(user_ids),
        labels=labels_digest(dict(labels)),
        feeds=feeds_digest(warehouse, terms.ds),
        embedder=embedder_hash,
        neighbors=NEIGHBORS,
        resamples=terms.resamples,
        revision=REVISION,
    )
    shared = {"name": NAME, "data_set": data_set, "split": split, "ds": terms.ds, "versions": versions, "seed": terms.seed}
    return Study(terms, nights, user_ids, labels, actions, shared, row_id((NAME, data_set, split, terms.ds, versions, terms.seed)))


def stored_rows(warehouse: Warehouse, study: Study) -> list[dict[str, Any]]:
    """The rows of this evaluation that are there already; [] when it was never made."""
    rows: list[dict[str, Any]] = read_rows(warehouse, TABLE, where=pads.field("evaluation_id") == study.evaluation_id)
    return rows


def study_rows(
    warehouse: Warehouse, connection: duckdb.DuckDBPyConnection, study: Study, embedder: TextEncoder, *,
    tell: Callable[[str], None] = lambda told: None,
) -> list[dict[str, Any]]:  # fmt: skip
    """All rows of the evaluation, in the order in which they are read. `tell` is given a line on what is being done."""
    figures = list_figures(warehouse, connection, study, embedder, tell)
    tell("counting calls, explanations and verdicts")
    figures += night_figures(connection, study, tell)
    made_at = datetime.now(UTC)
    return [as_row(figure, evaluation_id=study.evaluation_id, shared=study.shared, made_at=made_at) for figure in figures]


def list_figures(
    warehouse: Warehouse, connection: duckdb.DuckDBPyConnection, study: Study, embedder: TextEncoder, tell: Callable[[str], None]
) -> list[Figure]:
    """What the lists are worth: hit rates, recall, repetition, and the accuracy of the map from tags to categories."""
    draw = Draw(study.terms.seed, study.terms.resamples)
    items = items_as_of(warehouse, study.terms.ds, columns=["item_id", "title", "category", "item_type", "text_hash"]).to_pylist()
    tell("making the lists without a model")
    made = {night.method: night.tags for night in study.nights} | arms_without_model(warehouse, connection, study, items, embedder)
    tell(f"reading the vectors of {len(items)} items; titles that no night has embedded are embedded now")
    titles = make_titles(items, embedder, progress=lambda done, total: tell(f"embedding titles, {done} of {total}"))
    types = type_categories(items)
    tags = {tag for by_user in made.values() for one in by_user.values() for tag in one} | set(types)
    tags |= {tag for night in study.nights for routes in night.routes.values() for one in routes for tag in one}
    tell(f"finding the categories of {len(tags)} tags among {len(titles.text_hashes)} titles")
    categories = map_tags(tags, titles, embedder)
    sizes = {night.method: night.recipe.final_tag_count for night in study.nights} | dict.fromkeys(model_free.ARMS, study.sizes[-1])
    compared = Lists(made, sizes, categories)
    figures = []
    for size in study.sizes:
        figures += ranking_figures(compared, study.labels, size=size, methods=list(study.recipes), draw=draw)
        figures += recall_figures(compared, study.labels, size=size, recipes=study.recipes, draw=draw)
    for night in study.nights:
        figures += route_figures(night, study.labels, user_ids=study.user_ids, categories=categories, draw=draw)
    tell("measuring the accuracy of the map from tags to categories")
    figures.append(Figure("tag_to_cate_accuracy_titles", ALL_ARMS, draw.mean(title_hits(titles, seed=study.terms.seed)), "ratio"))
    figures.append(Figure("tag_to_cate_accuracy_names", ALL_ARMS, draw.mean(name_hits(types, categories)), "ratio"))
    figures.append(Figure("labelled_users", ALL_ARMS, without_interval(len(study.labels), len(study.user_ids)), "count"))
    return figures


def arms_without_model(
    warehouse: Warehouse, connection: duckdb.DuckDBPyConnection, study: Study, items: Sequence[Mapping[str, Any]], embedder: TextEncoder
) -> dict[str, dict[str, tuple[str, ...]]]:
    """Per arm and user a list as long as the longest that is compared."""
    terms, size = study.terms, study.sizes[-1]
    words = model_free.item_words(items)
    popular = model_free.most_bought_types(connection, words, ds=terms.ds, actions=study.actions, size=size)
    own = model_free.own_repeats(connection, words, ds=terms.ds, actions=study.actions, user_ids=study.user_ids, fill=popular, size=size)
    night = next((night for night in study.nights if night.recipe.planner == "choice"), study.nights[0])
    contexts = read_contexts(connection, night, ds=terms.ds, scenario=terms.scenario, user_ids=study.user_ids)
    vocabulary = build_vocabulary(catalog_words(warehouse, terms.ds, clean_type=clean_text, clean_title=short_title), embedder)
    return {
        model_free.CLOSED_LIST: model_free.closed_list_order(contexts, vocabulary, embedder, recipe=night.recipe, size=size),
        model_free.MOST_BOUGHT: dict.fromkeys(study.user_ids, popular),
        model_free.OWN_REPEATS: own,
    }


def night_figures(connection: duckdb.DuckDBPyConnection, study: Study, tell: Callable[[str], None]) -> list[Figure]:
    """What the nights cost, how their explanations differ and how they were graded. What a night lacks has no rows, and is told."""
    terms, draw = study.terms, Draw(study.terms.seed, study.terms.resamples)
    figures = []
    for part in STAGES:
        costs = {}
        for night in study.nights:
            calls = read_calls(connection, part, ds=terms.ds, scenario=terms.scenario, method=night.method)
            if calls:
                costs[night.method] = sum_costs(calls, user_ids=study.user_ids, night_user_count=len(night.user_ids))
        figures += cost_figures(part, costs, recipes=study.recipes, user_count=len(study.user_ids), draw=draw)
    for method in study.recipes:
        at = {"ds": terms.ds, "scenario": terms.scenario, "method": method}
        shown = (
            "SELECT text_hash, text FROM explanations WHERE ds = $ds AND scenario = $scenario AND method = $method ORDER BY explanation_id"
        )
        explanations = connection.execute(shown, at).fetchall()
        missing = [] if explanations else ["explanations"]
        if explanations:
            figures += explanation_figures(method, explanations, draw=draw)
        for what in JUDGED:
            verdicts = read_verdicts(connection, what, ds=terms.ds, scenario=terms.scenario, method=method)
            figures += grade_figures(method, what, verdicts, draw=draw)
            missing += [] if verdicts else [f"verdicts of {what}"]
        if missing:
            tell(f"the night of {method} has no {', no '.join(missing)}: no figures of these")
    return figures
