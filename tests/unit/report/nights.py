"""Two made-up nights with both methods: what a report has to show, also of texts that mean harm.

    2017-10-29   v2 alone, users 886 and 1391
    2017-10-30   v1 and v2; user zh-1 in Chinese, user failed without a result by v2, user hostile with texts that mean harm

User 886 by v2, as the tests read it:

    line 1   Oct 30   Cheese crackers          cited by the model for persona Snacks
    line 2   Oct 28   Pumpkin; Candy corn      set by the program for persona Halloween
    line 3   Aug 2017 Pumpkin                  in context for the tag Pumpkin, named by nobody
    tags     1 Pumpkin (Halloween)   2 Cheese crackers (Snacks)   3 Garden hose (Snacks; no line holds it)
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from recgpt_ops.delta.generations import publish_arrow
from recgpt_ops.delta.pointer import move_pointer
from recgpt_ops.delta.records import append_records
from recgpt_ops.delta.schemas import arrow_schema
from recgpt_ops.delta.warehouse import Warehouse, fix_identity
from recgpt_ops.ids import row_id, tag_id, text_hash, user_bucket
from recgpt_ops.tables import load_contract

BEFORE, DS, SERVED = "2017-10-29", "2017-10-30", "2017-10-31"
EVIL = '</script><script>window.stolen = 1</script><img src=x onerror="window.stolen = 1">'
TURNED = "Red\u202eeniw\u202c wine\x1b[31m"
CHINESE = "南瓜灯"
MIDNIGHT = datetime(2017, 10, 31, 4, tzinfo=UTC)

ITEMS = {
    "i1": ("Cheese crackers, 16 oz", "SNACKS", "Cheese crackers"),
    "i2": ("Carving pumpkin, large", "SEASONAL", "Pumpkin"),
    "i3": ("Candy corn, 22 oz bag", "CANDY", "Candy corn"),
    "i4": ("Pie pumpkin, small", "SEASONAL", "Pumpkin"),
    "i5": ("Garden hose, 50 ft", "GARDEN", "Garden hose"),
    "i6": ("Cheddar crackers, family size", "SNACKS", "Cheese crackers"),
    "evil": (EVIL, "SNACKS", TURNED),
    "zh": (CHINESE, "节日", CHINESE),
}
V1_LIST, V2_LIST = ("Candy corn", "Cheese crackers", "Pumpkin"), ("Pumpkin", "Cheese crackers", "Garden hose")
TAG_DIMENSIONS = ("relevance", "consistency", "specificity", "validity")
TEXT_DIMENSIONS = ("relevance", "factuality", "clarity", "safety", "informativeness", "timeliness", "appeal")
Rows = list[dict[str, Any]]


def fill(warehouse: Warehouse, *, more_users: int = 0) -> None:
    """Both nights, visible. `more_users` users with tags and nothing else are added to the second: what a report does with many."""
    fix_identity(warehouse, zone="America/New_York", locale="en-US")
    publish(warehouse, "items", [item_row(item_id, *texts) for item_id, texts in ITEMS.items()], publish_id="i1", scopes=["i1"], fence=None)
    make_night(warehouse, BEFORE, publish_id="p1", methods={"v2": ["886", "1391"]}, seconds=100.0)
    crowd = [f"u{number:04d}" for number in range(more_users)]
    everybody = ["886", "1391", "zh-1", "hostile", *crowd]
    make_night(warehouse, DS, publish_id="p2", methods={"v1": everybody, "v2": [*everybody, "failed"]}, seconds=120.0)
    append_records(warehouse, "evaluations", evaluation_rows())


def publish(warehouse: Warehouse, table: str, rows: Rows, *, publish_id: str, scopes: list[str], fence: int | None) -> None:
    built = pa.Table.from_pylist(rows, schema=arrow_schema(load_contract(table)))
    publish_arrow(warehouse, table, built, publish_id=publish_id, scopes=scopes, fence=fence, input_digest="inputs")


def make_night(warehouse: Warehouse, ds: str, *, publish_id: str, methods: Mapping[str, list[str]], seconds: float) -> None:
    """One night with every table, and the pointer on it."""
    tables: dict[str, Rows] = {}
    for method, users in methods.items():
        for table, rows in method_rows(ds, publish_id, method, users).items():
            tables.setdefault(table, []).extend(rows)
    for table, rows in tables.items():
        publish(warehouse, table, rows, publish_id=publish_id, scopes=[ds], fence=1)
    append_records(warehouse, "nights", stage_rows(ds, publish_id, list(methods), seconds))
    append_records(warehouse, "llm_calls", [call_row(ds, method, place) for method in methods for place in range(6)])
    if "v1" in methods:
        append_records(warehouse, "quarantine", quarantine_rows(ds))
    for method in methods:
        move_pointer(
            warehouse, ds=ds, scenario="default", method=method, fence=1, publish_id=publish_id, input_digest="inputs",
            certificate_sha256="c", why="night", published_by="run",
        )  # fmt: skip


def method_rows(ds: str, publish_id: str, method: str, users: Iterable[str]) -> dict[str, Rows]:
    """All rows of one method. The explanation of a tag is the same text for everybody who has it."""
    tables: dict[str, Rows] = {}
    shared: dict[str, dict[str, Any]] = {}
    for user_id in users:
        scope = {"ds": ds, "publish_id": publish_id, "scenario": "default", "method": method, "user_id": user_id}
        scope["user_bucket"] = user_bucket(user_id)
        for table, rows in user_rows(scope, shared).items():
            tables.setdefault(table, []).extend(rows)
    tables["explanations"] = list(shared.values())
    tables["explanation_verdicts"] = [
        verdict
        for place, row in enumerate(shared.values())
        for verdict in verdict_rows(
            {name: row[name] for name in ("ds", "publish_id", "scenario", "method", "explanation_id")}, TEXT_DIMENSIONS, place
        )
    ]
    return tables


def user_rows(scope: dict[str, Any], shared: dict[str, dict[str, Any]]) -> dict[str, Rows]:
    """One user's rows by one method."""
    user_id, method = scope["user_id"], scope["method"]
    locale = "zh-CN" if user_id == "zh-1" else "en-US"
    is_failed = user_id == "failed"
    night_user = {
        **scope, "status": "failed" if is_failed else "computed", "reason": "new_behavior", "made_by": scope["publish_id"],
        "computed_ds": scope["ds"], "attempt": 1, "locale": locale, "region": "CN" if locale == "zh-CN" else "US-NY",
    }  # fmt: skip
    if is_failed:
        return {"night_users": [night_user]}
    plans, tags = personas(scope, locale), list(V1_LIST if method == "v1" else V2_LIST)
    if user_id == "hostile":
        tags[1] = TURNED
    if locale == "zh-CN":
        tags = [CHINESE]
    tag_rows = [tag_row(scope, locale, tag, rank, plans) for rank, tag in enumerate(tags, start=1)]
    if user_id.startswith("u"):
        return {"night_users": [night_user], "intent_tags": tag_rows}
    tables = {
        "night_users": [night_user],
        "user_contexts": [context_row(scope, locale)],
        "intent_plans": plans,
        "intent_tags": tag_rows,
        "candidate_items": [candidate for row in tag_rows for candidate in candidates(scope, row)],
        "tag_verdicts": [
            verdict
            for place, row in enumerate(tag_rows)
            if (user_id, method, place) != ("1391", "v1", 0)  # left out by the judges' share
            for verdict in verdict_rows({**scope, "tag_id": row["tag_id"]}, TAG_DIMENSIONS, place + len(user_id))
        ],
        "explanation_assignments": [],
    }
    for rank, row in enumerate(tag_rows[:2], start=1):
        assignment, text = explained(scope, locale, row, rank, is_failed=user_id == "1391" and rank == 2)
        tables["explanation_assignments"].append(assignment)
        if text is not None:
            shared.setdefault(text["explanation_id"], text)
    return tables


