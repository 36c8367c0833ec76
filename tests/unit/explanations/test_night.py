"""Whole nights of the job in a small warehouse, with a fake engine and no Ray: what is shared, made again, failed, published."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import jobs.ray.explanations as job
from recgpt_ops.contexts.signals import situation_id
from recgpt_ops.delta.certificates import Certificate, certificates, record_certificates
from recgpt_ops.delta.pointer import move_pointer
from recgpt_ops.delta.reading import read_generation
from recgpt_ops.delta.records import read_rows
from recgpt_ops.delta.schemas import arrow_schema
from recgpt_ops.delta.warehouse import Warehouse, create_table, fix_identity, open_warehouse
from recgpt_ops.errors import NightError
from recgpt_ops.explanations.landing import land_shard
from recgpt_ops.explanations.shard import ShardPlan, compute_shard
from recgpt_ops.ids import row_id, tag_id, text_hash, user_bucket
from recgpt_ops.ledger.summaries import ShardSummary
from recgpt_ops.llm.fake import FakeEngine
from recgpt_ops.llm.tokenizer import PromptTokenizer
from recgpt_ops.runs import NightRun, StageCounts
from recgpt_ops.settings import load_settings
from recgpt_ops.tables import load_contract

from .conftest import LIMITS

DS, NEXT = "2017-10-30", "2017-10-31"
P1, P2, P3 = (f"p{number:016d}" for number in (1, 2, 3))
ITEMS = {
    "i1": ("Candy bars (multi pack), national brand", "Candy bars (multi pack)"),
    "i2": ("Sandwich cookies, private brand", "Sandwich cookies"),
    "i3": ("Herbal tea, mint", "Herbal tea"),
    "odd": ("\u200f\u200f", ""),  # nothing that can be read
}
# Each user's tags in order of rank, each with its items in order of rank.
SWEET: Mapping[str, Sequence[str]] = {"Candy bars": ["i1"], "Sandwich cookies": ["odd", "i2"]}
TEA: Mapping[str, Sequence[str]] = {"Herbal tea": ["i3"]}


class SmallNight:
    """The tables before the stage, and the stage itself. `engines` keeps the fake engine of every run."""

    def __init__(self, warehouse: Warehouse, tokenizer: PromptTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
        self.warehouse, self.tokenizer = warehouse, tokenizer
        self.engine = FakeEngine()
        settings = load_settings({})
        self.settings = replace(settings, engine=replace(settings.engine, kind="fake", shard_count=2))
        monkeypatch.setattr(job, "run_shards", self.run_shards)
        # Great Expectations takes seconds a table; what it checks is tested in tests/unit/delta.
        monkeypatch.setitem(sys.modules, "recgpt_ops.delta.checks", SimpleNamespace(run_checks=lambda *_: []))

    def run_shards(self, run: NightRun, *, plans: Sequence[ShardPlan], extra: Sequence[Any], **_: object) -> ShardSummary:
        """What Ray does, one shard after the other."""
        summary = ShardSummary()
        for plan in plans:
            result = compute_shard(
                plan, engine=self.engine, tokenizer=self.tokenizer, ledger_root=Path(run.warehouse.root) / "_ledger", limits=LIMITS
            )
            summary += land_shard(run.warehouse, plan, result, stage=extra[0], engine=self.engine)
        return summary

    def publish(self, table: str, rows: Sequence[Mapping[str, Any]], *, publish_id: str, scope: str, fence: int | None = 1) -> None:
        """Appends rows and certifies them, without the checks that the job's own tables go through."""
        create_table(self.warehouse, table)
        built = pa.Table.from_pylist(list(rows), schema=arrow_schema(load_contract(table)))
        write_deltalake(self.warehouse.open(table), built, mode="append")
        digest = row_id([table, *(sorted(map(repr, rows)))])
        now = datetime(2026, 1, 1, tzinfo=UTC)
        made = Certificate(table, scope, publish_id, None, len(rows), "k", digest, "inputs", 1, 0, 0, 0, fence, "1", now)
        record_certificates(self.warehouse, [made])

    def prepare(
        self, publish_id: str, users: Mapping[str, Mapping[str, Sequence[str]]], *, ds: str = DS, method: str = "v2",
        shown: Mapping[str, tuple[str, str]] | None = None, season_of: str = "US",
    ) -> None:  # fmt: skip
        """The generation up to candidate_items. `shown`: users carried along with the (ds, publish_id) that made their rows."""
        base = {"ds": ds, "publish_id": publish_id, "scenario": "default", "method": method}
        made_by = dict.fromkeys(users, (ds, publish_id)) | dict(shown or {})
        self.publish(
            "night_users",
            [
                base | {
                    "user_id": user, "user_bucket": user_bucket(user), "status": "computed", "reason": "new_behavior", "made_by": by,
                    "computed_ds": day, "attempt": 1, "locale": "en-US", "region": season_of,
                }
                for user, (day, by) in made_by.items()
            ],
            publish_id=publish_id, scope=ds,
        )  # fmt: skip
        self.publish("user_contexts", [base | context_row(user, ds, season_of) for user in users], publish_id=publish_id, scope=ds)
        tags, candidates = [], []
        for user, wishes in users.items():
            key = base | {"user_id": user, "user_bucket": user_bucket(user)}
            for rank, (tag, items) in enumerate(wishes.items(), start=1):
                id_ = tag_id("en-US", tag)
                tags.append(
                    key | {
                        "tag_id": id_, "intent_tag_id": row_id((user, id_)), "locale": "en-US", "tag": tag, "rank": rank, "score": 1.0,
                        "persona_indexes": [1], "pool_index": rank, "reason": None, "call_id": "c",
                    }
                )  # fmt: skip
                candidates += [
                    key | {"tag_id": id_, "item_id": item, "text_hash": text_hash(ITEMS[item][0]), "rank": place, "score": 0.5}
                    for place, item in enumerate(items, start=1)
                ]
        self.publish("intent_tags", tags, publish_id=publish_id, scope=ds)
        self.publish("candidate_items", candidates, publish_id=publish_id, scope=ds)

    def run(self, publish_id: str, *, ds: str = DS, why: str = "night", methods: tuple[str, ...] = ("v2",)) -> StageCounts:
        """The stage, with a fresh engine."""
        self.engine = FakeEngine(faults=self.engine.faults)
        run = NightRun(ds, "default", methods, publish_id, "run", 1, why, None, (), self.settings, self.warehouse, "explanations")
        counts = StageCounts()
        job.work(run, counts)
        return counts

    def show(self, publish_id: str, *, ds: str = DS, fence: int = 1, method: str = "v2") -> None:
        """Makes a generation the visible one."""
        move_pointer(
            self.warehouse, ds=ds, scenario="default", method=method, fence=fence, publish_id=publish_id, input_digest="i",
            certificate_sha256="c", why="night", published_by="test",
        )  # fmt: skip

    def rows(self, table: str, publish_id: str, ds: str = DS) -> list[dict[str, Any]]:
        return read_generation(self.warehouse, table, ds=ds, publish_id=publish_id).to_pylist()

    def statuses(self, publish_id: str, ds: str = DS) -> list[tuple[str, str, str, str | None]]:
        rows = self.rows("explanation_assignments", publish_id, ds)
        return sorted((row["user_id"], row["item_id"], row["status"], row["explanation_made_by"]) for row in rows)

    def certificate(self, table: str, publish_id: str) -> Certificate:
        return certificates(self.warehouse, table=table, publish_id=publish_id)[0]


