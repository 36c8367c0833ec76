"""The figures of some methods beside lists without a model: what was wanted, what was found, what it cost, how it was graded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from recgpt_ops.evaluation.diversity import item_diversities, mean_diversity
from recgpt_ops.evaluation.efficiency import UNITS, Costs
from recgpt_ops.evaluation.figures import Draw, Figure, difference, without_interval
from recgpt_ops.evaluation.grades import grade_shares
from recgpt_ops.evaluation.labels import Label
from recgpt_ops.evaluation.nights import MethodNight
from recgpt_ops.evaluation.ranking import covered, hit_any, hit_next1
from recgpt_ops.evaluation.recall import duplication, exclusive_count, route_exclusive_count
from recgpt_ops.recipes import Recipe

HITS: dict[str, Callable[[frozenset[str], Label], float]] = {"hr_next1": hit_next1, "hr_any": hit_any}


class Lists(NamedTuple):
    """Every arm's list per user, methods first in their order. `sizes`: arm -> how long its lists are meant to be."""

    tags: Mapping[str, Mapping[str, Sequence[str]]]
    sizes: Mapping[str, int]
    categories: Mapping[str, str]  # phi by tag

    def arms(self, size: int) -> list[str]:
        """The arms whose lists are long enough to be compared at `size`."""
        return [arm for arm, meant in self.sizes.items() if meant >= size]

    def predicted(self, size: int, user_ids: Sequence[str]) -> dict[str, list[frozenset[str]]]:
        """Per arm the categories covered by the first `size` tags of each user; a user without tags has none."""
        return {
            arm: [covered(self.tags[arm].get(user_id, ()), self.categories, size=size) for user_id in user_ids] for arm in self.arms(size)
        }