def context_row(scope: dict[str, Any], locale: str) -> dict[str, Any]:
    if locale == "zh-CN":
        lines = [line(1, "10月30日（购买） | 南瓜灯", ["2017-10-30"], ["zh"])]
    else:
        lines = [
            line(1, "Oct 30 (bought) | Cheese crackers, 16 oz", ["2017-10-30"], ["i1"]),
            line(2, "Oct 28, Oct 12 (bought) | Carving pumpkin, large; Candy corn, 22 oz bag", ["2017-10-28", "2017-10-12"], ["i2", "i3"]),
            line(3, "Aug 2017 (viewed) | Pie pumpkin, small", ["2017-08"], ["i4"]),
            *(
                line(number, f"{2016 - number} (bought) | Soda number {number}", [str(2016 - number)], [f"gone{number}"])
                for number in range(4, 24)
            ),
        ]
        if scope["user_id"] == "hostile":
            lines.append(line(24, f"2010 (searched for) | {EVIL} {TURNED}", ["2010"], ["evil"]))
    is_short = scope["method"] == "v1" and scope["user_id"] == "1391"  # another budget: v1 read fewer lines than v2
    attributes = [{"name": "age", "value": "35-44"}, {"name": "home", "value": "homeowner"}]
    if scope["user_id"] == "hostile":
        attributes.append({"name": "motto", "value": EVIL})
    return {
        **scope, "locale": locale, "region": "US-NY", "serve_ds": SERVED, "situation_id": "s1", "attributes": attributes,
        "signals": ["季节：秋"] if locale == "zh-CN" else ["Season: autumn", "Holiday: Halloween (today)"],
        "lines": lines[:3] if is_short else lines, "text": "...", "context_tokens": 640, "plain_tokens": 2210, "budget_tokens": 2000,
        "cut_line_count": 3, "cut_item_count": 9, "unknown_item_count": 0, "groups": [], "recent_item_types": [],
    }  # fmt: skip


