from __future__ import annotations

import threading

import pyarrow.dataset as pads
import pytest
from deltalake.exceptions import CommitFailedError, DeltaError

from recgpt_ops.delta import commits
from recgpt_ops.delta.quarantine import QuarantineRow, quarantine_rows
from recgpt_ops.delta.records import append_records, read_arrow, read_rows
from recgpt_ops.delta.schemas import arrow_schema
from recgpt_ops.errors import ConfigError, ContractError, NightError
from recgpt_ops.tables import load_contract
from tests.unit.delta.conftest import TIME


def prompt(prompt_id: str, **changes: object) -> dict[str, object]:
    return {"prompt_id": prompt_id, "name": "planner", "version": "v1", "locale": "en", "text": "x", "first_used_at": TIME, **changes}


def call(call_id: str, **changes: object) -> dict[str, object]:
    return {
        "call_id": call_id, "attempt": 1, "ds": "2017-10-30", "scenario": "default", "method": "v2", "stage": "intents", "role": "planner",
        "user_id": "u1", "try_index": 0, "fingerprint": "f", "prompt_id": "p", "model": "m", "model_hash": "h", "form": "text",
        "adaptor": None, "prompt_tokens": 10, "cached_tokens": None, "computed_tokens": None, "completion_tokens": 1, "seconds": 0.5,
        "finish_reason": "stop", "status": "ok", "price": None, "currency": None, "called_at": TIME, "answer_digest": None, **changes,
    }  # fmt: skip


def test_a_table_that_is_not_there_reads_as_empty_with_its_columns(warehouse):
    assert read_rows(warehouse, "prompts") == []
    assert read_arrow(warehouse, "prompts").schema == arrow_schema(load_contract("prompts"))


def test_a_key_is_written_once_whoever_writes_it_again(warehouse):
    assert append_records(warehouse, "prompts", [prompt("a"), prompt("b"), prompt("a", text="again")]) == 2
    assert append_records(warehouse, "prompts", [prompt("b", text="other"), prompt("c")]) == 1
    assert {row["prompt_id"]: row["text"] for row in read_rows(warehouse, "prompts")} == {"a": "x", "b": "x", "c": "x"}
    version = warehouse.open("prompts").version()
    assert append_records(warehouse, "prompts", [prompt("c")]) == 0
    assert warehouse.open("prompts").version() == version


def test_the_whole_key_counts_over_partitions(warehouse):
    rows = [call("a"), call("a", attempt=2), call("b", ds="2017-10-31")]
    assert append_records(warehouse, "llm_calls", rows) == 3
    assert append_records(warehouse, "llm_calls", [call("a"), call("a", attempt=3)]) == 1


def test_rows_and_columns_can_be_chosen(warehouse):
    append_records(warehouse, "llm_calls", [call("a"), call("b", ds="2017-10-31")])
    assert read_rows(warehouse, "llm_calls", columns=["call_id"], where=pads.field("ds") == "2017-10-31") == [{"call_id": "b"}]
    with pytest.raises(ConfigError, match="has no column 'callid'; it has call_id"):
        read_rows(warehouse, "llm_calls", columns=["callid"])


def test_jobs_that_append_at_the_same_time_lose_and_double_nothing(warehouse):
    append_records(warehouse, "prompts", [prompt("first")])
    barrier, written = threading.Barrier(4), []

    def append(number: int) -> None:
        barrier.wait()
        for step in range(3):
            written.append(append_records(warehouse, "prompts", [prompt("shared"), prompt(f"own {number} {step}")]))

    threads = [threading.Thread(target=append, args=(number,)) for number in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    found = [row["prompt_id"] for row in read_rows(warehouse, "prompts")]
    assert sorted(found) == sorted({"first", "shared", *(f"own {number} {step}" for number in range(4) for step in range(3))})
    assert sum(written) == 13


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (prompt("a", text=None), "prompts_v1, prompt_id='a': the row has none in text"),
        (prompt("a", colour="red"), "the row has column colour, which stands in no contract"),
        ({"prompt_id": "a"}, "the row has no column name"),
        (prompt("a", text=7), "column text holds a int, the contract says string"),
        (prompt("a", first_used_at="yesterday"), "column first_used_at holds a str, the contract says timestamp"),
    ],
)
def test_a_row_that_does_not_fit_is_told_by_its_column(warehouse, row, told):
    with pytest.raises(ContractError, match=told):
        append_records(warehouse, "prompts", [row])
    assert read_rows(warehouse, "prompts") == []


def test_an_empty_partition_is_refused(warehouse):
    with pytest.raises(ContractError, match="an empty ds, which is a partition"):
        append_records(warehouse, "llm_calls", [call("a", ds="")])


def test_a_message_of_the_storage_shows_no_row(warehouse, monkeypatch):
    def preview(*_):
        raise DeltaError("1 rows failed validation check. Preview: u_secret")

    monkeypatch.setattr(commits, "add_files", preview)
    with pytest.raises(NightError) as raised:
        append_records(warehouse, "prompts", [prompt("a")])
    assert str(raised.value) == "prompts_v1: storage failed with DeltaError; run `recgpt doctor`, then the stage again"
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


def test_case_068_an_append_that_landed_and_then_failed_is_not_done_twice(warehouse, monkeypatch):
    add_files, calls = commits.add_files, []

    def commit_then_raise(*arguments):
        calls.append(add_files(*arguments))
        raise CommitFailedError("version already exists")

    monkeypatch.setattr(commits, "add_files", commit_then_raise)
    assert append_records(warehouse, "prompts", [prompt("a")]) == 1
    assert (len(calls), [row["prompt_id"] for row in read_rows(warehouse, "prompts")]) == (1, ["a"])


def test_the_same_fault_of_the_same_row_is_one_row_of_quarantine(warehouse):
    fault = QuarantineRow("behavior_events", "events.csv:7", "import", "no_user_id", "user_id is empty", '{"user":""}', import_id="i1")
    again = fault._replace(reason="negative_price")
    assert quarantine_rows(warehouse, [fault, again]) == 2
    assert quarantine_rows(warehouse, [fault]) == 0
    assert sorted(row["reason"] for row in read_rows(warehouse, "quarantine")) == ["negative_price", "no_user_id"]
