"""A small warehouse in which everything agrees: two imports, two days, four attempts, every table, and the ledger of their calls.

2017-10-29   attempt 1   u1, u2 computed; u3 failed, so its audience stands in a second generation
2017-10-30   attempt 1   u1 carried from the day before, u2 and u4 computed; u4 shows an explanation of the day before
             attempt 2   a rebuild of u2 and u4 from recorded answers
             attempt 3   undone: the generation of attempt 1 is shown again
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from recgpt_ops.delta.generations import publish_arrow
from recgpt_ops.delta.pointer import move_pointer, visible_publications
from recgpt_ops.delta.quarantine import QuarantineRow, quarantine_rows
from recgpt_ops.delta.reading import read_rows
from recgpt_ops.delta.schemas import arrow_schema
from recgpt_ops.delta.warehouse import Warehouse, fix_identity, open_warehouse
from recgpt_ops.errors import RowError
from recgpt_ops.ids import publish_id_of, tag_id
from recgpt_ops.ledger.recorder import CallRecorder
from recgpt_ops.ledger.summaries import CallLimits, ShardRecord, open_recorder, record_shard, run_recorded
from recgpt_ops.llm.fake import FakeEngine
from recgpt_ops.llm.requests import Answer, Request, Sampling
from recgpt_ops.publishing import publish_night
from recgpt_ops.runs import NightRun, StageCounts, claim_common_attempt, record_state
from recgpt_ops.settings import load_settings
from recgpt_ops.tables import load_contract
from recgpt_ops.verification.findings import Findings
from recgpt_ops.verification.verify import verify_warehouse
from tests.sql.rows import filled

BEFORE, DS = "2017-10-29", "2017-10-30"
METHOD, TEMPLATE = "v2", "=== user ===\nWhich tag?"
PROMPT_ID = hashlib.sha256(TEMPLATE.encode()).hexdigest()
STAGES = ("intents", "explanations", "tag_verdicts")
USERS = {"u1": 1, "u2": 2, "u3": 3, "u4": 4}
FIRST, SECOND, REBUILT = (publish_id_of(run_id) for run_id in ("first", "second", "rebuilt"))
Row = dict[str, Any]


def fill(root: Path) -> Warehouse:
    """The warehouse above."""
    warehouse = open_warehouse(str(root), create=True)
    fix_identity(warehouse, zone="America/New_York", locale="en-US")
    add_feeds(warehouse)
    night(warehouse, BEFORE, "first", computed=["u1", "u2", "u3"], failing="u3", bucket="2017-10-28")
    night(warehouse, DS, "second", computed=["u2", "u4"], carried={"u1": FIRST}, bucket="2017-10-29", shared=FIRST)
    night(warehouse, DS, "rebuilt", computed=["u2", "u4"], carried={"u1": FIRST}, why="rebuild", shared=FIRST)
    undo(warehouse)
    return warehouse


def copy_of(warehouse: Warehouse, folder: Path) -> Warehouse:
    """The same warehouse elsewhere, to be damaged."""
    return Warehouse(str(shutil.copytree(warehouse.root, folder / "copy")))


def verify(warehouse: Warehouse, *, ds: str | None = None, ledger_days: int = 14) -> Findings:
    """What `recgpt verify` finds."""
    ledger = Path(warehouse.root) / "_ledger"
    return verify_warehouse(warehouse, Findings(), ds=ds, ledger=ledger, ledger_days=ledger_days)


def publish(warehouse: Warehouse, table: str, *rows: Row, **terms: Any) -> None:
    contract = load_contract(table)
    scope = {"night": "ds", "state": "bucket", "feed": "import_id"}[contract.kind]
    given = {scope: terms["scopes"][0], "publish_id": terms["publish_id"], "arrived_cut_ds": terms.get("arrived_cut_ds")}
    built = [filled(table, **{name: value for name, value in given.items() if name in contract.column_names}, **row) for row in rows]
    publish_arrow(warehouse, table, pa.Table.from_pylist(built, schema=arrow_schema(contract)), input_digest="inputs", **terms)


def add_feeds(warehouse: Warehouse) -> None:
    """Two imports; the first brought a row that could not be read."""
    quarantine_rows(
        warehouse, [QuarantineRow("items", "items.csv:3", "import", "no_item", "expected an id, got none", ",wine", import_id="i1")]
    )
    for number, import_id in enumerate(("i1", "i2"), start=1):
        terms = {"publish_id": import_id, "scopes": [import_id], "fence": None, "quarantined_count": 2 - number, "input_row_count": 3}
        publish(warehouse, "items", *({"item_id": f"x{number}{place}", "title": f"Wine {place}"} for place in range(3)), **terms)
        events = (
            {"event_id": f"e{number}{place}", "user_id": f"u{place}", "arrived_ds": BEFORE, "arrived_month": BEFORE[:7]}
            for place in range(3)
        )
        publish(warehouse, "behavior_events", *events, **terms)


def night(
    warehouse: Warehouse, ds: str, run_id: str, *, computed: list[str], carried: Mapping[str, str] | None = None, failing: str = "",
    bucket: str = "", why: str = "night", shared: str = "",
) -> None:  # fmt: skip
    """One attempt, from its audience to the pointer. `carried`: user -> who made their rows. `shared`: whose explanation u4 shows."""
    settings = load_settings({}, warehouse=warehouse.root)
    attempt = claim_common_attempt(warehouse, ds=ds, scenario="default", methods=(METHOD,))
    publish_id = publish_id_of(run_id)

    def stage(name: str) -> NightRun:
        return NightRun(ds, "default", (METHOD,), publish_id, run_id, attempt, why, None, (), settings, warehouse, name)

    terms: Row = {"publish_id": publish_id, "scopes": [ds], "fence": attempt}
    audience = [{"user_id": user, "made_by": publish_id, "computed_ds": ds, "attempt": attempt} for user in computed]
    for user, maker in (carried or {}).items():
        audience.append({"user_id": user, "made_by": maker, "computed_ds": BEFORE, "attempt": attempt, "status": "carried"})
    publish(warehouse, "night_users", *audience, **terms)
    record_state(stage("night_users"), StageCounts(detail={"inputs": {METHOD: {"feed items": "d"}}}), state="done", seconds=1.0)
    if bucket:
        days: Row = {"publish_id": publish_id, "scopes": [bucket], "fence": attempt, "arrived_cut_ds": ds}
        publish(warehouse, "behavior_days", *({"user_id": user, "action": "purchase"} for user in computed), **days)
    publish(warehouse, "environment_signals", {"kind": "season", "name": "autumn"}, **terms)
    record_state(stage("environment_signals"), StageCounts(), state="done", seconds=1.0)
    publish(warehouse, "user_contexts", *({"user_id": user} for user in computed), **terms)
    record_state(stage("user_contexts"), StageCounts(), state="done", seconds=1.0)
    made = [user for user in computed if user != failing]
    calls, counts = ask(warehouse, ds, "intents", attempt, made, failing)
    publish_intents(warehouse, {user: calls[user] for user in made}, terms | counts)
    record_state(stage("intents"), StageCounts(), state="done", seconds=1.0)
    publish_items(warehouse, made, terms)
    record_state(stage("candidate_items"), StageCounts(), state="done", seconds=1.0)
    publish_explanations(warehouse, ds, attempt, made, terms, shared)
    record_state(stage("explanations"), StageCounts(), state="done", seconds=1.0)
    publish_verdicts(warehouse, ds, attempt, made, terms)
    record_state(stage("tag_verdicts"), StageCounts(), state="done", seconds=1.0)
    finished = StageCounts()
    publish_night(stage("publish_night"), finished)
    record_state(stage("publish_night"), finished, state="done", seconds=1.0)


def ask(warehouse: Warehouse, ds: str, stage: str, attempt: int, users: list[str], failing: str = "") -> tuple[dict[str, str], Row]:
    """One recorded call a user; `failing` has its answer refused. Call ids by user, and what a certificate says of the calls."""
    engine = FakeEngine()
    calls = open_recorder(
        engine, root=Path(warehouse.root) / "_ledger", ds=ds, scenario="default", method=METHOD, stage=stage, shard="0000-1023",
        attempt=attempt, limits=CallLimits(4, 64, 60.0),
    )  # fmt: skip
    found, refused = run_recorded(ask_all(calls, stage, users, failing), calls, tell=lambda: None)
    record = ShardRecord()
    prompt = filled("prompts", prompt_id=PROMPT_ID, text=TEMPLATE)
    record.keep(calls, [prompt])
    record.failures = [
        QuarantineRow("intent_tags", failing, stage, reason, "no tag came", "a context", ds=ds, scenario="default", method=METHOD,
                      user_id=failing, attempt=attempt)
        for reason in refused
    ]  # fmt: skip
    record_shard(warehouse, record, engine=engine, inputs=len(users), rows={})
    account = record.account
    counts = {"calls_made": account.calls_made, "calls_reused": account.calls_reused, "quarantined_count": len(refused)}
    return found, counts


async def ask_all(calls: CallRecorder, stage: str, users: list[str], failing: str) -> tuple[dict[str, str], list[str]]:
    """Call ids by user, and why the failing one was refused."""

    def refuse(_: Answer) -> str:
        raise RowError("no_tag", "expected a tag")

    found = {}
    for user in users:
        _, found[user] = await calls.call(request(stage, user), parse=lambda answer: answer.text)
    if not failing:
        return found, []
    try:
        await calls.call(request(stage, failing), parse=refuse)
    except RowError as error:
        return found, [error.reason]
    raise AssertionError("the answer was to be refused")


def request(stage: str, user: str) -> Request:
    return Request("expert", PROMPT_ID, (), (STAGES.index(stage), USERS[user], 7), Sampling(16), user_id=user)


def publish_intents(warehouse: Warehouse, calls: Mapping[str, str], terms: Row) -> None:
    named = [{"user_id": user, "call_id": call_id} for user, call_id in calls.items()]
    tags = [
        {**row, "tag": tag, "tag_id": tag_id("en-US", tag), "rank": rank} for row in named for rank, tag in enumerate(("tea", "wine"), 1)
    ]
    publish(warehouse, "intent_plans", *({**row, "persona_index": 1, "name": "Cellar"} for row in named), **terms)
    publish(warehouse, "tag_proposals", *({name: value for name, value in row.items() if name != "rank"} for row in tags), **terms)
    publish(warehouse, "intent_tags", *tags, **terms)


def publish_items(warehouse: Warehouse, users: list[str], terms: Row) -> None:
    rows = [
        {"user_id": user, "tag_id": tag_id("en-US", "tea"), "item_id": f"x1{place}", "rank": place + 1}
        for user in users
        for place in range(2)
    ]
    publish(warehouse, "candidate_items", *rows, **terms)


def publish_explanations(warehouse: Warehouse, ds: str, attempt: int, users: list[str], terms: Row, shared: str) -> None:
    calls, counts = ask(warehouse, ds, "explanations", attempt, users)
    texts = [{"explanation_id": f"e-{user}", "call_id": calls[user], "text": f"For {user}"} for user in users]
    publish(warehouse, "explanations", *texts, **terms, **counts)
    publish_id = terms["publish_id"]
    shown = [
        {"user_id": user, "item_id": "x10", "explanation_id": "e-u1" if user == "u4" else f"e-{user}", "status": "written"}
        | {"explanation_made_by": shared if user == "u4" else publish_id}
        for user in users
    ]
    publish(warehouse, "explanation_assignments", *shown, **terms, **counts)


def publish_verdicts(warehouse: Warehouse, ds: str, attempt: int, users: list[str], terms: Row) -> None:
    calls, counts = ask(warehouse, ds, "tag_verdicts", attempt, users)
    level = {"dimension": "relevance", "level": "positive", "status": "ok", "score": 0.5, "reason": None}
    rows = [
        {"user_id": user, "tag_id": tag_id("en-US", "tea"), "judge_method": "panel", "status": "judged", "label": "S"}
        | {"labeled_by": "rule", "levels": [{**level, "call_id": calls[user]}]}
        for user in users
    ]
    publish(warehouse, "tag_verdicts", *rows, **terms, **counts)


def undo(warehouse: Warehouse) -> None:
    """A row with a higher fence that shows what was shown before the newest."""
    attempt = claim_common_attempt(warehouse, ds=DS, scenario="default", methods=(METHOD,))
    rows = [row for row in read_rows(warehouse, "publications") if row["publish_id"] == SECOND]
    told = {name: rows[0][name] for name in ("ds", "scenario", "method", "publish_id", "input_digest", "certificate_sha256")}
    move_pointer(warehouse, fence=attempt, why="undo", published_by="somebody", **told)
    assert visible_publications(warehouse)[DS, "default", METHOD]["publish_id"] == SECOND
