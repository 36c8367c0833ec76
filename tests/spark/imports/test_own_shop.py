"""Anybody's file by a mapping: good rows land once, bad rows go to quarantine, each under its reason."""

from __future__ import annotations

import gzip
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from recgpt_ops.delta.certificates import certificates
from recgpt_ops.delta.reading import read_rows
from recgpt_ops.delta.warehouse import open_warehouse
from recgpt_ops.errors import ContractError, UsageError
from tests.spark.imports.conftest import OWN_SHOP, RunMapped

REASONS = {
    "no_user_id": 1,
    "unparsable_time": 1,
    "future_time": 1,
    "negative_amount": 1,
    "unknown_action": 1,
    "control_characters": 1,
    "broken_utf8": 1,
    "quantity_not_a_number": 1,
}
HEADER = ("event", "customer", "what", "article", "words", "pieces", "paid", "when")
# Which column of a good row is spoiled, by what bytes, and the reason that must be told.
FAULTS: dict[str, tuple[str, bytes]] = {
    "no_user_id": ("customer", b" "),
    "unparsable_time": ("when", b"29.02.2023 10:00:00"),
    "future_time": ("when", b"05.03.9999 09:21:30"),
    "negative_amount": ("paid", b"-0.01"),
    "unknown_action": ("what", b"purchase"),
    "control_characters": ("article", b"mug\x00"),
    "broken_utf8": ("article", b"mug\xe9"),
    "quantity_not_a_number": ("pieces", b"NaN"),
}


def read(warehouse: str, table: str) -> list[dict[str, Any]]:
    return read_rows(open_warehouse(warehouse), table)


def good_rows(count: int) -> list[list[bytes]]:
    rows = []
    for number in range(count):
        row = [f"g{number}", f"user {number % 40}", "buy", f"mug-{number % 7}", "", "2", "19.80", "05.03.2024 09:21:30"]
        rows.append([value.encode() for value in row])
    return rows


def write_csv(rows: list[list[bytes]], folder: Path) -> Path:
    path = folder / "events.csv"
    path.write_bytes(b"\n".join([",".join(HEADER).encode(), *(b",".join(row) for row in rows)]) + b"\n")
    return path


def text_columns(rows: list[list[bytes]]) -> pa.Table:
    """Columns of the type string whose bytes are taken as they are, as careless writers do."""
    columns = []
    for values in zip(*rows, strict=True):
        data = pa.array(list(values), pa.binary())
        columns.append(pa.StringArray.from_buffers(len(data), data.buffers()[1], data.buffers()[2]))
    return pa.table(dict(zip(HEADER, columns, strict=True)))


def write_parquet(rows: list[list[bytes]], folder: Path) -> Path:
    path = folder / "events.parquet"
    pq.write_table(text_columns(rows), path)
    return path


def write_binary_parquet(rows: list[list[bytes]], folder: Path) -> Path:
    path = folder / "binary.parquet"
    columns = [pa.array(list(values), pa.binary()) for values in zip(*rows, strict=True)]
    pq.write_table(pa.table(dict(zip(HEADER, columns, strict=True))), path)
    return path


def write_delta(rows: list[list[bytes]], folder: Path) -> Path:
    path = folder / "events_delta"
    write_deltalake(str(path), text_columns(rows), partition_by=["what"])
    return path


def test_of_the_sample_twenty_rows_land_and_eight_go_to_quarantine_under_eight_reasons(run_mapped: RunMapped, warehouse: str) -> None:
    report = run_mapped("events", OWN_SHOP / "events.csv")
    assert (report.counts_in, report.kept, report.quarantined) == (28, 20, REASONS)
    kept = read(warehouse, "quarantine")
    assert sorted(row["reason"] for row in kept) == sorted(REASONS)
    assert {row["table_name"] for row in kept} == {"behavior_events"}
    latin = next(row for row in kept if row["reason"] == "broken_utf8")
    assert (latin["row_key"], latin["raw"]) == ("events.csv:25", "e27,dev,search,,caf\\xe9,,,02.04.2024 10:00:00")


def test_importing_twice_adds_nothing_and_says_so(run_mapped: RunMapped, warehouse: str) -> None:
    first = run_mapped("events", OWN_SHOP / "events.csv")
    again = run_mapped("events", OWN_SHOP / "events.csv")
    assert (again.kept, again.already_there, again.quarantined) == (0, 20, REASONS)
    assert len(read(warehouse, "behavior_events")) == 20
    assert len(read(warehouse, "quarantine")) == 8
    told = certificates(open_warehouse(warehouse), table="behavior_events")
    assert [(row.publish_id, row.row_count, row.quarantined_count) for row in told] == [(first.import_id, 20, 8)]


