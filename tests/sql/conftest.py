"""Two nights of a small shop, as a warehouse and as temporary views of Spark."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from recgpt_ops.delta import checks
from recgpt_ops.delta.reading import read_arrow
from recgpt_ops.delta.sql import connect, fetch_select
from recgpt_ops.delta.warehouse import Warehouse, fix_identity, open_warehouse
from recgpt_ops.spark import frame_of
from recgpt_ops.tables import ROOT, all_contracts
from recgpt_ops.views import all_relations
from tests.sql.rows import EPOCH, publish, record, show

FIRST, SECOND = "2017-10-30", "2017-10-31"

Select = Callable[[str], list[tuple]]


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Method v1: user a in the first night. Method v2: user a in the first night (generation p1), b added by a second attempt (p2);
    in the second night (p3) a is carried, c is computed and b failed.
    """
    opened = open_warehouse(str(tmp_path_factory.mktemp("shop") / "warehouse"), create=True)
    fix_identity(opened, zone="America/New_York", locale="en-US")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "run_checks", lambda *_: [])
        add_feeds(opened)
        add_users(opened)
        add_contexts_and_plans(opened)
        add_tags_and_items(opened)
        add_explanations(opened)
        add_verdicts(opened)
        add_records(opened)
    return opened


def add_feeds(shop: Warehouse) -> None:
    versions = [{"item_id": "x", "title": "Red wine"}, {"item_id": "y", "title": "Beans"}]
    later = {"item_id": "x", "title": "Red wine, 1 l", "valid_from_ds": SECOND}  # not yet of the first night
    rows = [{"valid_from_ds": "0001-01-01", **version} for version in versions]
    publish(shop, "items", *rows, later, ds="i1", publish_id="i1")


def add_users(shop: Warehouse) -> None:
    a, b = {"user_id": "a", "computed_ds": FIRST}, {"user_id": "b", "computed_ds": FIRST}
    publish(shop, "night_users", {**a, "made_by": "p1"}, {**a, "made_by": "p1", "method": "v1"}, ds=FIRST, publish_id="p1")
    publish(shop, "night_users", {**a, "made_by": "p1"}, {**b, "made_by": "p2"}, ds=FIRST, publish_id="p2", fence=2)
    second = [{**a, "made_by": "p1", "status": "carried"}, {"user_id": "c", "made_by": "p3"}, {**b, "made_by": "p3", "status": "failed"}]
    publish(shop, "night_users", *second, ds=SECOND, publish_id="p3")
    show(shop, ds=FIRST, publish_id="p1", method="v1")
    show(shop, ds=FIRST, publish_id="p1")
    show(shop, ds=FIRST, publish_id="p2", fence=2)
    show(shop, ds=SECOND, publish_id="p3")


def add_contexts_and_plans(shop: Warehouse) -> None:
    lines = [
        {"line_id": 1, "text": "Oct 30 (bought) | Beans", "facts": [], "item_ids": ["y"], "queries": [], "newest_at": EPOCH},
        {"line_id": 2, "text": "Oct 1 (bought) | Red wine", "facts": [], "item_ids": ["x"], "queries": [], "newest_at": EPOCH},
    ]
    context = {"user_id": "a", "attributes": [{"name": "age", "value": "35-44"}], "signals": ["Season: autumn"], "lines": lines}
    publish(shop, "user_contexts", context, ds=FIRST, publish_id="p1")
    plan = {"user_id": "a", "persona_index": 1, "name": "Cellar", "focus": "wine", "line_ids": [2]}
    publish(shop, "intent_plans", plan, {**plan, "persona_index": 2, "name": "Kitchen"}, ds=FIRST, publish_id="p1")


def add_tags_and_items(shop: Warehouse) -> None:
    wine, beans = {"tag_id": "t1", "tag": "wine"}, {"tag_id": "t2", "tag": "beans", "rank": 2}
    both = {"user_id": "a", **wine, "persona_indexes": [1, 2], "score": 0.5}
    publish(shop, "intent_tags", both, {"user_id": "a", **beans, "persona_indexes": [2]}, {"user_id": "a", **wine, "method": "v1"},
            ds=FIRST, publish_id="p1")  # fmt: skip
    soup = {"tag_id": "t4", "tag": "soup", "rank": 3}
    publish(shop, "intent_tags", {"user_id": "b", **wine}, {"user_id": "b", **soup}, ds=FIRST, publish_id="p2")
    publish(shop, "intent_tags", {"user_id": "c", "tag_id": "t3", "tag": "tea"}, ds=SECOND, publish_id="p3")
    items = [{"user_id": "a", "tag_id": "t1", "item_id": "x"}, {"user_id": "a", "tag_id": "t1", "item_id": "y", "rank": 2}]
    publish(shop, "candidate_items", *items, {**items[1], "item_id": "z", "rank": 4}, ds=FIRST, publish_id="p1")


