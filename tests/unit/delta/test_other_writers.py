"""What is held of a writer that makes its own commit, with one that stands in for Spark's: the real one is in tests/jvm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from recgpt_ops.delta import checks, generations
from recgpt_ops.delta.generations import publish_files, stage_directory
from recgpt_ops.delta.reading import read_generation
from recgpt_ops.errors import NightError
from tests.unit.delta.conftest import DS


@pytest.fixture(autouse=True)
def unchecked(monkeypatch):
    """The rules have tests of their own."""
    monkeypatch.setattr(checks, "run_checks", lambda *_: [])


def append(files, table, *, schema, partition_by, file_count, app, version, metadata, change=lambda rows: rows):
    """One commit under the marker, as Delta's own writer makes it; it too skips silently when the marker is there."""
    if DeltaTable(table).transaction_version(app) is not None:
        return
    rows = change(pa.concat_tables([pq.read_table(file, partitioning=None) for file in files]).select(schema.names))
    told = CommitProperties(app_transactions=[Transaction(app, version)], custom_metadata={"userMetadata": metadata})
    write_deltalake(table, rows, mode="append", partition_by=list(partition_by), commit_properties=told)


@pytest.fixture
def publish(warehouse, rows):
    """publish(append): the users a and b of generation p1."""

    def run(how: Any, *, publish_id: str = "p1", table: str = "intent_tags", scopes: list[str] | None = None):
        directory = stage_directory(warehouse, table, "p1")
        directory.mkdir()
        built = rows(table, {"user_id": "a"}, {"user_id": "b"})
        [pq.write_table(built.slice(number, 1), directory / f"{number}.parquet") for number in range(2)]
        terms = {"scopes": scopes or [DS], "fence": 1, "input_digest": "i"}
        return publish_files(warehouse, table, directory, append=how, publish_id=publish_id, **terms)

    return run


def users(warehouse) -> list[str]:
    return sorted(read_generation(warehouse, "intent_tags", ds=DS, publish_id="p1")["user_id"].to_pylist())


def test_the_certificate_is_that_of_our_own_commit(warehouse, publish, tmp_path):
    (certificate,) = publish(append)
    commit = warehouse.open("intent_tags").history()[0]
    told = {"recgpt.publish_id": "p1", "recgpt.input_digest": "i", "recgpt.scope": DS, "recgpt.row_digest": certificate.row_digest}
    assert json.loads(commit["userMetadata"]) == told
    assert (certificate.row_count, certificate.file_count, users(warehouse)) == (2, 1, ["a", "b"])
    assert publish(None) == publish(append) == [certificate]
    assert not list((Path(warehouse.root) / "_staging").rglob("*.parquet"))


def test_case_068_an_error_after_the_commit_is_read_from_the_marker(warehouse, publish):
    def fails(*files, **how):
        append(*files, **how)
        raise NightError("the answer was lost")

    (certificate,) = publish(fails)
    assert (certificate.row_count, users(warehouse)) == (2, ["a", "b"])


def test_case_068_an_error_before_the_commit_leaves_nothing(warehouse, publish):
    def fails(*files, **how):
        raise NightError("no worker")

    with pytest.raises(NightError, match="no worker"):
        publish(fails)
    assert users(warehouse) == []
    assert publish(append)[0].row_count == 2


def test_a_writer_that_says_nothing_and_did_nothing_is_a_fault(publish):
    with pytest.raises(NightError, match=r"the log of the table holds no marker of p1"):
        publish(lambda *files, **how: None)


def test_rows_that_were_changed_on_the_way_are_never_certified(warehouse, publish):
    """Neither by the attempt that sees it nor by a retry, whose own writer is sound."""

    def change(rows):
        return rows.set_column(rows.schema.get_field_index("tag"), "tag", pa.array(["red wine", "white wine"]))

    for how in (lambda *files, **told: append(*files, **told, change=change), append, None):
        with pytest.raises(NightError, match=r"nothing shows them, start a new generation with --rebuild"):
            publish(how)
    assert generations.certificates(warehouse, publish_id="p1") == []


def test_rows_of_another_generation_are_refused(publish):
    with pytest.raises(NightError, match=r"2 staged rows are of another generation than p2"):
        publish(append, publish_id="p2")


def test_a_table_of_several_scopes_is_not_for_a_writer_of_one_marker(publish):
    with pytest.raises(NightError, match=r"can mark one scope in a commit, got 2; publish by delta_rs"):
        publish(append, table="behavior_days", scopes=["2017-10-28", "2017-10-29"])
