from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from recgpt_ops.delta import generations
from recgpt_ops.delta.certificates import certificates
from recgpt_ops.delta.reading import read_rows
from recgpt_ops.errors import ContractError
from recgpt_ops.tables import load_contract


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
