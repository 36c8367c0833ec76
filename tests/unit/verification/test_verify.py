"""What was damaged is found and named; what was not, is not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from recgpt_ops.delta.records import append_records
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.errors import UsageError
from tests.sql.rows import filled
from tests.unit.verification.damage import (
    add_copy,
    files_of,
    in_place,
    other_value,
    rewrite_answer,
    segments,
    swap,
    through_delta,
)
from tests.unit.verification.nights import BEFORE, DS, FIRST, REBUILT, SECOND, Row, verify

pytestmark = pytest.mark.slow  # a warehouse is made, and verified in each test


def told(warehouse: Warehouse, **options: object) -> str:
    """The differences that are found, each a line; there are some."""
    found = verify(warehouse, **options)  # type: ignore[arg-type]  # days and dates as `verify` takes them
    assert found.differences
    for difference in found.differences:
        assert "\n" not in difference.line
        assert all((difference.where, difference.expected, difference.got, difference.next_step))
    return "\n".join(difference.line for difference in found.differences)


def change_row(column: str, **where: object):
    def change(rows: list[Row]) -> list[Row]:
        changed = [row for row in rows if all(row[name] == value for name, value in where.items())]
        changed[0][column] = other_value(changed[0][column])
        return rows

    return change


def without_row(**where: object):
    def change(rows: list[Row]) -> list[Row]:
        rows.remove(next(row for row in rows if all(row[name] == value for name, value in where.items())))
        return rows

    return change


def test_carried_failed_rebuilt_and_undone_nights_verify_clean(sound):
    found = verify(sound)
    assert (found.differences, found.not_verifiable) == ([], [])
    assert found.counts["generations"] >= 30
    assert (found.counts["publications"], found.counts["shown nights"], found.counts["quarantine rows"]) == (4, 2, 2)


def test_one_night_is_verified_with_what_it_names_and_without_the_feeds(sound, damaged):
    assert verify(sound, ds=DS).differences == []
    in_place(files_of(damaged, "items")[0], change_row("title"))
    in_place(files_of(damaged, "intent_tags", ds=BEFORE, publish_id=FIRST)[0], change_row("tag"))
    assert f"intent_tags, ds={BEFORE}, generation {FIRST}" in told(damaged, ds=DS)  # u1 shows it
    assert "items" not in told(damaged, ds=DS)
    with pytest.raises(UsageError, match=f"there is no night of 2017-11-05; there are {BEFORE}, {DS}"):
        verify(sound, ds="2017-11-05")


@pytest.mark.parametrize("table", ["intent_tags", "behavior_events", "behavior_days"])
def test_a_lost_row_is_found(damaged, table):
    through_delta(damaged, table, lambda rows: rows[1:])
    assert f"{table}, " in told(damaged)


def test_a_doubled_row_is_found_with_its_key(damaged):
    through_delta(damaged, "intent_tags", lambda rows: [*rows, rows[0]])
    lines = told(damaged)
    assert "expected each key once" in lines
    assert "u" in lines


def test_a_changed_value_is_found(damaged):
    through_delta(damaged, "intent_tags", change_row("tag", publish_id=SECOND, user_id="u2"))
    assert f"intent_tags, ds={DS}, generation {SECOND}, file " in told(damaged)
    assert "(the same keys, other values)" in told(damaged)


def test_another_maker_of_a_users_rows_is_found(damaged):
    through_delta(damaged, "night_users", change_row("made_by", publish_id=SECOND, user_id="u1"))
    lines = told(damaged)
    assert "made_by and attempt" in lines
    assert f"got {FIRST}x, which was never certified" in lines


def test_two_files_that_changed_places_are_found(damaged):
    swap(files_of(damaged, "candidate_items", publish_id=SECOND)[0], files_of(damaged, "candidate_items", publish_id=FIRST)[0])
    lines = told(damaged)
    assert f"candidate_items, ds={BEFORE}, generation {FIRST}, file " in lines
    assert f"candidate_items, ds={DS}, generation {SECOND}, file " in lines


@pytest.mark.parametrize("hurt", [lambda path: path.unlink(), lambda path: path.write_bytes(path.read_bytes()[:-20])])
def test_a_file_that_is_gone_or_cut_short_is_found(damaged, hurt):
    file = files_of(damaged, "user_contexts", publish_id=SECOND)[0]
    hurt(Path(file.path))
    assert f"user_contexts, file ds={DS}/publish_id={SECOND}/{Path(file.path).name}: expected a Parquet file" in told(damaged)


def test_a_moved_pointer_is_found(damaged):
    def move(rows: list[Row]) -> list[Row]:
        max((row for row in rows if row["ds"] == DS), key=lambda row: row["fence"])["publish_id"] = REBUILT
        return rows

    through_delta(damaged, "publications", move)
    assert f"publications, ds={DS}, scenario=default, method=v2, fence 3: expected" in told(damaged)


@pytest.mark.parametrize("column", ["row_count", "input_digest", "calls_made", "made_at", "input_row_count", "quarantine_digest"])
def test_an_edited_certificate_is_found(damaged, column):
    through_delta(damaged, "certificates", change_row(column, table_name="intent_tags", publish_id=FIRST))
    assert f"certificates, intent_tags, ds={BEFORE}, generation {FIRST}: expected a row of digest" in told(damaged)


def test_an_older_generation_that_is_shown_is_found(damaged):
    """The newest row of the pointer is gone, so that readers see what was shown before; the chain of the others is whole."""
    through_delta(damaged, "publications", without_row(ds=DS, fence=3))
    assert "expected the row of fence 3, which was committed last, got fence 2" in told(damaged)


def test_a_partition_file_from_another_day_is_found(damaged):
    file = files_of(damaged, "intent_tags", ds=BEFORE, publish_id=FIRST)[0]
    add_copy(damaged, "intent_tags", file, ds=DS, publish_id=SECOND)
    assert f"intent_tags, ds={DS}, generation {SECOND}, file " in told(damaged)


def test_a_changed_answer_in_the_ledger_is_found_though_its_checksum_is_right(damaged):
    rewrite_answer(segments(damaged)[0], lambda payload: {**payload, "text": "coffee"})
    assert "expected the answer and the counts that llm_calls says, got another answer_digest" in told(damaged)


def test_a_rotten_record_in_the_middle_is_found(damaged):
    segment = segments(damaged)[0]
    data = bytearray(segment.read_bytes())
    data[60] ^= 1
    segment.write_bytes(data)
    assert "expected sound records, got corrupt record at byte 0" in told(damaged)


@pytest.mark.parametrize(
    ("stage", "expected"), [("intents", f"quarantine, rows of intent_tags, ds={BEFORE}"), ("import", "quarantine, rows of items")]
)
def test_a_row_that_is_no_longer_in_quarantine_is_found(damaged, stage, expected):
    through_delta(damaged, "quarantine", without_row(stage=stage))
    assert expected in told(damaged)


def test_a_call_that_is_no_longer_on_record_is_found(damaged):
    through_delta(damaged, "llm_calls", without_row(user_id="u2"))
    assert "expected its row in llm_calls, got none" in told(damaged)


def test_a_ledger_that_is_gone_or_too_old_is_not_verifiable_and_never_right(damaged):
    found = verify(damaged, ledger_days=0)
    assert found.differences == []
    assert any("are older than ledger.keep_days" in line for line in found.not_verifiable)
    shutil.rmtree(Path(damaged.root) / "_ledger" / DS)
    found = verify(damaged)
    assert found.differences == []
    assert found.not_verifiable == [
        f"ledger, {DS}/v2/{stage}: there is no ledger of its 1 calls" for stage in ("explanations", "intents", "tag_verdicts")
    ]
    assert "not verifiable" in found.summary


def test_a_lost_generation_is_a_difference_unless_maintenance_dropped_it(damaged):
    lost = f"candidate_items, ds={DS}, generation {REBUILT}: expected 4 rows, since maintenance did not drop it, got no file"
    through_delta(damaged, "candidate_items", lambda rows: [row for row in rows if row["publish_id"] != REBUILT])
    assert lost in told(damaged)
    drop(damaged, "candidate_items", REBUILT)
    found = verify(damaged)
    assert (found.differences, found.counts["dropped generations"]) == ([], 1)
    through_delta(damaged, "candidate_items", lambda rows: [row for row in rows if row["publish_id"] != SECOND])
    drop(damaged, "candidate_items", SECOND)
    assert f"generation {SECOND}: expected 4 rows, since something visible names it, got no file" in told(damaged)


def drop(warehouse: Warehouse, table: str, publish_id: str) -> None:
    """The record of a drop, as maintenance writes it."""
    append_records(
        warehouse,
        "dropped_generations",
        [filled("dropped_generations", table_name=table, partition=DS, publish_id=publish_id, reason="unnamed")],
    )