def context_row(user: str, ds: str, region: str) -> dict[str, Any]:
    serve_ds = {DS: NEXT, NEXT: "2017-11-01"}[ds]
    return {
        "user_id": user, "user_bucket": user_bucket(user), "locale": "en-US", "region": region, "serve_ds": serve_ds,
        "situation_id": situation_id("en-US", region, serve_ds, weather=None), "attributes": [], "signals": [], "lines": [], "text": "t",
        "context_tokens": 1, "plain_tokens": 1, "budget_tokens": 9, "cut_line_count": 0, "cut_item_count": 0, "unknown_item_count": 0,
        "groups": [], "recent_item_types": [],
    }  # fmt: skip


@pytest.fixture
def night(tmp_path: Path, tokenizer: PromptTokenizer, monkeypatch: pytest.MonkeyPatch) -> SmallNight:
    warehouse = open_warehouse(str(tmp_path / "warehouse"), create=True)
    fix_identity(warehouse, zone="America/New_York", locale="en-US")
    made = SmallNight(warehouse, tokenizer, monkeypatch)
    items = [
        {
            "item_id": item_id, "valid_from_ds": "0001-01-01", "valid_to_ds": None, "import_id": "imp", "source": "own", "locale": "en-US",
            "title": title, "category": None, "item_type": kind or None, "brand": None, "price": None, "currency": None,
            "text_hash": text_hash(title),
        }
        for item_id, (title, kind) in ITEMS.items()
    ]  # fmt: skip
    made.publish("items", items, publish_id="imp", scope="imp", fence=None)
    return made