def test_an_event_stands_as_its_contract_says(run_mapped: RunMapped, warehouse: str) -> None:
    run_mapped("events", OWN_SHOP / "events.csv")
    rows = {(row["user_id"], row["action"], row["item_id"]): row for row in read(warehouse, "behavior_events")}
    bought = rows["anna", "purchase", "mug-1"]
    assert (bought["event_at"].isoformat(), bought["event_ds"], bought["arrived_ds"]) == (
        "2024-03-05T08:21:30+00:00",  # 09:21:30 in Berlin, in winter
        "2024-03-05",
        "2024-03-05",
    )
    assert (bought["quantity"], bought["amount"], bought["currency"]) == (2, 19.8, "EUR")
    assert rows["chloé", "search", None]["query"] == "tea, green"


@pytest.mark.parametrize("write", [write_csv, write_parquet, write_binary_parquet, write_delta])
def test_each_fault_in_a_random_row_of_a_thousand_costs_that_row(
    write: Callable[[list[list[bytes]], Path], Path], run_mapped: RunMapped, warehouse: str, tmp_path: Path
) -> None:
    chosen = random.Random(7)
    rows = good_rows(1000)
    spoiled = dict(zip(FAULTS, chosen.sample(range(1000), len(FAULTS)), strict=True))
    for reason, row in spoiled.items():
        column, value = FAULTS[reason]
        rows[row][HEADER.index(column)] = value
    report = run_mapped("events", write(rows, tmp_path))
    assert report.quarantined == dict.fromkeys(FAULTS, 1)
    assert report.kept == 1000 - len(FAULTS)
    kept = read(warehouse, "quarantine")
    for reason, row in spoiled.items():
        assert f"g{row}" in next(told["raw"] for told in kept if told["reason"] == reason)


@pytest.mark.parametrize("reason", sorted(FAULTS))
@pytest.mark.parametrize("write", [write_csv, write_parquet, write_delta])
@pytest.mark.slow
def test_one_fault_in_a_thousand_rows_leaves_999(
    write: Callable[[list[list[bytes]], Path], Path], reason: str, run_mapped: RunMapped, tmp_path: Path
) -> None:
    rows = good_rows(1000)
    column, value = FAULTS[reason]
    rows[random.Random(reason).randrange(1000)][HEADER.index(column)] = value
    report = run_mapped("events", write(rows, tmp_path))
    assert (report.kept, report.quarantined) == (999, {reason: 1})


def test_rows_without_a_natural_key_are_told_apart_by_content_and_place_among_equal_rows(
    run_mapped: RunMapped, warehouse: str, tmp_path: Path
) -> None:
    mapping = {
        "source": "shop",
        "table": "events",
        "time_zone": "UTC",
        "columns": {"user_id": "who", "action": {"default": "purchase"}, "item_id": "what", "event_at": "at"},
    }
    first, other_order = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text("who,what,at\nu1,tea,2024-01-01\nu1,tea,2024-01-01\nu2,tea,2024-01-01\n")
    other_order.write_text("what,at,who\ntea,2024-01-01,u2\ntea,2024-01-01,u1\ntea,2024-01-01,u1\ntea,2024-01-01,u1\n")
    assert run_mapped("events", first, mapping=mapping).kept == 3
    again = run_mapped("events", other_order, mapping=mapping)
    assert (again.kept, again.already_there) == (1, 3)  # only the third equal row of u1 is new
    assert len({row["event_id"] for row in read(warehouse, "behavior_events")}) == 4


def test_an_event_stays_away_until_it_arrived_and_cannot_arrive_before_it_happened(
    run_mapped: RunMapped, warehouse: str, tmp_path: Path
) -> None:
    rows = good_rows(2)
    rows[1][7] = b"08.03.2024 00:00:00"
    report = run_mapped("events", write_csv(rows, tmp_path), arrived_ds="2024-03-07")
    assert (report.kept, report.quarantined) == (1, {"future_time": 1})
    assert [(row["event_ds"], row["arrived_ds"], row["arrived_month"]) for row in read(warehouse, "behavior_events")] == [
        ("2024-03-05", "2024-03-07", "2024-03")
    ]


