"""The known sources, on a handful of their rows: what lands, what is dropped by which name, and that nothing goes missing."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recgpt_ops.delta.reading import read_rows
from recgpt_ops.delta.warehouse import open_warehouse
from recgpt_ops.errors import UsageError
from recgpt_ops.imports.report import ImportReport, TableReport

RunSource = Callable[[str, Path], ImportReport]


def write(folder: Path, name: str, lines: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.csv.gz").write_bytes(gzip.compress(lines.encode()))


def tables_of(report: ImportReport) -> dict[str, TableReport]:
    return {table.table: table for table in report.tables}


def read(warehouse: str, table: str) -> list[dict[str, Any]]:
    return read_rows(open_warehouse(warehouse), table)


@pytest.fixture
def online_retail(tmp_path: Path) -> Path:
    header = "InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country\n"
    write(
        tmp_path / "raw",
        "online_retail_2009_2010",
        header
        + "489434,85123A,CREAM HANGING HEART,2,2009-12-01 07:45:00,2.55,13085,EIRE\n"
        + "489435,85123A,CREAM HANGING HEART,2,2009-12-01 08:45:00,2.55,,United Kingdom\n"  # a guest
        + "489436,POST,POSTAGE,1,2009-12-01 09:00:00,18.00,13085,EIRE\n"
        + "489437,22222,damaged,-4,2009-12-02 09:00:00,0.0,13085,EIRE\n"
        + "C489438,85123A,CREAM HANGING HEART,-1,2009-12-03 10:00:00,2.55,13085,EIRE\n"
        + "489439,85123A,WHITE HANGING HEART,3,2010-07-01 00:30:00,2.75,13085,Unspecified\n"
        + "536365,84406B,COAT HANGER,6,2010-12-01 08:26:00,2.75,17850,United Kingdom\n",  # stands in the second file too
    )
    write(
        tmp_path / "raw",
        "online_retail_2010_2011",
        header
        + "536365,84406B,COAT HANGER,6,2010-12-01 08:26:00,2.75,17850,United Kingdom\n"
        + "536365,84406B,COAT HANGER,6,2010-12-01 08:26:00,2.75,17850,United Kingdom\n"  # the same line twice in one order
        + "536366,85123A,CREAM HANGING HEART,1,2011-01-05 12:00:00,2.95,17850,France\n",
    )
    return tmp_path


def test_online_retail_names_what_it_drops_and_keeps_the_rest(run_source: RunSource, warehouse: str, online_retail: Path) -> None:
    tables = tables_of(run_source("online-retail", online_retail))
    events = tables["behavior_events"]
    assert (events.counts_in, events.kept) == (10, 6)
    assert events.dropped == {"overlap": 1, "anonymous": 1, "not_goods": 1, "no_price": 1}
    assert [tables["user_profiles"].dropped[reason] for reason in ("overlap", "anonymous", "no_single_country")] == [1, 1, 1]
    rows = read(warehouse, "behavior_events")
    told = [(row["action"], row["item_id"], row["quantity"], row["amount"], row["event_at"].isoformat(), row["event_ds"]) for row in rows]
    assert sorted(told) == [
        ("purchase", "84406B", 6, 16.5, "2010-12-01T08:26:00+00:00", "2010-12-01"),
        ("purchase", "84406B", 6, 16.5, "2010-12-01T08:26:00+00:00", "2010-12-01"),
        ("purchase", "85123A", 1, 2.95, "2011-01-05T12:00:00+00:00", "2011-01-05"),
        ("purchase", "85123A", 2, 5.1, "2009-12-01T07:45:00+00:00", "2009-12-01"),
        ("purchase", "85123A", 3, 8.25, "2010-06-30T23:30:00+00:00", "2010-07-01"),  # half past midnight in London's summer
        ("return", "85123A", 1, 2.55, "2009-12-03T10:00:00+00:00", "2009-12-03"),
    ]


def test_a_code_with_several_names_has_a_validity_period_for_each(run_source: RunSource, warehouse: str, online_retail: Path) -> None:
    run_source("online-retail", online_retail)
    items = sorted((row["item_id"], row["valid_from_ds"], row["title"], row["price"]) for row in read(warehouse, "items"))
    assert items == [
        ("84406B", "0001-01-01", "Coat hanger", 2.75),
        ("85123A", "0001-01-01", "Cream hanging heart", 2.95),  # its latest price
        ("85123A", "2010-07-01", "White hanging heart", 2.75),
    ]
    profiles = sorted((row["user_id"], row["valid_from_ds"], row["region"]) for row in read(warehouse, "user_profiles"))
    assert profiles == [("13085", "0001-01-01", "IE"), ("17850", "0001-01-01", "GB"), ("17850", "2011-01-05", "FR")]


def test_a_known_source_imported_twice_adds_nothing(run_source: RunSource, warehouse: str, online_retail: Path) -> None:
    first = run_source("online-retail", online_retail)
    again = run_source("online-retail", online_retail)
    assert [(table.kept, table.already_there) for table in again.tables] == [(0, table.kept) for table in first.tables]


def test_open_ecommerce_knows_days_only(run_source: RunSource, warehouse: str, tmp_path: Path) -> None:
    header = (
        "Order Date,Purchase Price Per Unit,Quantity,Shipping Address State,Title,ASIN/ISBN (Product Code),Category,Survey ResponseID\n"
    )
    write(
        tmp_path,
        "purchases_29_states",
        header
        + '2020-04-01,15.15,1.0,AK,"Coins &amp; Bills, 2020",0794847021,ABIS_BOOK,R_1\n'
        + "2020-07-01,10.00,2.0,AK,Cat food,B01,PET_FOOD,R_1\n"
        + "2020-07-01,10.00,2.0,AK,Cat food,B01,PET_FOOD,R_1\n",  # perhaps bought twice: both stay
    )
    survey = "Survey ResponseID,Q-demos-age,Q-demos-gender,Q-demos-education,Q-demos-income,Q-demos-state,Q-amazon-use-howmany,"
    write(
        tmp_path,
        "survey_demographics",
        survey
        + "Q-amazon-use-hh-size,Q-amazon-use-how-oft\n"
        + "R_1,25 - 34 years,Female,Bachelor's degree,Prefer not to say,New York,1 (just me!),2,Less than 5 times per month\n",
    )
    report = run_source("open-ecommerce", tmp_path)
    assert [(table.table, table.kept) for table in report.tables] == [("items", 2), ("user_profiles", 1), ("behavior_events", 3)]
    rows = sorted(read(warehouse, "behavior_events"), key=lambda row: row["event_ds"])
    assert (rows[0]["event_at"].isoformat(), rows[0]["event_at_precision"], rows[0]["event_ds"]) == (
        "2020-04-01T04:00:00+00:00",  # midnight in New York, in summer
        "day",
        "2020-04-01",
    )
    assert (rows[1]["quantity"], rows[1]["amount"], rows[1]["currency"]) == (2, 20.0, "USD")
    titles = {row["item_id"]: (row["title"], row["item_type"], row["category"]) for row in read(warehouse, "items")}
    assert titles == {"0794847021": ("Coins & Bills, 2020", "book", None), "B01": ("Cat food", "pet food", None)}
    profile = read(warehouse, "user_profiles")[0]
    assert profile["region"] == "US-NY"
    assert [(pair["name"], pair["value"]) for pair in profile["attributes"]] == [
        ("age", "25 - 34 years"),
        ("gender", "female"),
        ("education", "bachelor's degree"),
        ("household size", "2"),
        ("people sharing the account", "1"),
    ]


def test_complete_journey_is_utc_with_days_of_new_york(run_source: RunSource, warehouse: str, tmp_path: Path) -> None:
    write(
        tmp_path,
        "transactions_801_households",
        "household_id,store_id,basket_id,product_id,quantity,sales_value,retail_disc,coupon_disc,coupon_match_disc,week,transaction_timestamp\n"
        "1,436,31,821,2,5.98,0.0,0.0,0.0,2,2018-01-01 04:01:20\n"
        "1,436,31,822,0,0.0,0.0,0.0,0.0,2,2018-01-01 04:01:20\n"
        "1,436,32,823,9000,23.5,0.0,0.0,0.0,2,2017-07-01 12:00:00\n",
    )
    write(
        tmp_path,
        "products",
        "product_id,manufacturer_id,department,brand,product_category,product_type,package_size\n"
        "821,69,PASTRY,Private,BREAD,BREAD:ITALIAN/FRENCH,20 OZ\n"
        "822,2,MISCELLANEOUS,National,,,\n"
        "823,2,FUEL,National,COUPON/MISC ITEMS,GASOLINE-REG UNLEADED,\n",
    )
    write(
        tmp_path,
        "demographics",
        "household_id,age,income,home_ownership,marital_status,household_size,household_comp,kids_count\n"
        "1,65+,35-49K,Homeowner,,2,2 Adults No Kids,0\n",
    )
    write(tmp_path, "campaigns", "campaign_id,household_id\n1,1\n")
    write(tmp_path, "campaign_descriptions", "campaign_id,campaign_type,start_date,end_date\n1,Type B,2017-03-03,2017-04-09\n")
    write(tmp_path, "coupon_redemptions", "household_id,coupon_upc,campaign_id,redemption_date\n1,53377610033,1,2017-03-05\n")
    tables = tables_of(run_source("complete-journey", tmp_path))
    assert (tables["behavior_events"].counts_in, tables["behavior_events"].kept) == (5, 3)
    assert tables["behavior_events"].dropped == {"zero_quantity": 1, "not_goods": 1}
    assert (tables["items"].kept, tables["items"].dropped) == (1, {"no_text": 1, "not_goods": 1})
    rows = {row["action"]: row for row in read(warehouse, "behavior_events")}
    assert {action: (row["event_ds"], row["event_at_precision"], row["item_id"], row["campaign_id"]) for action, row in rows.items()} == {
        "purchase": ("2017-12-31", "second", "821", None),
        "campaign": ("2017-03-03", "day", None, "1"),
        "coupon": ("2017-03-05", "day", None, "1"),
    }
    item = read(warehouse, "items")[0]
    assert (item["title"], item["category"], item["item_type"], item["brand"]) == (
        "Bread: Italian/French, 20 oz, private brand",
        "Bread",
        "Bread: Italian/French",
        "private brand",
    )
    assert [(pair["name"], pair["value"]) for pair in read(warehouse, "user_profiles")[0]["attributes"]] == [
        ("age", "65+"),
        ("household income", "$35,000-49,000 a year"),
        ("home", "homeowner"),
        ("household size", "2"),
        ("household", "2 adults no kids"),
        ("number of children", "0"),
    ]


def test_missing_files_of_a_source_are_all_named_in_one_line(run_source: RunSource, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"missing purchases_29_states\.csv\.gz, survey_demographics\.csv\.gz; check --path") as told:
        run_source("open-ecommerce", tmp_path)
    assert "\n" not in str(told.value)
    with pytest.raises(UsageError, match="no source 'online-retial'; did you mean 'online-retail'"):
        run_source("online-retial", tmp_path)