def compared(arms: Sequence[str], methods: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(arm, other) for every difference worth telling: each method with each list without a model and with each method before it."""
    for place, method in enumerate(methods):
        yield from ((method, other) for other in (*methods[:place], *(arm for arm in arms if arm not in methods)))


def ranking_figures(lists: Lists, labels: Mapping[str, Label], *, size: int, methods: Sequence[str], draw: Draw) -> list[Figure]:
    """HR@size of every arm, the differences, and how long and how broad the lists are."""
    user_ids = sorted(labels)
    predicted = lists.predicted(size, user_ids)
    figures = []
    for name, hit in HITS.items():
        hits = {
            arm: [hit(found, labels[user_id]) for user_id, found in zip(user_ids, found_by_user, strict=True)]
            for arm, found_by_user in predicted.items()
        }
        metric = f"{name}@{size}"
        figures += [Figure(metric, arm, draw.mean(values), "ratio") for arm, values in hits.items()]
        mine = [method for method in methods if method in predicted]
        figures += [difference(metric, arm, other, hits, draw, unit="ratio") for arm, other in compared(list(predicted), mine)]
    for arm, found_by_user in predicted.items():
        figures.append(Figure(f"distinct_categories@{size}", arm, draw.mean([len(found) for found in found_by_user]), "count"))
        lengths = [min(size, len(lists.tags[arm].get(user_id, ()))) for user_id in user_ids]
        figures.append(Figure(f"tags@{size}", arm, draw.mean(lengths), "count"))
    return figures


def recall_figures(lists: Lists, labels: Mapping[str, Label], *, size: int, recipes: Mapping[str, Recipe], draw: Draw) -> list[Figure]:
    """The share of wanted categories that an arm finds, and that it alone finds of all channels.

    Channels are all arms. Methods of one design are one channel: each would take from the other what both found.
    """
    user_ids = sorted(labels)
    predicted = lists.predicted(size, user_ids)
    wanted = [labels[user_id].categories for user_id in user_ids]
    sizes = [len(categories) for categories in wanted]
    figures = []
    for arm, mine in predicted.items():
        found = [len(categories & here) for categories, here in zip(wanted, mine, strict=True)]
        figures.append(Figure(f"recall@{size}", arm, draw.ratio(found, sizes), "ratio"))
        others = [found_by_user for other, found_by_user in predicted.items() if not is_one_channel(arm, other, recipes)]
        alone = [exclusive_count(categories, mine[place], (other[place] for other in others)) for place, categories in enumerate(wanted)]
        figures.append(Figure(f"exclusive_recall@{size}", arm, draw.ratio(alone, sizes), "ratio"))
    return figures


def is_one_channel(arm: str, other: str, recipes: Mapping[str, Recipe]) -> bool:
    """Whether two arms are one, or recipes of one design, which differ in counts, prompts or what comes after, as v1 and v1_hr30."""
    if arm == other:
        return True
    if arm not in recipes or other not in recipes:
        return False
    mine, theirs = ((one.form, one.vocabulary, one.planner, one.arbiter, one.models) for one in (recipes[arm], recipes[other]))
    return mine == theirs


def route_figures(
    night: MethodNight, labels: Mapping[str, Label], *, user_ids: Sequence[str], categories: Mapping[str, str], draw: Draw
) -> list[Figure]:
    """How often the routes (or personas) of a method repeat each other, by tags and by categories, and what one of them alone finds."""
    routes = {user_id: night.routes[user_id] for user_id in user_ids if user_id in night.routes}
    as_categories = {user_id: [[categories[tag] for tag in tags] for tags in by_route] for user_id, by_route in routes.items()}
    tags_repeated = [share for share in map(duplication, routes.values()) if share is not None]
    categories_repeated = [share for share in map(duplication, as_categories.values()) if share is not None]
    labelled = sorted(labels)
    alone = [route_exclusive_count(labels[user_id].categories, as_categories.get(user_id, [])) for user_id in labelled]
    wanted = [len(labels[user_id].categories) for user_id in labelled]
    return [
        Figure("duplication_tags", night.method, draw.mean(tags_repeated), "ratio"),
        Figure("duplication_categories", night.method, draw.mean(categories_repeated), "ratio"),
        Figure("exclusive_recall_routes", night.method, draw.ratio(alone, wanted), "ratio"),
    ]


def cost_figures(part: str, costs: Mapping[str, Costs], *, recipes: Mapping[str, Recipe], user_count: int, draw: Draw) -> list[Figure]:
    """Each measure per user, and its ratio to every method before that makes as long a list. `intents` are named without a prefix."""
    head = "" if part == "intents" else f"{part}."
    figures = []
    for place, (method, cost) in enumerate(costs.items()):
        for measure, values in cost.by_user.items():
            own = without_interval(values[0], user_count) if cost.is_shared else draw.mean(values)
            figures.append(Figure(f"{head}{measure}", method, own, UNITS[measure]))
            for other in list(costs)[:place]:
                if recipes[other].final_tag_count == recipes[method].final_tag_count:
                    figures.append(Figure(f"{head}{measure} / {other}", method, ratio_to(cost, costs[other], measure, draw), "ratio"))
        figures.append(Figure(f"{head}busy_seconds", method, without_interval(cost.busy_seconds, user_count), "seconds"))
    return figures


def ratio_to(cost: Costs, other: Costs, measure: str, draw: Draw) -> Any:
    """One method's measure over another's, by the same users."""
    estimate = draw.ratio(cost.by_user[measure], other.by_user[measure])
    return without_interval(estimate.value, estimate.n) if cost.is_shared and other.is_shared else estimate


def explanation_figures(method: str, explanations: Sequence[tuple[str, str]], *, draw: Draw) -> list[Figure]:
    """Diversity among the explanations of one item (items with several are few), and among all of a method; (text_hash, text)."""
    by_item = item_diversities(explanations)
    texts = [text for _, text in explanations]
    return [
        Figure("explanation_diversity", method, draw.mean(by_item), "ratio"),
        Figure("explanation_diversity_all", method, without_interval(mean_diversity(texts, seed=draw.seed), len(texts)), "ratio"),
    ]


def grade_figures(method: str, what: str, verdicts: Sequence[Mapping[str, Any]], *, draw: Draw) -> list[Figure]:
    """Shares of grades and levels by each judge; the interval draws users, of explanations the explanations."""
    return [Figure(share.name, method, draw.ratio(share.counted, share.among), "ratio") for share in grade_shares(what, verdicts)]