def test_two_users_share_a_text_and_an_item_without_words_is_passed_over(night: SmallNight) -> None:
    night.prepare(P1, {"u1": SWEET, "u2": SWEET, "u3": TEA})
    counts = night.run(P1)
    texts = night.rows("explanations", P1)
    assert sorted(row["tag"] for row in texts) == ["Candy bars", "Herbal tea", "Sandwich cookies"]
    assert night.statuses(P1) == [
        (user, item, "written", P1) for user, item in (("u1", "i1"), ("u1", "i2"), ("u2", "i1"), ("u2", "i2"), ("u3", "i3"))
    ]
    assert {row["situation"] for row in texts} == {"autumn, Halloween"}
    assert counts.detail["texts"]["v2"] == {
        "wanted": 3, "written": 3, "shared": 0, "failed": 0, "styles": len({row["style"] for row in texts}), "assignments": 5,
        "items_without_text": 2,
    }  # fmt: skip
    assert (counts.calls_made, counts.detail["planned_calls"]) == (9, 18)  # 3 texts of 3 calls; 3 users x 2 items x 3 at most
    assert len(read_rows(night.warehouse, "llm_calls")) == 9
    assert not any(row["user_id"] for row in read_rows(night.warehouse, "llm_calls"))


def test_case_011_a_rebuild_makes_no_call_and_equal_rows(night: SmallNight) -> None:
    for publish_id, why, fence in ((P1, "night", 1), (P2, "rebuild", 2)):
        night.prepare(publish_id, {"u1": SWEET, "u2": TEA})
        counts = night.run(publish_id, why=why)
        night.show(publish_id, fence=fence)
    assert (counts.calls_made, len(night.engine.calls)) == (0, 0)
    assert night.statuses(P2) == [(user, item, "written", P2) for user, item in (("u1", "i1"), ("u1", "i2"), ("u2", "i3"))]
    for table in ("explanations", "explanation_assignments"):
        assert night.certificate(table, P1).row_digest == night.certificate(table, P2).row_digest


def test_users_added_to_a_day_share_the_texts_that_it_shows(night: SmallNight) -> None:
    night.prepare(P1, {"u1": SWEET})
    night.run(P1)
    night.show(P1)
    night.prepare(P2, {"u2": SWEET, "u3": TEA}, shown={"u1": (DS, P1)})
    counts = night.run(P2, why="more_users")
    assert night.statuses(P2) == [("u2", "i1", "shared", P1), ("u2", "i2", "shared", P1), ("u3", "i3", "written", P2)]
    assert counts.calls_made == 3
    assert counts.detail["texts"]["v2"]["shared"] == 2


def test_a_replay_writes_a_text_whose_verdict_failed_once_more_from_the_record_and_shares_the_others(night: SmallNight) -> None:
    night.prepare(P1, {"u1": SWEET})
    night.run(P1)
    texts = {row["tag"]: row["explanation_id"] for row in night.rows("explanations", P1)}
    verdict = {
        "ds": DS, "publish_id": P1, "scenario": "default", "method": "v2", "judge_hash": "j", "judge_model": "m", "is_self_judged": True,
        "labeled_by": "rule", "levels": [],
    }  # fmt: skip
    verdicts = [
        verdict | {"explanation_id": texts["Candy bars"], "judge_method": "panel", "status": "judged", "label": "A"},
        verdict | {"explanation_id": texts["Sandwich cookies"], "judge_method": "panel", "status": "failed", "label": None},
    ]
    night.publish("explanation_verdicts", verdicts, publish_id=P1, scope=DS)
    night.show(P1)
    night.prepare(P2, {"u1": SWEET}, shown={"u1": (DS, P1)})
    counts = night.run(P2, why="replay")
    assert night.statuses(P2) == [("u1", "i1", "shared", P1), ("u1", "i2", "written", P2)]
    assert [row["explanation_id"] for row in night.rows("explanations", P2)] == [texts["Sandwich cookies"]]  # so it is judged again
    assert (counts.calls_made, len(night.engine.calls)) == (0, 0)


