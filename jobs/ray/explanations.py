"""Makes explanations and explanation_assignments of one night: why an item fits an interest now, and who is shown which text.

    python -m jobs.ray.explanations --warehouse W --ds 2017-10-30 --publish-id p0123456789abcdef

`explanations_daily` submits it through Ray's job API. Users are read in slices to find out which texts are wanted; each distinct text
is written once, on Ray, or taken over from a night that shows it already; then the users are read again and their assignments staged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from recgpt_ops.contexts.buckets import days_before
from recgpt_ops.contexts.signals import situation_of, situation_text
from recgpt_ops.contexts.words import clean_text
from recgpt_ops.delta.certificates import certificates
from recgpt_ops.delta.inputs import feeds_digest
from recgpt_ops.delta.reading import read_generation
from recgpt_ops.delta.warehouse import open_warehouse
from recgpt_ops.errors import NightError
from recgpt_ops.explanations.assignments import Assigned, Surroundings, assign, assignment_row
from recgpt_ops.explanations.budget import planned_calls
from recgpt_ops.explanations.landing import (
    TABLES,
    Night,
    Place,
    brand_names,
    candidate_item_ids,
    item_texts,
    land_shard,
    places,
    readers,
    slices,
    staged_texts,
)
from recgpt_ops.explanations.rows import ItemText, Row, Wanted
from recgpt_ops.explanations.shard import STAGE, ShardPlan, compute_shard, of_shard
from recgpt_ops.explanations.sharing import find_shared, without_failed_verdicts, writer_hash
from recgpt_ops.explanations.writing import recipe_schemas
from recgpt_ops.ids import row_id
from recgpt_ops.ledger.segments import shard_name, shard_names
from recgpt_ops.ledger.summaries import ShardSummary, call_limits, ledger_root, make_stage, stage_rows
from recgpt_ops.recipes import Recipe, load_recipe
from recgpt_ops.runs import NightRun, StageCounts, run_stage
from recgpt_ops.settings import Settings
from recgpt_ops.shards import compile_schemas, publish_shards, run_shards, shard_engine


@dataclass
class MethodWork:
    """One method of the night: what its users want, and which of it is there."""

    recipe: Recipe
    night: Night
    writer_hash: str
    wanted: dict[str, Wanted] = field(default_factory=dict)
    shared: dict[str, str] = field(default_factory=dict)  # explanation_id -> publish_id of an older generation
    users: int = 0
    assignments: int = 0
    without_text: int = 0


def run_shard(warehouse_root: str, settings: Settings, plan: ShardPlan, stage: dict[str, Path], board: Any) -> ShardSummary:
    """One shard, from its wanted texts to its staged file. Run again after a lost node, it reads its answers from the ledger."""
    from recgpt_ops.llm.engine import engine_tokenizer  # the tokenizers package belongs into the shard's process, not into the job's

    warehouse = open_warehouse(warehouse_root)
    method = plan.recipe.name
    engine = shard_engine(
        settings, warehouse_root, run=plan.publish_id, ds=plan.ds, method=method, stage=STAGE, shard=plan.shard, board=board
    )
    result = compute_shard(
        plan,
        engine=engine,
        tokenizer=engine_tokenizer(settings, warehouse_root),
        ledger_root=ledger_root(settings, warehouse_root),
        limits=call_limits(settings),
        on_progress=lambda texts, account: board.tell.remote(f"{method} {plan.shard}", texts, account.calls_made + account.calls_reused),
    )
    return land_shard(warehouse, plan, result, stage=stage, engine=engine)


def model_digest(settings: Settings, warehouse_root: str) -> str:
    """What answers, by content where we have it: a text is taken over only from the same model."""
    if settings.engine.kind != "vllm":
        return row_id((settings.engine.kind, settings.engine.base_url, settings.engine.model))
    from recgpt_ops.llm.models import model_directory, model_hash, models_root

    return model_hash(model_directory(settings.engine.model, models_root=models_root(warehouse_root)))


def surroundings_of(run: NightRun, where: set[Place]) -> dict[Place, Surroundings]:
    """What is going on in each place on the day people will see the texts, as user_contexts' situation_id has it."""
    signals = read_generation(run.warehouse, "environment_signals", ds=run.ds, publish_id=run.publish_id, scenario=run.scenario).to_pylist()
    weather = {(row["region"], row["locale"]): row["name"] for row in signals if row["kind"] == "weather"}
    serve_ds = days_before(run.ds, -1)
    serve_day = date.fromisoformat(serve_ds)
    found = {}
    for region, locale in sorted(where):
        now = situation_of(region, serve_ds, weather=weather.get((region, locale)))
        found[region, locale] = Surroundings(
            situation_text(now, locale), now.season, now.holiday.name if now.holiday else None, (serve_day.month, serve_day.day)
        )
    return found


def assigned_slice(
    work: MethodWork, buckets: range, surroundings: Mapping[Place, Surroundings], items: Mapping[str, ItemText]
) -> tuple[int, Assigned]:
    """Users of a slice and their assignments; the same whenever it is asked for."""
    found = readers(work.night, buckets, surroundings)
    return len(found), assign(found, items, count=work.recipe.explained_item_count)