def add_explanations(shop: Warehouse) -> None:
    publish(shop, "explanations", {"explanation_id": "e1", "text": "Warms autumn evenings"}, ds=FIRST, publish_id="p1")
    wine = {"tag_id": "t1", "item_id": "x", "explanation_id": "e1", "explanation_made_by": "p1"}
    failed = {"user_id": "a", "tag_id": "t2", "item_id": "y", "explanation_id": "e2", "status": "failed", "rank": 2}
    publish(shop, "explanation_assignments", {"user_id": "a", **wine, "status": "written"}, failed, ds=FIRST, publish_id="p1")
    publish(shop, "explanation_assignments", {"user_id": "c", **wine, "status": "shared"}, ds=SECOND, publish_id="p3")


def add_verdicts(shop: Warehouse) -> None:
    def level(dimension: str, told: str | None, status: str = "ok") -> dict:
        return {"dimension": dimension, "level": told, "status": status, "score": None, "reason": None, "call_id": f"call {dimension}"}

    good = {"status": "judged", "label": "S", "labeled_by": "rule", "levels": [level("relevance", "positive"), level("novelty", "neutral")]}
    broken = {"status": "failed", "labeled_by": "rule", "levels": [level("all", None, "not_a_level")]}
    empty = {"status": "by_rule", "label": "B", "labeled_by": "rule", "levels": []}
    wine, beans = {"user_id": "a", "tag_id": "t1"}, {"user_id": "a", "tag_id": "t2"}
    rows = [{**wine, **good, "judge_method": "panel"}, {**wine, **broken, "judge_method": "one_shot"}]
    publish(shop, "tag_verdicts", *rows, {**beans, **empty, "judge_method": "panel"}, ds=FIRST, publish_id="p1")
    publish(shop, "explanation_verdicts", {"explanation_id": "e1", **good, "judge_method": "panel"}, ds=FIRST, publish_id="p1")


def add_records(shop: Warehouse) -> None:
    call = {"ds": FIRST, "prompt_tokens": 100, "cached_tokens": 60, "computed_tokens": 40, "completion_tokens": 5, "status": "ok"}
    silent = {"cached_tokens": None, "computed_tokens": None, "ds": SECOND}
    calls = [("c1", 1, call), ("c2", 2, call), ("c2", 3, call), ("c3", 1, {**call, "method": "v1"}), ("c4", 1, {**call, **silent})]
    record(shop, "llm_calls", *({**told, "call_id": call_id, "attempt": attempt} for call_id, attempt, told in calls))
    done = {"ds": FIRST, "method": "all", "state": "done", "publish_id": "p2", "attempt": 2}
    record(shop, "nights", {**done, "stage": "intents", "seconds": 20.0}, {**done, "stage": "candidate_items", "seconds": 1.5},
           {**done, "stage": "intents", "state": "running", "seconds": 0.0},
           {**done, "stage": "intents", "publish_id": "p1", "attempt": 1, "seconds": 90.0})  # fmt: skip
    record(shop, "quarantine", {"ds": SECOND, "scenario": "default", "method": "v2", "user_id": "b", "reason": "context_too_long"},
           {"import_id": "i1", "reason": "no_item"})  # fmt: skip


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A warehouse in which nothing was made."""
    return open_warehouse(str(tmp_path_factory.mktemp("bare")))


def add_spark_views(spark: SparkSession, shop: Warehouse) -> None:
    """Every table as it lies in the warehouse under stored_<table_id>, then the SELECTs of sql/README.md."""
    for contract in all_contracts().values():
        frame_of(spark, read_arrow(shop, contract.name)).createOrReplaceTempView(f"stored_{contract.table_id}")
    for relation in all_relations(stored="stored_"):
        spark.sql(relation.select).createOrReplaceTempView(relation.name)


@pytest.fixture(scope="session")
def select(shop: Warehouse) -> Select:
    """The rows of one SELECT by DuckDB."""
    connection = connect(shop)
    return lambda sql: fetch_select(connection, sql)[1]


def readme_snippet() -> str:
    """The lines for Spark in sql/README.md."""
    return re.findall(r"```python\n(.+?)```", (Path(ROOT) / "sql" / "README.md").read_text(), flags=re.DOTALL)[0]
