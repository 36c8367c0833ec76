"""Delta's own writer on JVM Spark and delta-rs on one table: one protocol, whoever is first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from recgpt_ops.delta import generations
from recgpt_ops.delta.commits import marker
from recgpt_ops.delta.generations import Certificate, publish_files, stage_directory
from recgpt_ops.delta.reading import generation_files, read_generation, read_rows
from recgpt_ops.delta.schemas import arrow_schema
from recgpt_ops.delta.warehouse import Warehouse, fix_identity, open_warehouse
from recgpt_ops.errors import ContractError
from recgpt_ops.spark import delta_append
from recgpt_ops.tables import load_contract
from tests.unit.delta.conftest import DEFAULTS, DS

pytestmark = [pytest.mark.jvm, pytest.mark.slow, pytest.mark.timeout(600)]

WRITERS = ("delta_rs", "spark")
TABLE = "intent_tags"
Publish = Callable[..., list[Certificate]]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """One table for all tests of this file, so that each writer goes on where the other one stopped."""
    opened = open_warehouse(str(tmp_path_factory.mktemp("writers") / "warehouse"), create=True)
    fix_identity(opened, zone="America/New_York", locale="en-US")
    return opened


@pytest.fixture
def publish(warehouse: Warehouse, spark: Any, delta_spark: None) -> Publish:
    """publish("spark", built, publish_id="p1", files=3): one generation of DS, staged in as many files."""

    def run(writer: str, built: pa.Table, *, publish_id: str, files: int = 1) -> list[Certificate]:
        directory = stage_directory(warehouse, TABLE, publish_id)
        directory.mkdir()
        for number in range(files):
            step = -(-built.num_rows // files)
            pq.write_table(built.slice(number * step, step), directory / f"part-{number}.parquet")
        append = None if writer == "delta_rs" else lambda *files, **how: delta_append(spark, *files, **how)
        return publish_files(warehouse, TABLE, directory, append=append, publish_id=publish_id, scopes=[DS], fence=1, input_digest="inputs")

    return run


def tags(publish_id: str, *users: str) -> pa.Table:
    """Rows with whatever a type can hold: no score, a small one, several personas, words of other alphabets."""
    rows = []
    for number, user in enumerate(users):
        odd = {
            "score": None if number % 2 else 1e-9 * number,
            "persona_indexes": list(range(number % 4)),
            "reason": ['南瓜 "x"\n', None][number % 2],
        }
        rows.append(DEFAULTS[TABLE] | odd | {"publish_id": publish_id, "user_id": user})
    return pa.Table.from_pylist(rows, schema=arrow_schema(load_contract(TABLE)))


def users_of(warehouse: Warehouse, publish_id: str) -> list[str]:
    return sorted(read_generation(warehouse, TABLE, ds=DS, publish_id=publish_id)["user_id"].to_pylist())


@pytest.fixture
def killed_before_the_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once."""

    def kill(*_: Any) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(generations, "record_certificates", kill)


def test_the_same_rows_have_the_same_certificate_by_either_writer(warehouse: Warehouse, publish: Publish) -> None:
    users = [f"u{number}" for number in range(40)]
    made = [publish(writer, tags(f"same-{writer}", *users), publish_id=f"same-{writer}")[0] for writer in WRITERS]
    rows = [read_generation(warehouse, TABLE, ds=DS, publish_id=f"same-{writer}").drop_columns(["publish_id"]) for writer in WRITERS]
    told = [(c.row_count, c.key_digest, c.row_digest, c.file_count, c.fence, c.quarantined_count) for c in made]
    assert told[0] == told[1]
    assert made[0].row_count == 40
    assert rows[0].sort_by("user_id") == rows[1].sort_by("user_id")


@pytest.mark.parametrize(("first", "second"), [WRITERS, WRITERS[::-1]])
def test_a_retry_by_the_other_writer_finds_what_landed(
    warehouse: Warehouse, publish: Publish, killed_before_the_certificate: None, first: str, second: str
) -> None:
    name = f"retry-{first}"
    with pytest.raises(KeyboardInterrupt):
        publish(first, tags(name, "a", "b"), publish_id=name)
    version = warehouse.open(TABLE).version()
    (certificate,) = publish(second, tags(name, "b", "a"), publish_id=name)
    assert warehouse.open(TABLE).version() == version
    assert (certificate.row_count, users_of(warehouse, name)) == (2, ["a", "b"])
    assert publish(first, tags(name, "a", "b"), publish_id=name) == [certificate]