def find_wanted(run: NightRun, work: MethodWork, surroundings: Mapping[Place, Surroundings], items: Mapping[str, ItemText]) -> None:
    """The distinct texts of a method, and which of them are there."""
    for buckets in slices(work.night):
        users, assigned = assigned_slice(work, buckets, surroundings, items)
        work.users += users
        work.assignments += len(assigned.assignments)
        work.without_text += assigned.without_text
        work.wanted |= {assignment.wanted.explanation_id: assignment.wanted for assignment in reversed(assigned.assignments)}
    work.shared = find_shared(
        run.warehouse, work.wanted, ds=run.ds, scenario=run.scenario, method=work.recipe.name, publish_id=run.publish_id,
        writer_hash=work.writer_hash, with_own_ds=run.why in ("more_users", "replay"),
    )  # fmt: skip
    if run.why == "replay":
        work.shared = without_failed_verdicts(run.warehouse, work.shared, method=work.recipe.name)


def make_plans(run: NightRun, works: Sequence[MethodWork]) -> list[ShardPlan]:
    """Every shard of every method that has something to write."""
    brands = brand_names(run.warehouse, run.ds)
    plans = []
    for work in works:
        to_write = [wanted for id_, wanted in work.wanted.items() if id_ not in work.shared]
        for shard in shard_names(run.settings.engine.shard_count):
            plans.append(
                ShardPlan(
                    run.ds,
                    run.scenario,
                    run.publish_id,
                    run.attempt,
                    shard,
                    work.recipe,
                    work.writer_hash,
                    of_shard(to_write, shard),
                    brands,
                    ask_again=run.why == "replay",
                )
            )
    return [plan for plan in plans if plan.wanted]


def stage_assignments(
    run: NightRun, work: MethodWork, stage: Mapping[str, Path], surroundings: Mapping[Place, Surroundings], items: Mapping[str, ItemText]
) -> dict[str, int]:
    """Stages a method's assignments, now that it is known which texts came; texts and guidelines counted."""
    method = work.recipe.name
    texts = staged_texts(stage["explanations"], method)

    def row_of(assignment: Any) -> Row:
        id_ = assignment.wanted.explanation_id
        made_by, status = (
            (run.publish_id, "written") if id_ in texts.ids else (work.shared.get(id_), "shared" if id_ in work.shared else "failed")
        )
        return assignment_row(
            assignment, ds=run.ds, publish_id=run.publish_id, scenario=run.scenario, method=method, made_by=made_by, status=status
        )

    for buckets in slices(work.night):
        _, assigned = assigned_slice(work, buckets, surroundings, items)
        rows = sorted(map(row_of, assigned.assignments), key=lambda row: (row["user_id"], row["rank"]))
        file = f"{method}-{shard_name(buckets.start, buckets.stop - 1)}"
        stage_rows(stage["explanation_assignments"], "explanation_assignments", rows, file=file)
    return {
        "wanted": len(work.wanted), "written": len(texts.ids), "shared": len(work.shared),
        "failed": len(work.wanted) - len(texts.ids) - len(work.shared), "styles": texts.style_count, "assignments": work.assignments,
        "items_without_text": work.without_text,
    }  # fmt: skip


def work(run: NightRun, counts: StageCounts) -> None:
    """One stage of the night: find out what is wanted, write what is not there, assign, publish both tables."""
    recipes = [recipe for method in run.methods if (recipe := load_recipe(method, engine=run.settings.engine)).explanations != "none"]
    compile_schemas(run, {where: schema for recipe in recipes for where, schema in recipe_schemas(recipe).items()})
    made_from = [
        certificate
        for table in ("user_contexts", "intent_tags", "candidate_items")
        for certificate in certificates(run.warehouse, table=table, publish_id=run.publish_id)
    ]
    if not any(certificate.table_name == "candidate_items" for certificate in made_from):
        raise NightError(f"{STAGE}, ds={run.ds}: candidate_items has no generation {run.publish_id}; run jobs.ray.candidate_items first")
    month = days_before(run.ds, -1)[:7]
    model = model_digest(run.settings, run.warehouse.root)
    works = [
        MethodWork(
            recipe, Night(run.warehouse, run.ds, run.scenario, recipe.name, run.publish_id), writer_hash(recipe, model=model, month=month)
        )
        for recipe in recipes
    ]
    counts.input_digest = row_id(
        [feeds_digest(run.warehouse, run.ds)["items"], *(made.row_digest for made in made_from), *(one.recipe.digest for one in works)]
        + [one.writer_hash for one in works]
    )
    surroundings = surroundings_of(run, {place for one in works for place in places(one.night)})
    item_ids = {item_id for one in works for item_id in candidate_item_ids(one.night)}
    items = item_texts(run.warehouse, run.ds, item_ids, clean=clean_text)
    for one in works:
        find_wanted(run, one, surroundings, items)
    plans = make_plans(run, works)
    calls = sum(planned_calls(one.recipe, one.users).total for one in works)
    stage = make_stage(run.warehouse, run.publish_id, TABLES)
    summary = ShardSummary()
    if plans:
        texts = sum(len(plan.wanted) for plan in plans)
        summary = run_shards(
            run, what="explanations", task=run_shard, plans=plans, extra=(stage,), inputs=texts, calls=calls,
            limits=call_limits(run.settings),
        )  # fmt: skip
    told = {one.recipe.name: stage_assignments(run, one, stage, surroundings, items) for one in works}
    counts.counts_in, counts.counts_out = sum(one.users for one in works), summary.rows["explanations"]
    counts.detail |= {
        "planned_calls": calls,
        "texts": told,
        "recipes": {one.recipe.name: one.recipe.digest for one in works},
    }
    publish_shards(run, counts, summary, what="explanations", stage=stage, input_digest=counts.input_digest)


def main(argv: Sequence[str] | None = None) -> int:
    """The job's command line; returns its exit code."""
    return run_stage(STAGE, argv, work)


if __name__ == "__main__":
    raise SystemExit(main())
