from __future__ import annotations

import threading

import pytest
from deltalake.exceptions import DeltaError

from recgpt_ops.delta import commits, pointer
from recgpt_ops.delta.pointer import Outcome, claim_attempt, move_pointer, publication_sha256, visible_publications
from recgpt_ops.delta.reading import read_rows
from recgpt_ops.errors import NightError, UsageError

NIGHT = {"ds": "2017-10-30", "scenario": "default", "method": "v2"}
KEY = ("2017-10-30", "default", "v2")


def move(warehouse, fence: int, publish_id: str, **night: str) -> Outcome:
    return move_pointer(
        warehouse, **{**NIGHT, **night}, fence=fence, publish_id=publish_id, input_digest="i", certificate_sha256="c", why="night",
        published_by="run",
    )  # fmt: skip


def test_attempts_count_up_per_night_and_method(warehouse):
    assert [claim_attempt(warehouse, **NIGHT) for _ in range(3)] == [1, 2, 3]
    assert claim_attempt(warehouse, **{**NIGHT, "method": "v1"}) == 1
    assert claim_attempt(warehouse, **{**NIGHT, "ds": "2017-10-31"}) == 1


def test_claims_at_the_same_time_get_different_numbers(warehouse):
    claim_attempt(warehouse, **NIGHT)
    barrier, claimed = threading.Barrier(4), []

    def claim() -> None:
        barrier.wait()
        claimed.extend(claim_attempt(warehouse, **NIGHT) for _ in range(3))

    threads = [threading.Thread(target=claim) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(claimed) == list(range(2, 14))


def test_readers_see_the_generation_of_the_newest_attempt(warehouse):
    assert (move(warehouse, 1, "p1"), move(warehouse, 2, "p2")) == (Outcome.landed, Outcome.landed)
    assert {key: row["publish_id"] for key, row in visible_publications(warehouse).items()} == {KEY: "p2"}


def test_an_older_attempt_is_fenced_and_the_same_one_lands_once(warehouse):
    move(warehouse, 2, "p2")
    assert move(warehouse, 1, "p1") is Outcome.fenced
    assert move(warehouse, 2, "p2") is Outcome.already_landed
    assert move(warehouse, 2, "another") is Outcome.fenced
    assert len(read_rows(warehouse, "publications")) == 1


def test_nights_and_methods_do_not_fence_each_other(warehouse):
    move(warehouse, 5, "p5")
    assert move(warehouse, 1, "p1", method="v1") is Outcome.landed
    assert move(warehouse, 1, "p1", ds="2017-10-31") is Outcome.landed


def test_an_older_attempt_that_looked_before_the_newer_published_is_refused_by_the_commit(warehouse, monkeypatch):
    """The older one has read the marker; now the newer one publishes; only then the older one commits, on the handle it looked at."""
    claim_attempt(warehouse, **NIGHT)
    write, beaten = pointer.append_rows, []

    def newer_first(*arguments, **options):
        if not beaten:
            beaten.append(1)
            assert move(warehouse, 2, "p2") is Outcome.landed
        write(*arguments, **options)

    monkeypatch.setattr(pointer, "append_rows", newer_first)
    assert move(warehouse, 1, "p1") is Outcome.fenced
    assert [row["publish_id"] for row in read_rows(warehouse, "publications")] == ["p2"]


def test_another_night_that_publishes_in_between_stops_nobody(warehouse, monkeypatch):
    claim_attempt(warehouse, **NIGHT)
    write, between = pointer.append_rows, []

    def other_first(*arguments, **options):
        if not between:
            between.append(1)
            move(warehouse, 1, "p9", ds="2017-11-01")
        write(*arguments, **options)

    monkeypatch.setattr(pointer, "append_rows", other_first)
    assert move(warehouse, 1, "p1") is Outcome.landed
    assert len(read_rows(warehouse, "publications")) == 2


def test_case_068_an_error_after_the_commit_is_read_from_the_marker(warehouse, monkeypatch):
    add_files, calls = commits.add_files, []

    def commit_then_raise(*arguments):
        calls.append(add_files(*arguments))
        raise DeltaError("Invalid table version: 1")

    monkeypatch.setattr(commits, "add_files", commit_then_raise)
    assert move(warehouse, 1, "p1") is Outcome.landed
    assert (len(calls), len(read_rows(warehouse, "publications"))) == (1, 1)


def test_case_068_an_error_before_the_commit_is_an_error(warehouse, monkeypatch):
    def raise_only(*_):
        raise DeltaError("preview of rows")

    monkeypatch.setattr(commits, "add_files", raise_only)
    with pytest.raises(NightError, match="publications_v1: storage failed"):
        move(warehouse, 1, "p1")
    assert visible_publications(warehouse) == {}


def test_each_row_holds_the_digest_of_the_one_before(warehouse):
    for fence in (1, 2):
        move(warehouse, fence, f"p{fence}")
    first, second = sorted(read_rows(warehouse, "publications"), key=lambda row: row["fence"])
    assert first["previous_sha256"] is None
    assert second["previous_sha256"] == publication_sha256(first)


@pytest.mark.parametrize("method", ["", "v2/v1"])
def test_a_name_that_could_share_a_fence_is_refused(warehouse, method):
    with pytest.raises(UsageError, match="method is"):
        claim_attempt(warehouse, **{**NIGHT, "method": method})
