"""A sample of the crash matrix, and that nothing durable happens outside of the declared points. The whole: `make crash-matrix`."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.crash.compare import shown
from tests.crash.matrix import exit_code, forked, killed_night, kills
from tests.crash.night import BOUND, run_jobs
from tests.crash.watches import Killer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
EQUAL: dict[str, Any] = {"lost": 0, "doubled": 0, "others": []}


def test_every_write_of_a_night_falls_within_a_declared_point(unkilled):
    assert unkilled.bypassed == []
    assert len({row.effect for row in unkilled.effects}) >= 40


def test_an_unkilled_night_verifies_clean_and_shows_both_methods(unkilled):
    assert unkilled.shown.faults == []
    assert len(unkilled.shown.visible) == 2
    assert all(unkilled.shown.rows[table] for table in ("user_contexts", "intent_tags", "candidate_items", "tag_verdicts"))


@pytest.mark.parametrize(
    ("point", "when"),
    [
        ("table.commit/intent_tags", "during"),
        ("ledger.append/v2/intents", "during"),
        ("part.sync/certificates", "before"),
        ("table.commit/publications", "after"),
    ],
)
def test_a_night_killed_there_and_run_again_equals_one_that_was_not(scratch, unkilled, point, when):
    assert_equal_after(scratch, unkilled, point, when)


def test_case_007_a_disk_that_fills_up_while_rows_are_staged_is_told_and_no_row_is_there_twice(scratch, unkilled):
    assert_equal_after(scratch, unkilled, "stage.write/intent_tags", "full")


def assert_equal_after(scratch, unkilled, point: str, when: str) -> None:
    """The night that ended there shows what the other shows, and its job said what was wrong where it could."""
    [kill] = [kill for kill in kills(unkilled.effects, seed=1) if (kill.effect, kill.when) == (point, when)]
    found = killed_night(scratch, kill, unkilled)
    assert {name: found[name] for name in EQUAL} == EQUAL
    assert found["repeated"] <= BOUND


def test_a_rebuild_makes_no_call_and_gives_the_same_rows(scratch, unkilled):
    root, calls = scratch / "rebuilt", scratch / "rebuilt.calls"
    shutil.copytree(scratch / "unkilled", root)
    attempt = ("--publish-id", "pbeef0123456789ab", "--run-id", "rebuild", "--why", "rebuild")
    code = exit_code(lambda: run_jobs(root, calls, watch=lambda job: Killer(None), attempt=attempt), log=scratch / "rebuilt.log")
    assert code == 0, (scratch / "rebuilt.log").read_text()
    assert calls.read_text() == ""
    rebuilt = forked(lambda: shown(root))
    assert (rebuilt.keys, rebuilt.rows, rebuilt.calls, rebuilt.faults) == (
        unkilled.shown.keys,
        unkilled.shown.rows,
        unkilled.shown.calls,
        [],
    )
    assert all("pbeef0123456789ab" in visible for visible in rebuilt.visible)
