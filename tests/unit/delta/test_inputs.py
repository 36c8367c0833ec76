from __future__ import annotations

import pytest
from deltalake import DeltaTable

from recgpt_ops.delta import checks
from recgpt_ops.delta.inputs import feeds_digest
from tests.unit.delta.conftest import DS


@pytest.fixture(autouse=True)
def unchecked(monkeypatch):
    monkeypatch.setattr(checks, "run_checks", lambda *_: [])


@pytest.fixture
def land(rows, publish):
    """land("behavior_events", "i1", {...}): one import."""

    def run(table: str, import_id: str, *changes: dict[str, object]) -> None:
        built = rows(table, *({**change, "import_id": import_id} for change in changes))
        publish(table, built, publish_id=import_id, scopes=[import_id])

    return run


def test_every_feed_has_a_digest_before_the_first_import(warehouse):
    assert sorted(feeds_digest(warehouse, DS)) == ["behavior_events", "items", "user_profiles"]


def test_a_new_event_that_the_night_may_read_changes_its_digest(warehouse, land):
    before = feeds_digest(warehouse, DS)
    land("behavior_events", "i1", {"event_id": "e1"})
    after = feeds_digest(warehouse, DS)
    assert after["behavior_events"] != before["behavior_events"]
    assert after["items"] == before["items"]


@pytest.mark.parametrize("arrived_ds", ["2017-10-31", "2017-11-01"])
def test_events_that_arrive_later_change_nothing(warehouse, land, arrived_ds):
    land("behavior_events", "i1", {"event_id": "e1"})
    before = feeds_digest(warehouse, DS)
    land("behavior_events", "i2", {"event_id": "e2", "arrived_ds": arrived_ds, "arrived_month": arrived_ds[:7]})
    assert feeds_digest(warehouse, DS) == before
    assert feeds_digest(warehouse, arrived_ds) != before


def test_a_text_that_holds_later_changes_nothing_today(warehouse, land):
    land("items", "i1", {"item_id": "x"})
    before = feeds_digest(warehouse, DS)
    land("items", "i2", {"item_id": "x", "valid_from_ds": "2017-11-01", "text_hash": "other"})
    assert feeds_digest(warehouse, DS) == before


def test_one_import_or_two_or_compacted_is_the_same_content(warehouse, land, tmp_path, rows):
    land("behavior_events", "i1", {"event_id": "e1"}, {"event_id": "e2", "arrived_ds": "2017-09-01", "arrived_month": "2017-09"})
    land("behavior_events", "i2", {"event_id": "e3"})
    two = feeds_digest(warehouse, DS)
    DeltaTable(warehouse.path("behavior_events")).optimize.compact()
    assert feeds_digest(warehouse, DS) == two


def test_the_order_of_imports_plays_no_part(tmp_path, rows):
    from recgpt_ops.delta.generations import publish_arrow
    from recgpt_ops.delta.warehouse import fix_identity, open_warehouse

    digests = []
    for order in (("i1", "i2"), ("i2", "i1")):
        warehouse = open_warehouse(str(tmp_path / "-".join(order)), create=True)
        fix_identity(warehouse, zone="UTC", locale="en")
        for import_id in order:
            built = rows("behavior_events", {"event_id": f"event of {import_id}", "import_id": import_id})
            publish_arrow(warehouse, "behavior_events", built, publish_id=import_id, scopes=[import_id], fence=None, input_digest=import_id)
        digests.append(feeds_digest(warehouse, DS))
    assert digests[0] == digests[1]