def line(line_id: int, text: str, buckets: list[str], item_ids: list[str]) -> dict[str, Any]:
    facts = [{"table_name": "behavior_days", "bucket": bucket, "action": "purchase"} for bucket in buckets]
    newest = MIDNIGHT - timedelta(days=line_id)
    return {"line_id": line_id, "text": text, "facts": facts, "item_ids": item_ids, "queries": [], "newest_at": newest}


def personas(scope: dict[str, Any], locale: str) -> Rows:
    def plan(index: int, name: str, line_ids: list[int], evidence_by: str, evidence: list[str]) -> dict[str, Any]:
        return {
            **scope, "persona_index": index, "locale": locale, "name": name, "focus": f"What {name} may bring next",
            "user_summary": "homeowner, 35-44", "evidence": evidence, "context_cues": ["Holiday: Halloween (today)"],
            "avoid": [], "line_ids": line_ids, "evidence_by": evidence_by, "call_id": None if scope["method"] == "v1" else "c",
        }  # fmt: skip

    if locale == "zh-CN":
        return [plan(1, "节日用品", [1], "program", [CHINESE])]
    if scope["method"] == "v1":
        return [plan(1, "general", [1, 2], "program", ["Cheese crackers"]), plan(2, "trends", [], "program", []),
                plan(3, "season", [2], "program", ["Candy corn"])]  # fmt: skip
    return [plan(1, "Halloween", [2], "program", ["Candy corn"]), plan(2, "Snacks", [1], "model", ["Cheese crackers"])]


def tag_row(scope: dict[str, Any], locale: str, tag: str, rank: int, plans: Rows) -> dict[str, Any]:
    proposers = {"Pumpkin": 1, "Candy corn": 3, "Cheese crackers": 1 if scope["method"] == "v1" else 2}
    index = min(proposers.get(tag, 2), len(plans))
    made = tag_id(locale, tag)
    return {
        **scope, "tag_id": made, "intent_tag_id": row_id((scope["ds"], "default", scope["method"], scope["user_id"], made)),
        "locale": locale, "tag": tag, "rank": rank, "score": None if scope["method"] == "v1" else 4.5 - rank,
        "persona_indexes": [index], "pool_index": rank, "reason": EVIL if scope["user_id"] == "hostile" else None, "call_id": "c",
    }  # fmt: skip


def candidates(scope: dict[str, Any], tag: dict[str, Any]) -> Rows:
    found = [item_id for item_id, (_, _, kind) in ITEMS.items() if kind == tag["tag"]] or ["i5"]
    return [
        {**scope, "tag_id": tag["tag_id"], "item_id": item_id, "text_hash": "h", "rank": rank, "score": 0.9 - rank / 10}
        for rank, item_id in enumerate(found, start=1)
    ]


