"""What the catalog held, and what users had bought, as of a business date; read by Arrow, for jobs that run without Spark."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from recgpt_ops.delta.reading import read_arrow, read_files, state_files, state_generations
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.tables import load_contract

STATE_TABLES = ("behavior_days", "behavior_months", "behavior_years")


def items_as_of(warehouse: Warehouse, ds: str, *, columns: Sequence[str]) -> pa.Table:
    """One row per item, by item_id: the version that holds on `ds`. An item whose newest version has ended is left out."""
    wanted = list(dict.fromkeys(["item_id", "valid_from_ds", "valid_to_ds", *columns]))
    versions = read_arrow(warehouse, "items", columns=wanted, where=pads.field("valid_from_ds") <= ds)
    ordered = versions.sort_by([("item_id", "ascending"), ("valid_from_ds", "descending")]).combine_chunks()
    if not ordered.num_rows:
        return ordered.select(list(columns))
    ids = ordered["item_id"]
    is_newest = np.ones(ordered.num_rows, dtype=bool)
    is_newest[1:] = pc.not_equal(ids.slice(1), ids.slice(0, len(ids) - 1)).to_numpy()
    newest = ordered.filter(pa.array(is_newest))
    holds = pc.or_kleene(pc.is_null(newest["valid_to_ds"]), pc.greater_equal(newest["valid_to_ds"], pa.scalar(ds)))
    return newest.filter(holds).select(list(columns))


def catalog_words(warehouse: Warehouse, ds: str, *, clean_type: Callable[[str], str], clean_title: Callable[[str], str]) -> list[str]:
    """The distinct item types as of `ds`, sorted; of a catalog without types the distinct titles. Each in its clean form."""
    items = items_as_of(warehouse, ds, columns=["item_type", "title"])
    types = items["item_type"].drop_null().unique().to_pylist()
    titles = [] if types else items["title"].unique().to_pylist()
    return sorted({clean_type(word) for word in types if word} | {clean_title(title) for title in titles if title})


def bought_item_ids(warehouse: Warehouse, ds: str, *, user_ids: Collection[str]) -> dict[str, set[str]]:
    """Per user the items bought and not returned by the end of `ds`; users without purchases are not in it.

    From the state tables, whose entries are cut to the newest `spark.max_bucket_entries` per user and bucket.
    """
    bought: dict[str, set[str]] = {}
    where = (pads.field("action") == "purchase") & pads.field("user_id").isin(list(user_ids))
    for table in STATE_TABLES:
        generations = state_generations(warehouse, table, arrived_cut_ds=ds)
        # A bucket of a later day can be certified with an earlier cut only where the source's arrival dates say so.
        read = {bucket: publish_id for bucket, publish_id in generations.items() if bucket <= ds}
        rows = read_files(load_contract(table), state_files(warehouse, table, read), columns=["user_id", "entries"], where=where)
        for row in rows.to_pylist():
            bought.setdefault(row["user_id"], set()).update(item_ids(row["entries"]))
    return bought


def item_ids(entries: Sequence[dict[str, Any]]) -> set[str]:
    """The items of a bucket's entries; searches have none."""
    return {entry["item_id"] for entry in entries if entry["item_id"] is not None}
