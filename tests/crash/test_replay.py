"""A night in which every request for one user failed, and the replay of exactly that user."""

from __future__ import annotations

import shutil
from collections import Counter

import pytest

from recgpt_ops.delta.warehouse import open_warehouse
from tests.crash.compare import shown
from tests.crash.matrix import exit_code, forked
from tests.crash.night import DS, JOBS, run_jobs
from tests.crash.watches import Killer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
REPLAY = ("--publish-id", "pfade0123456789ab", "--run-id", "replay", "--why", "replay")


def open_orders(root):
    """What `recgpt quarantine replay` would run: recipes and users."""
    from recgpt_ops.commands.quarantine_rows import Filter, read_quarantine
    from recgpt_ops.commands.replaying import open_users, replay_orders

    warehouse = open_warehouse(str(root))
    rows = read_quarantine(warehouse, Filter(DS, None, None, (), ()))
    found = open_users(warehouse, rows, ds=DS, scenario="default")
    return [(order.methods, order.user_ids) for order in replay_orders(found, ds=DS, scenario="default")]


def test_a_replay_asks_for_the_failed_user_alone_and_ends_as_a_night_without_a_fault(scratch, unkilled):
    root, calls, log = scratch / "replayed", scratch / "replayed.calls", scratch / "replayed.log"
    shutil.copytree(scratch / "before" / "jobs.ray.intents", root)
    night = JOBS[JOBS.index("jobs.ray.intents") :]
    code = exit_code(lambda: run_jobs(root, calls, watch=lambda job: Killer(None), jobs=night, refused={"ben"}), log=log)
    assert code == 0, log.read_text()
    failed = forked(lambda: shown(root))
    assert failed.faults == []
    assert {key[3] for key in failed.keys["intent_tags"]} == {"anna"}
    assert forked(lambda: open_orders(root)) == [(("v1", "v2"), ("ben",))]

    before = Counter(calls.read_text().split())
    calls.unlink()
    code = exit_code(lambda: run_jobs(root, calls, watch=lambda job: Killer(None), attempt=REPLAY, users=["ben"]), log=log)
    assert code == 0, log.read_text()
    replayed = forked(lambda: shown(root))
    assert (replayed.keys, replayed.faults, forked(lambda: open_orders(root))) == (unkilled.shown.keys, [], [])
    differing = [table for table in replayed.rows if replayed.rows[table] != unkilled.shown.rows[table]]
    assert differing == ["explanation_assignments"]  # a text that the night wrote for anna is now "shared" with ben
    again = Counter(calls.read_text().split())
    assert again - unkilled.calls == Counter()
    assert (before + again).total() > again.total() > 0
