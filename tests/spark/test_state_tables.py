"""The three bucket tables between nights, on a warehouse of their own."""

from __future__ import annotations

import pytest

from recgpt_ops.contexts.state import night_buckets, refresh_buckets
from recgpt_ops.delta.certificates import certificates
from recgpt_ops.delta.generations import publish_arrow
from recgpt_ops.delta.warehouse import fix_identity, open_warehouse
from tests.spark.frames import event_rows, table_of

pytestmark = pytest.mark.usefixtures("delta_spark")


@pytest.fixture
def warehouse(tmp_path):
    made = open_warehouse(str(tmp_path / "warehouse"), create=True)
    fix_identity(made, zone="America/New_York", locale="en-US")
    return made


def import_events(warehouse, import_id, *rows):
    told = [row | {"import_id": import_id, "event_id": f"{import_id}-{n}"} for n, row in enumerate(event_rows(*rows))]
    rows = table_of("behavior_events", told)
    publish_arrow(warehouse, "behavior_events", rows, publish_id=import_id, scopes=[import_id], fence=None, input_digest=import_id)


def refresh(spark, warehouse, ds, publish_id, table="behavior_days"):
    return refresh_buckets(spark, warehouse, table, ds=ds, publish_id=publish_id, fence=1, max_bucket_entries=500)


def shown(spark, warehouse, ds):
    rows = night_buckets(spark, warehouse, ds).collect()
    return sorted((row.bucket, row.user_id, row.action, [(entry.item_id, entry.quantity) for entry in row.entries]) for row in rows)


def test_only_buckets_that_something_new_touches_get_a_new_generation_and_an_unchanged_rerun_writes_nothing(spark, warehouse):
    import_events(warehouse, "i1", ("u", "purchase", "coat", 2, "2017-09-05"), ("u", "purchase", "soap", 1, "2017-10-29"))
    first = refresh(spark, warehouse, "2017-10-29", "p1")
    assert (len(first.built_buckets), first.row_count) == (59, 2)
    assert certificates(warehouse, table="behavior_days")[0].row_count == 0  # an empty day is certified too

    again = refresh(spark, warehouse, "2017-10-29", "p2")
    assert (again.built_buckets, again.kept_bucket_count) == ([], 59)

    import_events(warehouse, "i2", ("u", "return", "coat", 1, "2017-10-30"), ("u", "purchase", "hat", 1, "2017-10-02", "2017-10-30"))
    second = refresh(spark, warehouse, "2017-10-30", "p3")
    # The new day, the day of a late event, and the day of the purchase that the return takes from.
    assert second.built_buckets == ["2017-09-05", "2017-10-02", "2017-10-30"]
    assert second.unmatched_return == 0
    assert shown(spark, warehouse, "2017-10-30") == [
        ("2017-09-05", "u", "purchase", [("coat", 1)]),
        ("2017-10-02", "u", "purchase", [("hat", 1)]),
        ("2017-10-29", "u", "purchase", [("soap", 1)]),
    ]
    # The night before still reads what it read.
    assert shown(spark, warehouse, "2017-10-29") == [
        ("2017-09-05", "u", "purchase", [("coat", 2)]),
        ("2017-10-29", "u", "purchase", [("soap", 1)]),
    ]


def test_events_imported_later_that_had_arrived_by_the_cut_make_every_generation_of_that_cut_anew(spark, warehouse):
    import_events(warehouse, "i1", ("u", "purchase", "soap", 1, "2017-10-29"))
    refresh(spark, warehouse, "2017-10-29", "p1")
    import_events(warehouse, "i2", ("u", "purchase", "coat", 1, "2017-10-28"))
    assert len(refresh(spark, warehouse, "2017-10-29", "p2").built_buckets) == 59
    assert [row[0] for row in shown(spark, warehouse, "2017-10-29")] == ["2017-10-28", "2017-10-29"]