def explained(
    scope: dict[str, Any], locale: str, tag: dict[str, Any], rank: int, *, is_failed: bool
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """An item's assignment, and its explanation unless none came."""
    item_id = candidates(scope, tag)[0]["item_id"]
    explanation_id = row_id((tag["tag_id"], item_id, "s1", locale))
    written = {"v1": f"Because you like {tag['tag']}", "v2": "Carve it tonight, bake it tomorrow"}[scope["method"]]
    text = CHINESE + "，今晚点亮" if locale == "zh-CN" else written
    assignment = {
        **scope, "locale": locale, "item_id": item_id, "tag_id": tag["tag_id"], "text_hash": "h", "situation_id": "s1", "rank": rank,
        "explanation_id": explanation_id, "explanation_made_by": None if is_failed else scope["publish_id"],
        "status": "failed" if is_failed else "written",
    }  # fmt: skip
    if is_failed:
        return assignment, None
    row = {
        **{name: scope[name] for name in ("ds", "publish_id", "scenario", "method")}, "explanation_id": explanation_id,
        "tag_id": tag["tag_id"], "tag": tag["tag"], "text_hash": "h", "item_text": ITEMS[item_id][0], "situation_id": "s1",
        "situation": "autumn, Halloween today", "locale": locale,
        "style": None if scope["method"] == "v1" else "warm, playful, for a family", "style_call_id": None,
        "text": EVIL[:150] if scope["user_id"] == "hostile" and rank == 2 else text, "call_id": "c",
        "writer_hash": "w",
    }  # fmt: skip
    return assignment, row


def verdict_rows(scope: dict[str, Any], dimensions: Iterable[str], place: int) -> Rows:
    """A panel's and a one-shot judge's verdict; of every fifth row the panel fails in its first dimension."""
    is_failed = place % 5 == 4
    words = ("positive", "neutral", "negative", "positive")
    levels = [
        {
            "dimension": name, "level": None if is_failed and number == 0 else words[(number + place) % 4],
            "status": "out_of_range" if is_failed and number == 0 else "ok", "score": None if is_failed and number == 0 else 0.25,
            "reason": "fits the season" if number == 0 and not is_failed else None, "call_id": "c",
        }
        for number, name in enumerate(dimensions)
    ]  # fmt: skip
    rest = {"judge_hash": "j", "judge_model": "smollm2-135m-instruct", "is_self_judged": True, "labeled_by": "rule"}
    panel = {**scope, **rest, "judge_method": "panel", "status": "failed" if is_failed else "judged",
             "label": None if is_failed else ("S", "A", "B")[place % 3], "levels": levels}  # fmt: skip
    overall = [{"dimension": "overall", "level": "positive", "status": "ok", "score": None, "reason": None, "call_id": "c"}]
    return [panel, {**scope, **rest, "judge_method": "one_shot", "status": "judged", "label": "A", "levels": overall}]


def item_row(item_id: str, title: str, category: str, item_type: str) -> dict[str, Any]:
    return {
        "item_id": item_id, "valid_from_ds": "0001-01-01", "valid_to_ds": None, "import_id": "i1", "source": "shop",
        "locale": "zh-CN" if item_id == "zh" else "en-US", "title": title, "category": category, "item_type": item_type, "brand": None,
        "price": None, "currency": None, "text_hash": text_hash(title),
    }  # fmt: skip


STAGES = ("night_users", "behavior_days", "environment_signals", "user_contexts", "intents", "candidate_items", "explanations",
          "tag_verdicts", "explanation_verdicts", "publish_night")  # fmt: skip


def stage_rows(ds: str, publish_id: str, methods: list[str], seconds: float, *, attempt: int = 1, failed: str | None = None) -> Rows:
    """A record of each stage up to the one that failed."""
    made: Rows = []
    for place, stage in enumerate(STAGES):
        detail: dict[str, Any] = {"methods": methods, "why": "night", "users": 8, "user_ids": []}
        if stage in {"intents", "explanations", "tag_verdicts", "explanation_verdicts"}:
            account = {"prompt_tokens": 4000, "cached_tokens": 3000, "computed_tokens": 1000, "completion_tokens": 90}
            detail |= {"account": account, "engine_loads": int(stage == "intents")}
        if stage == failed:
            detail["error"] = "explanations, ds=2017-10-30: 3 of 8 could not be computed\n  (too_long 3)"
        row = {
            "ds": ds, "scenario": "default", "method": "all", "stage": stage, "attempt": attempt,
            "state": "failed" if stage == failed else "done",
            "run_id": "run", "publish_id": publish_id, "counts_in": 8, "counts_out": 24, "quarantined_count": int(stage == "explanations"),
            "calls_made": 30 if "account" in detail else 0, "calls_reused": 0, "input_digest": "d", "detail": json.dumps(detail),
            "seconds": seconds / (place + 1), "peak_memory_mb": 300.0, "recorded_at": MIDNIGHT + timedelta(minutes=place),
        }  # fmt: skip
        made.append(row)
        if stage == failed:
            break
    return made


def call_row(ds: str, method: str, place: int) -> dict[str, Any]:
    stage, role = (("intents", "planner"), ("intents", "expert"), ("tag_verdicts", "judge"))[place % 3]
    cached = 0 if method == "v1" else 1500
    return {
        "call_id": row_id((ds, method, place)), "attempt": 1, "ds": ds, "scenario": "default", "method": method, "stage": stage,
        "role": role,
        "user_id": None, "try_index": 0, "fingerprint": "f", "prompt_id": "p", "model": "m", "model_hash": "h", "form": "text",
        "adaptor": None, "prompt_tokens": 2000, "cached_tokens": cached, "computed_tokens": 2000 - cached, "completion_tokens": 12,
        "seconds": 1.0, "finish_reason": "stop", "status": "ok", "price": None, "currency": None, "called_at": MIDNIGHT,
        "answer_digest": None,
    }  # fmt: skip


def quarantine_rows(ds: str) -> Rows:
    base = {"scenario": "default", "import_id": None, "attempt": 1, "raw": "{}", "quarantined_at": MIDNIGHT}
    night = [
        {**base, "quarantine_id": f"q{place}{ds}", "table_name": table, "row_key": "k", "stage": stage, "ds": ds, "method": "v2",
         "user_id": user_id, "reason": reason, "detail": detail}
        for place, (table, stage, user_id, reason, detail) in enumerate([
            ("intent_tags", "intents", "failed", "context_too_long", "expected at most 4,096 tokens, got 4,120"),
            ("explanations", "explanations", None, "wrong_script", f"expected English, got {CHINESE} {EVIL}"),
        ])
    ]  # fmt: skip
    imported = {**base, "quarantine_id": "q9", "table_name": "behavior_events", "row_key": "events.csv:7", "stage": "import", "ds": None,
                "method": None, "user_id": None, "reason": "no_such_day", "detail": "expected a date, got 2017-02-30", "attempt": None,
                "scenario": None, "import_id": "i1"}  # fmt: skip
    return [*night, imported]


def evaluation_rows() -> Rows:
    figures: dict[str, dict[str, tuple[float | None, float | None, float | None]]] = {
        "prompt_tokens_computed": {"v1": (5200.0, 5100.0, 5300.0), "v1_shared": (2100.0, 2050.0, 2150.0), "v2": (1900.0, 1850.0, 1960.0)},
        "hr_next1": {"v1": (0.05, 0.01, 0.1), "v2": (0.07, 0.02, 0.13), "most_bought_types": (0.11, 0.05, 0.18),
                     EVIL[:60]: (None, None, None)},
        "hr_next1 - most_bought_types": {"v2": (-0.04, -0.1, 0.02)},
        "duplication_rate": {"v1": (0.31, None, None), "v2": (0.12, None, None)},
    }  # fmt: skip
    return [
        {
            "evaluation_id": "e1", "metric": metric, "arm": arm, "name": "methods", "value": value, "lo": lo, "hi": hi, "n": 100,
            "unit": "tokens" if "tokens" in metric else "ratio", "data_set": "open-ecommerce",
            "split": "known to 2017-10-30, labels 28 days after", "ds": DS, "versions": "{}", "seed": 7, "made_at": MIDNIGHT,
        }
        for metric, arms in figures.items()
        for arm, (value, lo, hi) in arms.items()
    ]  # fmt: skip
