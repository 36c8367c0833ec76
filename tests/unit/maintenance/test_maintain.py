"""What nothing names goes, what anything names stays, and everything agrees afterwards."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from recgpt_ops.delta.reading import generation_files, read_rows, state_generations
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.effects import Effect, watched
from recgpt_ops.errors import UsageError
from recgpt_ops.maintenance.maintain import Ages, Done, maintain
from recgpt_ops.runs import refuse_dropped
from recgpt_ops.tables import all_contracts
from tests.unit.verification.nights import DS, FIRST, REBUILT, SECOND, copy_of, publish, verify

pytestmark = pytest.mark.slow  # a warehouse is made, and verified in most tests

NOTHING = Ages(timedelta(0), timedelta(days=14), timedelta(0))  # answers stay: without them calls are not verifiable
USUAL = Ages(timedelta(days=14), timedelta(days=14))


@pytest.fixture
def warehouse(sound, tmp_path) -> Warehouse:
    return copy_of(sound, tmp_path)


def run(warehouse: Warehouse, ages: Ages = NOTHING, *, later: timedelta = timedelta(0), is_dry_run: bool = False) -> list[Done]:
    now = datetime.now(UTC) + later
    return maintain(warehouse, ledger=Path(warehouse.root) / "_ledger", ages=ages, now=now, say=lambda _: None, is_dry_run=is_dry_run)


def generations(warehouse: Warehouse, table: str) -> set[str]:
    return {file.partition["publish_id"] for file in generation_files(warehouse, table)}


def visible_rows(warehouse: Warehouse) -> dict[str, list[str]]:
    """What readers see of each night table, as text."""
    from recgpt_ops.delta.sql import connect

    connection = connect(warehouse)
    names = [name for name, contract in all_contracts().items() if contract.kind == "night"]
    return {name: sorted(map(str, connection.execute(f"SELECT * FROM {name}").fetchall())) for name in names}


def test_a_generation_that_nothing_names_goes_with_its_files_and_everything_else_stays(warehouse):
    before = visible_rows(warehouse)
    assert generations(warehouse, "intent_tags") == {FIRST, SECOND, REBUILT}
    run(warehouse)
    assert generations(warehouse, "intent_tags") == {FIRST, SECOND}  # carried users show FIRST, the undone rebuild is REBUILT
    assert visible_rows(warehouse) == before
    found = verify(warehouse)
    assert found.differences == []
    assert found.counts["dropped generations"] >= 10
    dropped = read_rows(warehouse, "dropped_generations")
    assert {(row["partition"], row["publish_id"], row["reason"]) for row in dropped} == {(DS, REBUILT, "unnamed")}
    run(warehouse)  # the files go once their removal is older than `in_flight`
    assert not list(Path(warehouse.root).glob(f"*/*/publish_id={REBUILT}/*"))
    assert run(warehouse) == []  # the third run has nothing to do
    assert verify(warehouse).differences == []


def test_what_was_shown_or_made_within_keep_days_stays(warehouse):
    assert {step.what for step in run(warehouse, USUAL)} == {"checkpoint"}
    assert generations(warehouse, "intent_tags") == {FIRST, SECOND, REBUILT}
    # In 15 days REBUILT was shown, until the undo, longer than 14 days ago.
    run(warehouse, USUAL, later=timedelta(days=13))
    assert REBUILT in generations(warehouse, "intent_tags")
    run(warehouse, Ages(timedelta(days=14), timedelta(days=99)), later=timedelta(days=15))
    assert REBUILT not in generations(warehouse, "intent_tags")


def test_a_dry_run_tells_the_same_and_changes_no_byte(warehouse):
    def tree():
        return {path: path.stat().st_mtime_ns for path in Path(warehouse.root).rglob("*") if path.is_file()}

    before = tree()
    told = run(warehouse, is_dry_run=True)
    assert {step.what for step in told} == {"generations", "checkpoint"}
    assert tree() == before
    assert run(warehouse) == told


def test_an_explanation_that_another_night_shows_stays_with_its_verdicts(warehouse):
    run(warehouse)
    assert FIRST in generations(warehouse, "explanations")  # u4 of DS shows an explanation of BEFORE
    assert FIRST in generations(warehouse, "tag_verdicts")


def test_a_lost_generation_is_still_a_difference_when_maintenance_did_not_drop_it(warehouse):
    for file in generation_files(warehouse, "candidate_items", publish_id=REBUILT):
        Path(file.path).unlink()
    assert any(REBUILT in difference.line for difference in verify(warehouse).differences)


def test_of_a_bucket_the_generation_that_a_night_on_record_reads_stays_and_a_superseded_one_goes(warehouse):
    terms = {"scopes": ["2017-10-28"], "fence": 1}
    for publish_id, cut in (("p1", "2017-11-02"), ("p2", "2017-11-02"), ("p3", "2017-11-05")):
        publish(warehouse, "behavior_days", {"user_id": "u1", "action": "purchase"}, publish_id=publish_id, arrived_cut_ds=cut, **terms)
    run(warehouse)
    assert generations(warehouse, "behavior_days") >= {FIRST, "p3"}  # the nights of BEFORE and DS read FIRST, p3 is the newest
    assert not generations(warehouse, "behavior_days") & {"p1", "p2"}
    assert state_generations(warehouse, "behavior_days", arrived_cut_ds="2017-11-03")["2017-10-28"] == FIRST  # not p2, which is gone
    assert verify(warehouse).differences == []


def test_a_dead_attempt_leaves_nothing_behind(warehouse):
    root = Path(warehouse.root)
    staged = root / "_staging" / "intent_tags_v1" / "p9" / "abc"
    staged.mkdir(parents=True)
    (staged / "part-0.parquet").write_bytes(b"rows")
    orphan = root / "intent_tags_v1" / f"ds={DS}" / f"publish_id={SECOND}" / "part-9999-p9-dead.parquet"
    orphan.write_bytes(b"rows")
    told = {(step.what, step.subject) for step in run(warehouse, USUAL)}
    assert {what for what, _ in told} == {"checkpoint"}  # the attempt may be at work
    yesterday = time.time() - 2 * 86_400
    for path in (staged / "part-0.parquet", staged, staged.parent, orphan):
        os.utime(path, (yesterday, yesterday))
    told = {(step.what, step.subject) for step in run(warehouse, USUAL)}
    assert told == {("staged rows", "intent_tags_v1"), ("dead files", "intent_tags")}
    assert not orphan.exists()
    assert not staged.exists()


def test_answers_past_their_retention_go_and_are_not_verifiable_then(warehouse):
    run(warehouse, Ages(timedelta(days=99), timedelta(0), timedelta(days=99)))
    assert not list((Path(warehouse.root) / "_ledger").rglob("*"))
    found = verify(warehouse)
    assert found.differences == []
    assert found.not_verifiable


def test_a_long_log_is_summed_up_and_its_markers_survive(warehouse):
    claims = Path(warehouse.path("publications")) / "_delta_log"
    from recgpt_ops.delta.pointer import claim_attempt

    for _ in range(25):
        newest = claim_attempt(warehouse, ds=DS, scenario="default", method="v2")
    assert ("checkpoint", "publications") in {(step.what, step.subject) for step in run(warehouse, USUAL)}
    assert (claims / "_last_checkpoint").is_file()
    assert claim_attempt(warehouse, ds=DS, scenario="default", method="v2") == newest + 1


def test_a_dropped_generation_is_not_gone_on_with(warehouse):
    run(warehouse)
    refuse_dropped(warehouse, DS, SECOND)
    with pytest.raises(UsageError, match=f"generation {REBUILT} was dropped by maintenance.*start a new run"):
        refuse_dropped(warehouse, DS, REBUILT)


class Killed(BaseException):
    """Stands in for the end of the process."""


class KillAfter:
    """Ends maintenance after its nth effect, which is before the next one."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, what: Effect) -> KillAfter:
        self.left -= 1
        return self

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        if self.left == 0:
            raise Killed


def files_beside_records(warehouse: Warehouse) -> set[Path]:
    """The Parquet files of all tables to which maintenance adds no rows."""
    found = {path.relative_to(warehouse.root) for path in Path(warehouse.root).rglob("*.parquet") if "_delta_log" not in path.parts}
    return {path for path in found if not path.parts[0].startswith("dropped_generations")}


def test_killed_after_any_effect_and_run_again_it_ends_the_same(sound, tmp_path):
    plain = copy_of(sound, tmp_path / "plain")
    run(plain)
    run(plain)
    wanted, shown, number = files_beside_records(plain), visible_rows(plain), 0
    while True:
        number += 1
        killed = copy_of(sound, tmp_path / f"killed{number}")
        try:
            with watched(KillAfter(number)):
                run(killed)
        except Killed:
            pass
        else:
            break
        run(killed)
        run(killed)
        assert files_beside_records(killed) == wanted, number
        assert visible_rows(killed) == shown, number
        if number % 4 == 0:  # each takes as long as all the rest
            assert verify(killed).differences == [], number
    assert number > 10