def test_spark_marks_its_commit_as_ours_are_marked_and_a_second_one_is_none(warehouse: Warehouse, publish: Publish, spark: Any) -> None:
    publish("spark", tags("marked", "a"), publish_id="marked")
    delta = warehouse.open(TABLE)
    assert delta.transaction_version(marker(DS, "marked")) == 1
    file = generation_files(warehouse, TABLE, ds=DS, publish_id="marked")[0]
    built = Path(warehouse.root) / "again.parquet"
    pq.write_table(tags("marked", "b"), built)
    delta_append(
        spark, [str(built)], warehouse.path(TABLE), schema=arrow_schema(load_contract(TABLE)), partition_by=["ds", "publish_id"],
        file_count=1, app=marker(DS, "marked"), version=1, metadata="{}",
    )  # fmt: skip
    assert DeltaTable(warehouse.path(TABLE)).version() == delta.version()
    assert generation_files(warehouse, TABLE, ds=DS, publish_id="marked") == [file]


def at_once(*calls: Callable[[], list[Certificate]]) -> list[Certificate]:
    """Starts all at the same moment; what each of them returned."""
    barrier, results, lock = threading.Barrier(len(calls)), [], threading.Lock()

    def run(call: Callable[[], list[Certificate]]) -> None:
        barrier.wait()
        (certificate,) = call()
        with lock:
            results.append(certificate)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return results


@pytest.mark.parametrize("number", range(2))
def test_both_writers_at_the_same_generation_at_once_leave_each_row_once(warehouse: Warehouse, publish: Publish, number: int) -> None:
    name, users = f"race-{number}", [f"u{n}" for n in range(30)]
    made = at_once(*[lambda writer=writer: publish(writer, tags(name, *users), publish_id=name) for writer in WRITERS])  # type: ignore[misc]  # a default binds the loop's value
    assert users_of(warehouse, name) == sorted(users)
    assert [certificate.row_count for certificate in made] == [30, 30]
    assert len({certificate.row_digest for certificate in made}) == 1


def test_other_generations_that_come_meanwhile_all_land(warehouse: Warehouse, publish: Publish) -> None:
    """Delta-rs commits ten generations while Spark commits one."""

    def many() -> list[Certificate]:
        return [publish("delta_rs", tags(f"beside-{n}", "a"), publish_id=f"beside-{n}")[0] for n in range(10)][-1:]

    version = warehouse.open(TABLE).version()
    at_once(many, lambda: publish("spark", tags("beside-spark", "a"), publish_id="beside-spark"))
    assert [users_of(warehouse, f"beside-{name}") for name in [*range(10), "spark"]] == [["a"]] * 11
    assert warehouse.open(TABLE).version() == version + 11


@pytest.mark.parametrize("writer", WRITERS)
def test_a_generation_without_rows_is_an_outcome(warehouse: Warehouse, publish: Publish, writer: str) -> None:
    (certificate,) = publish(writer, tags(f"none-{writer}"), publish_id=f"none-{writer}", files=0 if writer == "spark" else 1)
    assert (certificate.row_count, certificate.file_count) == (0, 0)
    assert warehouse.open(TABLE).transaction_version(marker(DS, f"none-{writer}")) == 1


@pytest.mark.parametrize("writer", WRITERS)
def test_rows_that_break_the_contract_are_published_by_neither(warehouse: Warehouse, publish: Publish, writer: str) -> None:
    version = warehouse.open(TABLE).version()
    with pytest.raises(ContractError, match=r"unique"):
        publish(writer, tags(f"twice-{writer}", "a", "a"), publish_id=f"twice-{writer}")
    assert warehouse.open(TABLE).version() == version
    assert {row["reason"] for row in read_rows(warehouse, "quarantine")} == {"check_unique"}


@pytest.mark.parametrize("writer", WRITERS)
def test_case_071_two_hundred_staged_files_become_one_by_either_writer(warehouse: Warehouse, publish: Publish, writer: str) -> None:
    (certificate,) = publish(writer, tags(f"many-{writer}", *map(str, range(400))), publish_id=f"many-{writer}", files=200)
    assert (certificate.row_count, certificate.file_count) == (400, 1)
