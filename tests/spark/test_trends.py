from __future__ import annotations

from recgpt_ops.contexts.trends import count_trends
from tests.spark.frames import events, frame, item

DS = "2017-10-30"


def bought(item_id, times, day, *, users=10):
    return [(f"u{n % users}", "purchase", item_id, 1, day) for n in range(times)]


def trends(spark, *rows, count=3):
    items = [item("mask", item_type="Masks"), item("milk", item_type="Milk"), item("wig"), item("soap", item_type="Soap")]
    found = count_trends(events(spark, *rows), frame(spark, "items", *items), DS, trend_count=count)
    return [(row.name, round(row.value, 3)) for row in found.collect()]


def test_purchases_a_day_of_7_days_are_divided_by_those_of_the_28_days_before(spark):
    rows = [
        *bought("mask", 21, "2017-10-24"),  # the first of the 7 days: 3 a day
        *bought("mask", 28, "2017-10-23"),  # the last of the 28: 1 a day
        *bought("mask", 50, "2017-09-25"),  # a day too early
        *bought("wig", 28, "2017-10-30"),  # 4 a day against 1; without a type its title stands in
        *bought("wig", 28, "2017-09-26"),
        *bought("milk", 70, "2017-10-30"),  # 10 against 10
        *bought("milk", 280, "2017-10-01"),
    ]
    assert trends(spark, *rows) == [("wig", 4.0), ("Masks", 3.0)]
    assert trends(spark, *rows, count=1) == [("wig", 4.0)]


def test_what_few_bought_or_nobody_bought_before_is_no_trend(spark):
    rows = [
        *bought("mask", 19, "2017-10-30"),
        *bought("mask", 1, "2017-10-01"),
        *bought("wig", 40, "2017-10-30", users=4),
        *bought("wig", 1, "2017-10-01"),
        *bought("soap", 40, "2017-10-30"),
    ]
    assert trends(spark, *rows) == []


def test_equal_trends_are_ordered_by_name(spark):
    rows = [row for name in ("wig", "mask") for day in ("2017-10-30", "2017-10-01") for row in bought(name, 28, day)]
    assert trends(spark, *rows) == [("Masks", 4.0), ("wig", 4.0)]
