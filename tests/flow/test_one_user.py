"""One user's walk through every table by both methods, on the real DAG files, Spark, Ray and the real small model; then again.

The sample shop of tests/fixtures/own_shop: anna looked at a mug and bought two, searched for a present, put a scarf into the cart,
bought it and sent it back. So on 12 March 2024 a kept purchase of hers is the mug alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from recgpt_ops.llm.cluster import free_ports
from recgpt_ops.llm.models import model_directory, models_root
from recgpt_ops.planning.budget import night_budget, total
from recgpt_ops.settings import load_settings
from recgpt_ops.tables import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

SHOP = ROOT / "tests" / "fixtures" / "own_shop"
DS = "2024-03-12"
METHODS = ["v1", "v2"]


class Shop(NamedTuple):
    """A warehouse and the environment in which `recgpt` is called."""

    warehouse: Path
    environment: dict[str, str]

    def recgpt(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "recgpt_ops.cli", *arguments, "--warehouse", str(self.warehouse)]
        done = subprocess.run(command, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def query(self, sql: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads(self.recgpt("query", sql, "--format", "json"))
        return rows


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """The shop's files imported and one night run for anna."""
    settings = load_settings()
    model = model_directory(settings.engine.model, models_root=models_root(settings.warehouse))
    port, dashboard_port = free_ports(2)
    environment = {
        **os.environ,
        "PYTHONPYCACHEPREFIX": str(ROOT / ".cache" / "pyc"),
        "RECGPT_RAY__PORT": str(port),
        "RECGPT_RAY__DASHBOARD_PORT": str(dashboard_port),
        "RECGPT_ENGINE__MODEL": str(model),
        "RECGPT_ENGINE__KV_CACHE_GB": "1",
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    made = Shop(tmp_path_factory.mktemp("shop"), environment)
    for table in ("events", "items", "profiles"):
        made.recgpt("import", table, "--mapping", str(SHOP / f"{table}.yaml"), str(SHOP / f"{table}.csv"))
    made.recgpt("night", "--ds", DS, "--user", "anna")
    return made


def test_the_walk_of_one_user_goes_down_the_tables(shop: Shop) -> None:
    counts = shop.query("SELECT (SELECT count(*) FROM behavior_events) AS events, (SELECT count(*) FROM quarantine) AS quarantined")
    assert counts == [{"events": 20, "quarantined": 8}]

    days = shop.query("SELECT bucket, action, [e.item_id FOR e IN entries] AS items FROM behavior_days WHERE user_id = 'anna' ORDER BY ALL")
    assert days == [
        {"bucket": "2024-03-05", "action": "detail_view", "items": ["mug-1"]},
        {"bucket": "2024-03-05", "action": "purchase", "items": ["mug-1"]},
        {"bucket": "2024-03-06", "action": "cart", "items": ["scarf-2"]},
        {"bucket": "2024-03-06", "action": "detail_view", "items": ["scarf-2"]},
        {"bucket": "2024-03-06", "action": "search", "items": [None]},  # its purchase of the scarf was sent back
    ]

    audience = shop.query("SELECT method, user_id, status, reason FROM night_users ORDER BY method")
    assert audience == [{"method": method, "user_id": "anna", "status": "computed", "reason": "forced"} for method in METHODS]
    assert {"kind": "season", "name": "spring"} in shop.query("SELECT kind, name FROM environment_signals WHERE region = 'DE'")

    [context] = shop.query(
        "SELECT text, [line.line_id FOR line IN lines] AS line_ids, recent_item_types FROM user_contexts WHERE method = 'v2'"
    )
    assert 'Mug "Harbor", blue' in context["text"]
    assert "birthday present" in context["text"]
    assert context["recent_item_types"] == ["mug"]

    plans = shop.query("SELECT * FROM intent_plans WHERE method = 'v2' ORDER BY persona_index")
    assert [plan["persona_index"] for plan in plans] == list(range(1, len(plans) + 1))
    assert {plan["name"] for plan in plans} == {"Kitchen", "Clothing"}
    assert all(plan["evidence_by"] == "program" and set(plan["line_ids"]) <= set(context["line_ids"]) for plan in plans)

    proposals = shop.query("SELECT persona_index, tag_id, tag FROM tag_proposals WHERE method = 'v2'")
    assert {row["tag"] for row in proposals} <= {"scarf", "desk lamp", "floor lamp", "bulb", "tea", "teapot"}  # the mug was just bought

    tags = shop.query("SELECT rank, tag_id, score FROM intent_tags WHERE method = 'v2' ORDER BY rank")
    assert [tag["rank"] for tag in tags] == list(range(1, len(tags) + 1))
    assert {tag["tag_id"] for tag in tags} <= {row["tag_id"] for row in proposals}
    assert [tag["score"] for tag in tags] == sorted((tag["score"] for tag in tags), reverse=True)

    candidates = shop.query("SELECT tag_id, item_id, rank, score FROM candidate_items WHERE method = 'v2' ORDER BY tag_id, rank")
    assert {row["tag_id"] for row in candidates} == {tag["tag_id"] for tag in tags}
    assert "mug-1" not in {row["item_id"] for row in candidates}

    shown = shop.query(
        "SELECT a.item_id, e.text FROM explanation_assignments a JOIN explanations e USING (method, explanation_id) "
        "WHERE a.method = 'v2' ORDER BY a.rank"
    )
    assert {row["item_id"] for row in shown} <= {row["item_id"] for row in candidates}
    assert all(4 <= len(row["text"].split()) <= 10 for row in shown)

    assert shop.query("SELECT method FROM publications ORDER BY method") == [{"method": method} for method in METHODS]


def test_v1_fills_the_same_tables_by_its_own_routes(shop: Shop) -> None:
    counts = {
        table: {row["method"]: row["n"] for row in shop.query(f"SELECT method, count(*) AS n FROM {table} GROUP BY method")}
        for table in ("user_contexts", "intent_tags", "candidate_items", "explanation_assignments")
    }
    assert all(set(methods) == set(METHODS) for methods in counts.values()), counts
    [texts] = shop.query("SELECT count(DISTINCT text) AS n FROM user_contexts")
    assert texts["n"] == 1  # both methods read the same lines


@pytest.mark.parametrize(
    ("table", "judged", "dimensions"), [("tag_verdicts", "intent_tags", 4), ("explanation_verdicts", "explanations", 7)]
)
def test_both_judges_judge_every_row_of_both_methods(shop: Shop, table: str, judged: str, dimensions: int) -> None:
    verdicts = shop.query(f"SELECT method, judge_method, status, label, len(levels) AS levels FROM {table}")
    for method in METHODS:
        [rows] = shop.query(f"SELECT count(*) AS n FROM {judged} WHERE method = '{method}'")
        for judge in ("panel", "one_shot"):
            mine = [row for row in verdicts if (row["method"], row["judge_method"]) == (method, judge)]
            assert len(mine) == rows["n"]
            assert all((row["status"] == "failed") == (row["label"] is None) for row in mine)
            assert judge == "one_shot" or all(row["levels"] == dimensions for row in mine if row["status"] == "judged")


def test_no_more_calls_were_made_than_had_been_planned(shop: Shop) -> None:
    planned = night_budget(load_settings(), dict.fromkeys(METHODS, 1))
    made = {row["stage"]: row for row in shop.query("SELECT stage, calls_made FROM nights WHERE state = 'done' AND calls_made > 0")}
    assert set(made) == set(planned)
    for stage, row in made.items():
        assert row["calls_made"] <= planned[stage].calls, stage
    [tokens] = shop.query("SELECT sum(prompt_tokens) AS submitted FROM llm_calls")
    assert tokens["submitted"] <= total(planned).prompt_tokens


def test_every_call_is_accounted_for_once(shop: Shop) -> None:
    called = {row["call_id"] for row in shop.query("SELECT call_id FROM llm_calls")}
    tables = ("intent_plans", "tag_proposals", "intent_tags", "explanations")
    named = {row["call_id"] for table in tables for row in shop.query(f"SELECT call_id FROM {table} WHERE call_id IS NOT NULL")}
    for table in ("tag_verdicts", "explanation_verdicts"):
        named |= {row["call_id"] for row in shop.query(f"SELECT unnest(levels).call_id AS call_id FROM {table}")} - {None}
    assert named <= called
    [counts] = shop.query("SELECT count(*) AS n, count(DISTINCT call_id) AS distinct_calls, min(prompt_tokens) AS least FROM llm_calls")
    assert counts["n"] == counts["distinct_calls"] == len(called)
    assert counts["least"] > 0


def test_the_same_night_again_writes_nothing(shop: Shop) -> None:
    before = shop.query("SELECT count(*) AS n, max(recorded_at) AS newest FROM nights")
    assert "is done" in shop.recgpt("night", "--ds", DS, "--user", "anna")
    assert shop.query("SELECT count(*) AS n, max(recorded_at) AS newest FROM nights") == before
