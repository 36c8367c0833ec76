"""Two attempts at one night: at once, and an old one that wakes up after a newer."""

from __future__ import annotations

import shutil
from functools import partial

import pytest

from tests.crash.compare import shown
from tests.crash.matrix import exit_code, exit_codes, forked
from tests.crash.night import PUBLISH_ID, run_jobs
from tests.crash.watches import Killer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
SECOND = "pbeef0123456789ab"


def attempt(root, publish_id: str, **options):
    """What a process of this attempt runs."""
    names = ("--publish-id", publish_id, "--run-id", publish_id)
    return partial(run_jobs, root, root.with_suffix(".calls"), watch=lambda job: Killer(None), attempt=names, **options)


def test_case_067_two_nights_of_one_day_at_once_leave_one_generation_visible(scratch, unkilled):
    root, log = scratch / "at-once", scratch / "at-once.log"
    shutil.copytree(scratch / "base", root)
    codes = exit_codes(attempt(root, PUBLISH_ID), attempt(root, SECOND), log=log)
    assert set(codes) <= {0, 1}, log.read_text()  # 1: fenced
    assert 0 in codes, log.read_text()
    found = forked(lambda: shown(root))
    assert found.faults == []
    assert len(found.visible) == 2
    assert set(found.visible.values()) == {1}
    assert (found.keys, found.rows) == (unkilled.shown.keys, unkilled.shown.rows)


def test_case_090_an_old_attempt_that_wakes_up_after_a_newer_one_changes_nothing(scratch, unkilled):
    root, log = scratch / "woken", scratch / "woken.log"
    shutil.copytree(scratch / "before" / "jobs.publish_night", root)
    assert exit_code(attempt(root, SECOND), log=log) == 0, log.read_text()
    newer = forked(lambda: shown(root))
    assert all(SECOND in row for row in newer.visible)
    code = exit_code(attempt(root, PUBLISH_ID, jobs=["jobs.publish_night"]), log=log)
    assert code == 1, log.read_text()
    assert "readers go on seeing; nothing to mend" in log.read_text()
    assert forked(lambda: shown(root)).visible == newer.visible
