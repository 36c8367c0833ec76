"""Makes candidate_items of one night: the items nearest to each distinct tag, looked up once and joined to the users who have it.

    python -m jobs.ray.candidate_items --warehouse W --ds 2017-10-30 --publish-id p0123456789abcdef

`intents_daily` submits it through Ray's job API. Tags are looked up in Ray tasks; titles that were embedded on an earlier night are
read from the embedder's cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import ray

from recgpt_ops.delta.catalog import bought_item_ids, items_as_of
from recgpt_ops.delta.certificates import certificates
from recgpt_ops.delta.generations import publish_arrow
from recgpt_ops.delta.inputs import feeds_digest
from recgpt_ops.delta.reading import read_generation
from recgpt_ops.delta.schemas import arrow_schema
from recgpt_ops.delta.warehouse import Warehouse, open_warehouse
from recgpt_ops.errors import NightError
from recgpt_ops.ids import row_id
from recgpt_ops.llm.ray_session import ray_session
from recgpt_ops.recipes import Recipe, load_recipe
from recgpt_ops.retrieval.candidates import Candidate, candidate_rows, find_candidates, make_catalog
from recgpt_ops.runs import NightRun, StageCounts, report_progress, run_stage
from recgpt_ops.settings import Settings
from recgpt_ops.tables import load_contract

TABLE = "candidate_items"
TAGS_PER_TASK = 5_000
EMBEDDING_CPUS = 2  # of the task that embeds new titles; torch gets as many threads, and more than 2 gain little on short texts
POLL_SECONDS = 1.0
Found = dict[str, list[Candidate]]


class ProgressBoard:
    """How far the embedding of the catalog is."""

    def __init__(self) -> None:
        """Nothing to embed so far."""
        self.told = (0, 0)

    def tell(self, done: int, total: int) -> None:
        """Titles embedded, of those that were in no cache."""
        self.told = (done, total)

    def latest(self) -> tuple[int, int]:
        """What was told last."""
        return self.told


def look_up(warehouse_root: str, settings: Settings, ds: str, tags: Mapping[str, str], count: int, board: Any) -> Found:
    """The `count` nearest items of each tag (tag_id -> words), in the catalog as of `ds`."""
    from recgpt_ops.llm.embedder import load_embedder  # torch belongs into the task's process, not into the job's
    from recgpt_ops.llm.models import models_root

    embedder = load_embedder(settings.embedder, models_root=models_root(warehouse_root))
    items = items_as_of(open_warehouse(warehouse_root), ds, columns=["item_id", "title", "text_hash"]).to_pylist()
    catalog = make_catalog(items, embedder, progress=lambda done, total: board.tell.remote(done, total))
    return find_candidates(tags, catalog, embedder, count=count)


def look_up_all(run: NightRun, tags: Mapping[str, str], *, count: int) -> Found:
    """All tags, in blocks. The first block embeds what no cache holds; the others follow and find it there."""
    ids = sorted(tags)
    blocks = [{tag_id: tags[tag_id] for tag_id in ids[start : start + TAGS_PER_TASK]} for start in range(0, len(ids), TAGS_PER_TASK)]
    found: Found = {}
    with ray_session(f"{TABLE}, ds={run.ds}"):
        board: Any = ray.remote(ProgressBoard).options(num_cpus=0).remote()
        resources = ray.cluster_resources()  # type: ignore[no-untyped-call]  # ray types only a part of itself
        for some, cpus in ((blocks[:1], min(EMBEDDING_CPUS, resources.get("CPU", 1))), (blocks[1:], 1)):
            task = ray.remote(look_up).options(num_cpus=cpus, max_retries=2)
            waiting = [task.remote(run.warehouse.root, run.settings, run.ds, block, count, board) for block in some]
            while waiting:
                ready, waiting = ray.wait(waiting, timeout=POLL_SECONDS)
                done, total = ray.get(board.latest.remote())
                report_progress(run, "titles embedded", done, total or None)
                for part in ray.get(ready):
                    found |= part
    return found


def bought_texts(warehouse: Warehouse, ds: str, user_ids: Sequence[str]) -> dict[str, set[str]]:
    """Per user the text hashes of what the user bought."""
    bought = bought_item_ids(warehouse, ds, user_ids=user_ids)
    items = items_as_of(warehouse, ds, columns=["item_id", "text_hash"])
    hashes: dict[Any, Any] = dict(zip(items["item_id"].to_pylist(), items["text_hash"].to_pylist(), strict=True))
    return {user_id: {hashes[item_id] for item_id in item_ids if item_id in hashes} for user_id, item_ids in bought.items()}


def work(run: NightRun, counts: StageCounts) -> None:
    """One stage of the night: look up every distinct tag once, join to users, publish."""
    recipes: dict[str, Recipe] = {method: load_recipe(method) for method in run.methods}
    tags_made = certificates(run.warehouse, table="intent_tags", publish_id=run.publish_id)
    if not tags_made:
        raise NightError(f"{TABLE}, ds={run.ds}: intent_tags has no generation {run.publish_id}; run jobs.ray.intents first")
    digests = feeds_digest(run.warehouse, run.ds)
    made_from = [digests["items"], digests["behavior_events"], *(made.row_digest for made in tags_made)]
    counts.input_digest = row_id(made_from + [recipe.digest for recipe in recipes.values()])
    columns = ["ds", "scenario", "method", "user_id", "user_bucket", "tag_id", "tag"]
    read = read_generation(run.warehouse, "intent_tags", ds=run.ds, publish_id=run.publish_id, scenario=run.scenario, columns=columns)
    tag_rows = sorted(read.to_pylist(), key=lambda row: (row["method"], row["user_id"], row["tag_id"]))
    tags = {row["tag_id"]: row["tag"] for row in reversed(tag_rows)}  # users may spell a tag differently: the first user's spelling
    found = look_up_all(run, tags, count=max(recipe.candidates_per_tag for recipe in recipes.values())) if tags else {}
    bought = bought_texts(run.warehouse, run.ds, sorted({row["user_id"] for row in tag_rows}))
    rows: list[dict[str, Any]] = []
    for method, recipe in recipes.items():
        mine = [row for row in tag_rows if row["method"] == method]
        some = {tag_id: items[: recipe.candidates_per_tag] for tag_id, items in found.items()}
        left_out = bought if recipe.exclude_bought else {}
        rows += candidate_rows(mine, some, publish_id=run.publish_id, keep=recipe.candidates_per_user_tag, bought_texts=left_out)
    counts.counts_in, counts.counts_out = len(tag_rows), len(rows)
    counts.detail |= {
        "distinct_tags": len(tags),
        "tags_without_items": len(tag_rows) - len({(r["method"], r["user_id"], r["tag_id"]) for r in rows}),
    }
    publish_arrow(
        run.warehouse,
        TABLE,
        pa.Table.from_pylist(rows, schema=arrow_schema(load_contract(TABLE))),
        publish_id=run.publish_id,
        scopes=[run.ds],
        fence=run.attempt,
        input_digest=counts.input_digest,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """The job's command line; returns its exit code."""
    return run_stage(TABLE, argv, work)


if __name__ == "__main__":
    raise SystemExit(main())
