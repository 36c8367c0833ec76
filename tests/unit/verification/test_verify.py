"""What was damaged is found and named; what was not, is not."""

from __future__ import annotations

import pytest

from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.errors import UsageError
from tests.unit.verification.damage import (
    files_of,
    in_place,
    other_value,
    through_delta,
)
from tests.unit.verification.nights import BEFORE, DS, FIRST, SECOND, Row, verify

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