def test_on_bad_drop_leaves_a_row_out_and_counts_it(run_mapped: RunMapped, tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    path.write_text("article,name,group,kind,maker,price\na,Tea,,,,1.50\nb,Milk,,,,cheap\n")
    report = run_mapped("items", path)
    assert (report.kept, report.dropped, report.quarantined) == (1, {"price_not_a_number": 1}, {})


def test_too_many_bad_rows_publish_nothing_and_the_reasons_are_told(run_mapped: RunMapped, warehouse: str, tmp_path: Path) -> None:
    rows = good_rows(4)
    for row in rows[:3]:
        row[6] = b"-1"
    with pytest.raises(ContractError, match=r"3 of 4 rows are bad \(75%.*negative_amount 3 \(first at events.csv:2\)") as told:
        run_mapped("events", write_csv(rows, tmp_path))
    assert "\n" not in str(told.value)
    assert not open_warehouse(warehouse).exists("behavior_events")
    assert not open_warehouse(warehouse).exists("quarantine")
    assert list((Path(warehouse) / "_staging").glob("*/*")) == []


def test_the_first_import_fixes_zone_and_locale_and_another_is_refused(run_mapped: RunMapped, warehouse: str, tmp_path: Path) -> None:
    run_mapped("profiles", OWN_SHOP / "profiles.csv")
    assert (open_warehouse(warehouse).zone, open_warehouse(warehouse).locale) == ("Europe/Berlin", "en-GB")
    mapping = {"source": "x", "table": "profiles", "time_zone": "UTC", "columns": {"user_id": "customer", "locale": {"default": "en-GB"}}}
    mapping["columns"] |= {"region": {"default": "GB"}}  # type: ignore[operator]  # a dictionary in a dictionary
    with pytest.raises(UsageError, match="fixed to zone Europe/Berlin"):
        run_mapped("profiles", OWN_SHOP / "profiles.csv", mapping=mapping)


def test_events_of_another_language_are_refused_too(run_mapped: RunMapped, warehouse: str) -> None:
    run_mapped("profiles", OWN_SHOP / "profiles.csv")
    mapping = {"source": "x", "table": "events", "time_zone": "Europe/Berlin"}
    columns: dict[str, object] = {"user_id": "customer", "action": "what", "event_at": "when", "locale": {"default": "de-DE"}}
    with pytest.raises(UsageError, match="fixed to zone Europe/Berlin and locale en-GB, but this import says Europe/Berlin and de-DE"):
        run_mapped("events", OWN_SHOP / "events.csv", mapping={**mapping, "columns": columns})


def test_a_changed_item_needs_a_day_and_becomes_a_second_validity_period(run_mapped: RunMapped, warehouse: str, tmp_path: Path) -> None:
    run_mapped("items", OWN_SHOP / "items.csv")
    changed = tmp_path / "items.csv"
    same = "lamp-4,Floor lamp,Lighting,floor lamp,Own Shop,99.00\n"  # another price alone is no new text
    changed.write_text(f"article,name,group,kind,maker,price\n{same}mug-1,Red mug,Kitchen,mug,Own Shop,9.90\n")
    undated = run_mapped("items", changed)
    assert (undated.already_there, undated.quarantined) == (1, {"changed_without_date": 1})
    assert [(row["reason"], row["raw"]) for row in read(warehouse, "quarantine")] == [
        ("changed_without_date", "mug-1,Red mug,Kitchen,mug,Own Shop,9.90")
    ]
    assert run_mapped("items", changed, arrived_ds="2024-05-01").kept == 1
    assert run_mapped("items", changed, arrived_ds="2024-05-01").already_there == 2
    rows = [(row["valid_from_ds"], row["title"]) for row in read(warehouse, "items") if row["item_id"] == "mug-1"]
    assert sorted(rows) == [("0001-01-01", 'Mug "Harbor", blue'), ("2024-05-01", "Red mug")]
    back = run_mapped("items", OWN_SHOP / "items.csv", arrived_ds="2024-06-01")
    assert (back.kept, back.already_there) == (1, 6)  # the old title holds again from June on


def test_a_profile_has_its_attributes_in_the_mappings_order(run_mapped: RunMapped, warehouse: str) -> None:
    run_mapped("profiles", OWN_SHOP / "profiles.csv")
    rows = {row["user_id"]: row for row in read(warehouse, "user_profiles")}
    assert rows["anna"]["attributes"] == [{"name": "age", "value": "25-34"}, {"name": "household size", "value": "2"}]
    assert (rows["anna"]["region"], rows["dev"]["attributes"]) == ("DE", [])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected a header row, got an empty file"),
        (
            gzip.compress(b"event,customer,what,article,words,pieces,paid,when\n" + b"e1,u,buy,m,,1,1,05.03.2024 09:21:30\n" * 9000)[:-300],
            "damaged",
        ),
        (b"PAR1 but not really", "cannot be read as Parquet"),
    ],
)
def test_a_damaged_file_imports_nothing_and_is_told_in_one_line(
    content: bytes, message: str, run_mapped: RunMapped, tmp_path: Path, warehouse: str
) -> None:
    path = tmp_path / "events.csv"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=message) as told:
        run_mapped("events", path)
    assert "\n" not in str(told.value)
    assert not Path(warehouse, "behavior_events_v1").exists()


