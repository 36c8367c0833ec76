from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from recgpt_ops.delta import warehouse as warehouses
from recgpt_ops.delta.faults import told_plainly
from recgpt_ops.delta.schemas import arrow_schema
from recgpt_ops.delta.warehouse import create_table, fix_identity, open_warehouse
from recgpt_ops.errors import NightError, UsageError
from recgpt_ops.tables import all_contracts, load_contract


def test_zone_and_locale_are_fixed_by_the_first_import(warehouse):
    fix_identity(warehouse, zone="America/New_York", locale="en-US")  # the same again is fine
    assert (warehouse.zone, warehouse.locale) == ("America/New_York", "en-US")
    with pytest.raises(UsageError, match=r"fixed to zone America/New_York and locale en-US, but this import says UTC and en-US"):
        fix_identity(warehouse, zone="UTC", locale="en-US")


def test_zone_and_locale_travel_with_a_copy_that_holds_only_feeds(warehouse, tmp_path):
    for table in ("items", "user_profiles"):
        shutil.copytree(warehouse.path(table), tmp_path / "copy" / Path(warehouse.path(table)).name)
    assert open_warehouse(str(tmp_path / "copy")).zone == "America/New_York"


def test_a_warehouse_without_data_says_what_to_do(tmp_path):
    empty = open_warehouse(str(tmp_path / "new"), create=True)
    with pytest.raises(UsageError, match="holds no data yet; run `recgpt import` first"):
        _ = empty.zone
    with pytest.raises(UsageError, match=r"items: there is no such table in warehouse .*; jobs/spark/items.py makes it"):
        empty.open("items")


def test_a_zone_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(UsageError, match="'Mars/Olympus' is no time zone"):
        fix_identity(open_warehouse(str(tmp_path), create=True), zone="Mars/Olympus", locale="en")


def test_a_missing_warehouse_or_a_file_in_its_place_is_one_line(tmp_path):
    with pytest.raises(UsageError, match=r"does not exist; run `recgpt import`"):
        open_warehouse(str(tmp_path / "nowhere"))
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        open_warehouse(str(tmp_path / "file"))
    with pytest.raises(UsageError, match="cannot be made"):
        open_warehouse(str(tmp_path / "file" / "below"), create=True)


def test_tables_use_only_features_that_every_reader_knows(warehouse):
    for table in all_contracts():
        create_table(warehouse, table)
        create_table(warehouse, table)
        delta = warehouse.open(table)
        assert (delta.protocol().min_reader_version, delta.protocol().min_writer_version) == (1, 2), table
        assert delta.protocol().reader_features is None
        assert delta.metadata().partition_columns == list(all_contracts()[table].partition_by)
        assert delta.version() == 0
    assert all(map(warehouse.exists, all_contracts()))


NEWEST = ["price", "currency"]  # of items, both nullable


def made_before(warehouse, *missing):
    """An `items` table with one row, as a version of this project made it whose contract had not yet these columns."""
    shutil.rmtree(warehouse.path("items"))
    older = pa.schema([field for field in arrow_schema(load_contract("items")) if field.name not in missing])
    row = {field.name: ["1" if pa.types.is_string(field.type) else None] for field in older}
    write_deltalake(warehouse.path("items"), pa.table(row, schema=older), partition_by=list(load_contract("items").partition_by))


def test_a_table_of_an_older_version_gets_the_new_nullable_columns_and_keeps_its_rows(warehouse):
    made_before(warehouse, *NEWEST)
    create_table(warehouse, "items")
    create_table(warehouse, "items")  # has them now: no further commit
    delta = warehouse.open("items")
    assert delta.version() == 1
    assert {field.name for field in delta.schema().fields} == set(load_contract("items").column_names)
    assert delta.to_pyarrow_table(columns=["item_id", *NEWEST]).to_pylist() == [{"item_id": "1", "price": None, "currency": None}]


def test_a_column_that_may_not_be_null_is_never_added_to_rows_that_lack_it(warehouse):
    made_before(warehouse, "title")
    create_table(warehouse, "items")
    assert "title" not in {field.name for field in warehouse.open("items").schema().fields}


def test_two_jobs_that_add_the_same_column_end_with_it_once(warehouse, monkeypatch):
    made_before(warehouse, *NEWEST)
    opened_early = warehouse.open("items")
    create_table(warehouse, "items")
    answers = iter([opened_early])  # the second job looked before the first had committed
    monkeypatch.setattr(warehouses.Warehouse, "open", lambda self, table: next(answers, None) or DeltaTable(self.path(table)))
    warehouses.add_new_columns(warehouse, "items")
    assert [field.name for field in warehouse.open("items").schema().fields].count("price") == 1


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(28, "No space left on device"), "No space left on device; free some room"),
        (DeltaError("Generic LocalFileSystem error: Unable to copy: No space left on device (os error 28)"), "free some room"),
        (OSError(30, "Read-only file system"), "Read-only file system; mount it for writing"),
        (DeltaError("... Permission denied (os error 13)"), "Permission denied; give this user the right"),
        (PermissionError(13, "Permission denied"), "Permission denied; give this user the right"),
        (OSError("[Errno 122] Error writing bytes to file. Detail: [errno 122] Disk quota exceeded"), "raise the quota"),
    ],
)
def test_storage_that_cannot_be_written_is_wrong_use_told_in_one_line(error, told):
    with pytest.raises(UsageError) as raised, told_plainly("items_v1, i1", root="/data/w"):
        raise error
    assert str(raised.value).startswith("items_v1, i1: cannot write /data/w: ")
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)
    assert raised.value.exit_code == 2


def test_other_faults_of_storage_lose_their_text_because_it_may_hold_rows():
    with pytest.raises(NightError) as raised, told_plainly("items_v1"):
        raise DeltaError("row: u_secret")
    assert "secret" not in str(raised.value)


def test_a_conflict_passes_to_whoever_decides_about_it():
    with pytest.raises(CommitFailedError), told_plainly("items_v1"):
        raise CommitFailedError("Concurrent transaction failed.")
