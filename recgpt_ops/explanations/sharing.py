"""Texts that are there already: an explanation that a visible night shows is not made again where its writing has not changed.

    visible nights of the last 92 days (a situation lasts at most a season) -> the generations their users show -> the assignments of
    these that name a wanted id -> the explanations they name, with their writer_hash

Only the wanted ids and a few columns are read. Users added to a ds share the older generations of that very ds; a rebuild does not,
because it must give what the first run gave. A replay shares no text whose verdict failed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from datetime import date, timedelta

import pyarrow as pa
import pyarrow.dataset as pads

from recgpt_ops.delta.pointer import visible_publications
from recgpt_ops.delta.reading import generation_files, read_files
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.explanations.desk import PROMPTS
from recgpt_ops.explanations.phrases import CHINESE, ENGLISH
from recgpt_ops.ids import row_id
from recgpt_ops.recipes import Recipe
from recgpt_ops.tables import load_contract

SHARE_DAYS = 92


def writer_hash(recipe: Recipe, *, model: str, month: str) -> str:
    """Digest of all that a text depends on beside its id: the recipe's writing, templates and closed lists, and what answers.

    `model` names the model's content. `month` (YYYY-MM of the serving day) counts for V1's template, which tells the date.
    """
    templates = [path.name + "\x1f" + path.read_text(encoding="utf-8") for path in sorted(PROMPTS.glob("*.jinja"))]
    writing = (
        recipe.explanations, recipe.style, recipe.vocabulary, recipe.sampling.style, recipe.sampling.writer, recipe.models.style,
        recipe.models.writer, recipe.language_min_share,
    )  # fmt: skip
    lists = hashlib.sha256(repr((ENGLISH, CHINESE)).encode()).hexdigest()
    return row_id([repr(writing), *templates, lists, model, month if recipe.explanations == "template" else None])


def find_shared(
    warehouse: Warehouse,
    wanted: Collection[str],
    *,
    ds: str,
    scenario: str,
    method: str,
    publish_id: str,
    writer_hash: str,
    with_own_ds: bool,
) -> dict[str, str]:
    """explanation_id -> publish_id of the oldest generation that holds its text, of those that readers are shown.

    `with_own_ds`: also generations of this ds whose rows the audience of `publish_id` shows (users were added).
    """
    mine = (pads.field("scenario") == scenario) & (pads.field("method") == method)
    first = (date.fromisoformat(ds) - timedelta(days=SHARE_DAYS)).isoformat()
    nights = {
        day: str(row["publish_id"])
        for (day, of, name), row in visible_publications(warehouse).items()
        if (of, name) == (scenario, method) and first <= day < ds
    } | ({ds: publish_id} if with_own_ds else {})
    shown = shown_generations(warehouse, nights, mine) - {(ds, publish_id)}
    ids = pads.field("explanation_id").isin(pa.array(sorted(wanted), pa.string()))
    files = generation_files(warehouse, "explanations", publish_id=named_generations(warehouse, shown, mine & ids))
    where = mine & ids & (pads.field("writer_hash") == writer_hash)
    rows = read_files(load_contract("explanations"), files, columns=["ds", "publish_id", "explanation_id"], where=where).to_pylist()
    oldest_last = sorted(rows, key=lambda row: (row["ds"], row["publish_id"]), reverse=True)
    return {row["explanation_id"]: row["publish_id"] for row in oldest_last}


def shown_generations(warehouse: Warehouse, nights: dict[str, str], mine: pads.Expression) -> set[tuple[str, str]]:
    """(ds, publish_id) of every generation whose rows the users of some nights show."""
    files = generation_files(warehouse, "night_users", ds=nights.keys(), publish_id=set(nights.values()))
    files = [file for file in files if nights[file.partition["ds"]] == file.partition["publish_id"]]
    where = mine & pads.field("status").isin(["computed", "carried"])
    rows = read_files(load_contract("night_users"), files, columns=["computed_ds", "made_by"], where=where)
    return {(row["computed_ds"], row["made_by"]) for row in rows.group_by(["computed_ds", "made_by"]).aggregate([]).to_pylist()}


def named_generations(warehouse: Warehouse, shown: set[tuple[str, str]], where: pads.Expression) -> set[str]:
    """The generations that assignments of the shown ones take their texts from."""
    files = generation_files(warehouse, "explanation_assignments", publish_id={publish_id for _, publish_id in shown})
    files = [file for file in files if (file.partition["ds"], file.partition["publish_id"]) in shown]
    named = where & pads.field("explanation_made_by").is_valid()
    rows = read_files(load_contract("explanation_assignments"), files, columns=["explanation_made_by"], where=named)
    return {str(name) for name in rows["explanation_made_by"].unique().to_pylist()}


def without_failed_verdicts(warehouse: Warehouse, shared: dict[str, str], *, method: str) -> dict[str, str]:
    """The shared texts (explanation_id -> publish_id) but those that a judge failed at.

    A text is judged in the generation that holds it; to be judged again it is written once more, from recorded answers.
    """
    files = generation_files(warehouse, "explanation_verdicts", publish_id=set(shared.values()))
    where = (pads.field("method") == method) & (pads.field("status") == "failed")
    rows = read_files(load_contract("explanation_verdicts"), files, columns=["publish_id", "explanation_id"], where=where).to_pylist()
    failed = {(row["explanation_id"], row["publish_id"]) for row in rows}
    return {explanation_id: publish_id for explanation_id, publish_id in shared.items() if (explanation_id, publish_id) not in failed}