def test_a_later_day_shares_what_a_visible_night_shows_as_long_as_the_situation_is_the_same(night: SmallNight) -> None:
    night.prepare(
        P1, {"u1": SWEET, "u2": TEA}, season_of="TH"
    )  # neither season nor holiday within 14 days changes from one day to the next
    night.run(P1)
    night.prepare(P2, {"u1": SWEET}, ds=NEXT, season_of="TH")
    night.run(P2, ds=NEXT)
    assert {status for _, _, status, _ in night.statuses(P2, NEXT)} == {"written"}  # P1 is not visible
    night.show(P1)
    night.prepare(P3, {"u1": SWEET}, ds=NEXT, season_of="TH")
    assert night.run(P3, ds=NEXT).calls_made == 0
    assert night.statuses(P3, NEXT) == [("u1", "i1", "shared", P1), ("u1", "i2", "shared", P1)]
    assert night.rows("explanations", P3, NEXT) == []


def test_a_text_of_another_writing_or_situation_is_not_shared(night: SmallNight, monkeypatch: pytest.MonkeyPatch) -> None:
    night.prepare(P1, {"u1": TEA})
    night.run(P1)
    night.show(P1)
    night.prepare(P2, {"u1": TEA}, ds=NEXT)  # Halloween is over
    night.run(P2, ds=NEXT)
    assert night.statuses(P2, NEXT) == [("u1", "i3", "written", P2)]
    night.prepare(P3, {"u2": TEA}, shown={"u1": (DS, P1)})
    monkeypatch.setattr(job, "model_digest", lambda *_: "another model")
    night.run(P3, why="more_users")
    assert night.statuses(P3) == [("u2", "i3", "written", P3)]


def test_one_text_that_fails_is_in_quarantine_without_a_user_and_the_others_go_on(night: SmallNight) -> None:
    night.settings = replace(night.settings, quarantine=replace(night.settings.quarantine, stage_max_ratio=0.5))
    night.engine = FakeEngine(
        faults=lambda request, _: "empty" if "Herbal tea" in request.messages[-1].text and request.role == "writer" else None
    )
    night.prepare(P1, {"u1": SWEET, "u2": TEA})
    counts = night.run(P1)
    assert night.statuses(P1) == [("u1", "i1", "written", P1), ("u1", "i2", "written", P1), ("u2", "i3", "failed", None)]
    (bad,) = read_rows(night.warehouse, "quarantine")
    (assigned,) = [row for row in night.rows("explanation_assignments", P1) if row["status"] == "failed"]
    assert (bad["table_name"], bad["row_key"], bad["reason"]) == ("explanations", assigned["explanation_id"], "answer_empty")
    assert str(bad["detail"]).count("answer_empty") == 2
    assert bad["user_id"] is None
    assert "u2" not in json.dumps([bad["detail"], bad["raw"]])
    assert (counts.quarantined_count, counts.detail["texts"]["v2"]["failed"]) == (1, 1)


def test_too_many_failures_publish_nothing_and_tell_the_reasons(night: SmallNight) -> None:
    night.engine = FakeEngine(faults=lambda request, _: "empty" if request.role == "writer" else None)
    night.prepare(P1, {"u1": SWEET})
    with pytest.raises(NightError, match=r"2 of 2 explanations could not be computed \(answer_empty 2\)"):
        night.run(P1)
    assert not night.warehouse.exists("explanations")


def test_two_methods_write_side_by_side_and_a_recipe_without_explanations_writes_none(night: SmallNight) -> None:
    night.prepare(P1, {"u1": TEA})
    counts = night.run(P1, methods=("v2", "v2_hr30", "v1"))
    assert sorted(counts.detail["texts"]) == ["v1", "v2"]  # v1 has no tags in this generation, so it has no texts
    assert {row["method"] for row in night.rows("explanations", P1)} == {"v2"}


def test_a_night_without_candidates_is_told_which_job_is_missing(night: SmallNight) -> None:
    with pytest.raises(NightError, match=r"run jobs\.ray\.candidate_items first"):
        night.run(P1)


def test_nobody_to_explain_anything_to_publishes_two_empty_tables(night: SmallNight) -> None:
    night.prepare(P1, {"u1": {}})
    night.run(P1)
    assert [night.certificate(table, P1).row_count for table in ("explanations", "explanation_assignments")] == [0, 0]