def test_a_file_whose_name_is_no_utf8_is_read_and_named_with_hex(run_mapped: RunMapped, warehouse: str, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff.csv")
    write_csv([*good_rows(99), [b"broken"]], tmp_path).rename(path)
    assert run_mapped("events", path).kept == 99
    assert [row["row_key"] for row in read(warehouse, "quarantine")] == ["\\xff.csv:101"]


def test_a_folder_may_hold_delta_tables_of_which_only_the_rows_that_count_are_read(run_mapped: RunMapped, tmp_path: Path) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    write_csv(good_rows(3), folder).rename(folder / "more.CSV")
    table = write_delta(good_rows(90), folder)
    write_deltalake(str(table), text_columns([[b"d1", *good_rows(1)[0][1:]]]), mode="overwrite")
    assert (report := run_mapped("events", folder)).kept == 4, report


def test_a_link_to_a_file_that_is_gone_is_told(run_mapped: RunMapped, tmp_path: Path) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    write_csv(good_rows(3), folder)
    (folder / "gone.csv").symlink_to(tmp_path / "nowhere.csv")
    with pytest.raises(UsageError, match=r"gone.csv: cannot be read: No such file"):
        run_mapped("events", folder)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda table: next(table.glob("what=*/*.parquet")).unlink(), "is missing or damaged; nothing was imported"),
        (lambda table: next((table / "_delta_log").glob("*.json")).write_text("{bad"), "cannot be opened as a Delta table"),
    ],
)
def test_a_damaged_delta_table_is_wrong_use_told_in_one_line(
    spoil: Callable[[Path], None], message: str, run_mapped: RunMapped, tmp_path: Path
) -> None:
    table = write_delta(good_rows(3), tmp_path)
    spoil(table)
    with pytest.raises(UsageError, match=message) as told:
        run_mapped("events", table)
    assert "\n" not in str(told.value)


def test_nan_in_a_column_of_numbers_is_no_user_and_an_odd_nested_value_costs_nothing(run_mapped: RunMapped, tmp_path: Path) -> None:
    rows = text_columns(good_rows(100)).drop_columns(["customer", "words"])
    rows = rows.append_column("customer", pa.array([float("nan"), *[12.0] * 99]))
    rows = rows.append_column("words", pa.array([[2**62]] * 100, pa.list_(pa.int64())).cast(pa.list_(pa.timestamp("us"))))
    path = tmp_path / "events.parquet"
    pq.write_table(rows, path)
    report = run_mapped("events", path)
    assert (report.kept, report.quarantined) == (99, {"no_user_id": 1})


def test_a_byte_order_mark_or_a_space_without_width_around_a_value_is_no_part_of_it(
    run_mapped: RunMapped, warehouse: str, tmp_path: Path
) -> None:
    rows = good_rows(100)
    for row, user in zip(rows, ("\ufeffanna", "anna\u200b", " \u2060 ", "an\u200dna"), strict=False):
        row[1] = user.encode()
    report = run_mapped("events", write_csv(rows, tmp_path))
    assert (report.kept, report.quarantined) == (99, {"no_user_id": 1})
    users = {row["event_id"]: row["user_id"] for row in read(warehouse, "behavior_events")}
    assert sorted(users.values()).count("anna") == 2
    assert "an\u200dna" in users.values()


def test_a_missing_path_is_told_in_one_line(run_mapped: RunMapped, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file or folder; check the path"):
        run_mapped("events", tmp_path / "nowhere.csv")


def test_a_file_with_a_header_alone_imports_zero_rows(run_mapped: RunMapped, tmp_path: Path, warehouse: str) -> None:
    path = tmp_path / "events.csv"
    path.write_bytes(",".join(HEADER).encode())
    report = run_mapped("events", path)
    assert (report.counts_in, report.kept) == (0, 0)
    assert [row.row_count for row in certificates(open_warehouse(warehouse), table="behavior_events")] == [0]


def test_user_text_in_names_and_values_never_becomes_part_of_a_query(run_mapped: RunMapped, warehouse: str, tmp_path: Path) -> None:
    name = 'who`; DROP TABLE "x" --'
    path = tmp_path / "a'; b.csv"
    path.write_text(f'"{name.replace(chr(34), chr(34) * 2)}",at\n"\'; DELETE FROM items; --",2024-01-01\n')
    mapping = {
        "source": "shop",
        "table": "events",
        "time_zone": "UTC",
        "columns": {"user_id": name, "action": {"default": "search"}, "query": {"default": "x' OR 1=1"}, "event_at": "at"},
    }
    assert run_mapped("events", path, mapping=mapping).kept == 1
    assert [row["user_id"] for row in read(warehouse, "behavior_events")] == ["'; DELETE FROM items; --"]
