from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from secrets import token_hex

import pyarrow.parquet as pq
import pytest

from recgpt_ops.delta import generations
from recgpt_ops.delta.certificates import certificates
from recgpt_ops.delta.generations import publish_files, stage_directory
from recgpt_ops.delta.reading import read_rows
from recgpt_ops.errors import ContractError
from recgpt_ops.tables import load_contract

PROCESS_IO = Path("/proc/self/io")


def test_rows_that_break_the_contract_are_not_published_and_stand_in_quarantine(warehouse, rows, publish):
    built = rows(
        "intent_tags", {"user_id": "u1"}, {"user_id": "u2", "rank": 0}, {"user_id": "u3", "rank": 0}, {"user_id": "u4", "rank": -3}
    )
    with pytest.raises(ContractError, match=r"intent_tags_v1, 2017-10-30: rank breaks between in 3 rows, the first is .*user_id=u2"):
        publish("intent_tags", built)
    quarantined = read_rows(warehouse, "quarantine")
    assert sorted(row["user_id"] for row in quarantined) == ["u2", "u3", "u4"]
    assert {(row["reason"], row["stage"], row["method"]) for row in quarantined} == {("check_between", "intent_tags", "v2")}
    assert json.loads(next(row["raw"] for row in quarantined if row["user_id"] == "u4"))["rank"] == -3
    assert not list(Path(warehouse.path("intent_tags")).rglob("*.parquet"))
    assert certificates(warehouse) == []


def test_a_rule_graded_warn_is_told_and_stops_nothing(warehouse, rows, publish, monkeypatch):
    contract = load_contract("intent_tags")
    warned = replace(contract, checks=tuple(check._replace(grade="warn") for check in contract.checks))
    monkeypatch.setattr(generations, "load_contract", lambda _: warned)
    (certificate,) = publish("intent_tags", rows("intent_tags", {"rank": 0}))
    assert certificate.warnings[0].startswith("rank breaks between in 1 row, the first is")
    assert read_rows(warehouse, "quarantine") == []


def bytes_read() -> int:
    """What this process has read from files so far, through whatever library."""
    return int(PROCESS_IO.read_text().split("rchar: ")[1].split()[0])


@pytest.mark.skipif(not PROCESS_IO.exists(), reason=f"{PROCESS_IO} is missing: this system does not say what a process reads")
@pytest.mark.parametrize(("table", "key", "text"), [("intent_tags", "user_id", "reason"), ("items", "item_id", "category")])
def test_publishing_reads_what_was_staged_at_most_twice(warehouse, rows, table, key, text):
    """Once to write the final files and once to check these. The system counts, so no reader is overlooked."""
    is_feed = table == "items"

    def times_read(publish_id: str, count: int) -> float:
        """Publishes so many long rows; how often their file's bytes were read meanwhile."""
        generation = {"import_id" if is_feed else "publish_id": publish_id}
        built = rows(table, *({key: f"{publish_id}-{row}", text: token_hex(2_000), **generation} for row in range(count)))
        directory = stage_directory(warehouse, table, publish_id)
        directory.mkdir()
        pq.write_table(built, directory / "part-0.parquet")
        staged, before = (directory / "part-0.parquet").stat().st_size, bytes_read()
        terms = {"scopes": [publish_id], "fence": None} if is_feed else {"scopes": ["2017-10-30"], "fence": 1}
        publish_files(warehouse, table, directory, publish_id=publish_id, input_digest="inputs", **terms)
        return (bytes_read() - before) / staged

    times_read("p1", 1)  # imports, and the table itself
    assert 1.5 < times_read("p2", 2_000) < 2.2
