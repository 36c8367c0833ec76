from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

from recgpt_ops.contexts.histories import buckets_to_build
from recgpt_ops.contexts.state import bucket_scopes, common_cut, usable_cuts


def certificate(bucket, cut, *, digest="d"):
    return SimpleNamespace(partition=bucket, arrived_cut_ds=cut, input_digest=digest, made_at=datetime(2026, 1, 1, tzinfo=UTC))


def test_a_night_reads_the_newest_generation_that_is_not_of_a_later_cut():
    found = [certificate("2017-08", "2017-09-01"), certificate("2017-08", "2017-10-29"), certificate("2017-08", "2017-10-31")]
    assert usable_cuts(found, "2017-10-30", {"2017-10-29": "d"}) == {"2017-08": "2017-10-29"}


def test_a_generation_is_of_no_use_once_events_were_imported_that_had_arrived_by_its_cut():
    found = [certificate("2017-08", "2017-10-29", digest="before"), certificate("2017-09", "2017-10-28", digest="same")]
    assert usable_cuts(found, "2017-10-30", {"2017-10-29": "after", "2017-10-28": "same"}) == {"2017-09": "2017-10-28"}


def test_only_what_is_missing_or_touched_since_its_cut_is_built():
    cuts = dict.fromkeys(["2017-09", "2017-10"], "2017-12-05")
    needed = buckets_to_build("behavior_months", "2017-12-06", touched={"2017-09": "2017-12-06", "2017-10": "2017-12-05"}, cuts=cuts)
    months_2016 = [f"2016-{month:02d}" for month in range(1, 13)]
    months_2017 = [f"2017-{month:02d}" for month in range(1, 10)]
    assert needed == months_2016 + months_2017


def test_years_with_data_and_the_last_whole_year_are_built():
    assert buckets_to_build("behavior_years", "2017-12-06", touched={"2009": "2009-12-31"}, cuts={}) == ["2009", "2015"]


def test_only_later_arrivals_can_matter_once_every_bucket_has_a_generation():
    assert common_cut("behavior_years", "2017-12-06", {"2015": "2017-12-05", "2009": "2017-12-01"}) == "2017-12-01"
    assert common_cut("behavior_years", "2018-01-01", {"2015": "2017-12-05"}) is None


def test_buckets_outside_the_span_of_the_night_are_not_read():
    generations = {"2017-08-31": "p1", "2017-09-01": "p1", "2017-10-30": "p2", "2017-10-31": "p3"}
    assert bucket_scopes(generations, "behavior_days", "2017-10-30") == {"p1": ["2017-09-01"], "p2": ["2017-10-30"]}
    assert bucket_scopes({"2015": "p1", "2016": "p1"}, "behavior_years", "2017-10-30") == {"p1": ["2015"]}
