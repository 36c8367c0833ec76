from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

import recgpt_ops.delta.certificates
from recgpt_ops.delta import checks, commits, generations, staging
from recgpt_ops.delta.certificates import certificates
from recgpt_ops.delta.generations import publish_arrow, publish_files, stage_directory
from recgpt_ops.delta.reading import generation_files, read_arrow, read_generation, state_files, state_generations
from recgpt_ops.effects import Effect, watched
from recgpt_ops.errors import ContractError, InputsChangedError, NightError, UsageError
from recgpt_ops.tables import load_contract
from tests.unit.delta.conftest import DS


@pytest.fixture(autouse=True)
def unchecked(monkeypatch):
    """These tests are about files and commits; test_checked_generations.py has the rules, which take a quarter of a second each."""
    monkeypatch.setattr(checks, "run_checks", lambda *_: [])


def stage(warehouse, table: str, *files: pa.Table, publish_id: str = "p1") -> Path:
    directory = stage_directory(warehouse, table, publish_id)
    directory.mkdir()
    for number, rows in enumerate(files):
        pq.write_table(rows, directory / f"part-{number}.parquet")
    return directory


def tree(root: str) -> dict[str, bytes]:
    """Every file below a folder with its bytes."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(Path(root).rglob("*")) if path.is_file()}


def keys(table: pa.Table) -> list[tuple[str, str]]:
    return sorted(zip(table["user_id"].to_pylist(), table["tag_id"].to_pylist(), strict=True))


def test_what_was_published_is_read_back_whole(warehouse, rows, publish):
    built = rows("intent_tags", {"user_id": "u1", "score": -1.5}, {"user_id": "u2", "persona_indexes": [1, 3]})
    (certificate,) = publish("intent_tags", built)
    assert (certificate.partition, certificate.row_count, certificate.file_count, certificate.fence) == (DS, 2, 1, 1)
    assert read_generation(warehouse, "intent_tags", ds=DS, publish_id="p1") == built


def test_spark_files_become_one_file_of_the_partition_without_its_columns(warehouse, rows):
    directory = stage(warehouse, "intent_tags", rows("intent_tags", {"user_id": "u1"}), rows("intent_tags", {"user_id": "u2"}))
    publish_files(warehouse, "intent_tags", directory, publish_id="p1", scopes=[DS], fence=1, input_digest="i")
    (file,) = generation_files(warehouse, "intent_tags", ds=DS, publish_id="p1")
    assert Path(file.path).name.startswith("part-0000-p1-")
    assert Path(file.path).parent == Path(warehouse.path("intent_tags")) / f"ds={DS}" / "publish_id=p1"
    assert not {"ds", "publish_id"} & set(pq.read_schema(file.path).names)
    assert not directory.exists()


def test_a_second_generation_stands_beside_the_first(warehouse, rows, publish):
    publish("intent_tags", rows("intent_tags", {"user_id": "u1"}))
    before = tree(warehouse.path("intent_tags"))
    publish("intent_tags", rows("intent_tags", {"user_id": "u2", "publish_id": "p2"}), publish_id="p2")
    after = tree(warehouse.path("intent_tags"))
    assert {name: after[name] for name in before} == before
    assert read_generation(warehouse, "intent_tags", ds=DS, publish_id="p1")["user_id"].to_pylist() == ["u1"]


def test_publishing_again_changes_nothing(warehouse, rows, publish):
    first = publish("intent_tags", rows("intent_tags", {}))
    before = tree(warehouse.root)
    assert publish("intent_tags", rows("intent_tags", {})) == first
    assert tree(warehouse.root) == before


def test_other_inputs_under_the_same_publish_id_are_refused_with_both_versions(rows, publish):
    publish("intent_tags", rows("intent_tags", {}), input_digest="old")
    with pytest.raises(InputsChangedError, match=r"made from inputs old, now they are new;.*--rebuild"):
        publish("intent_tags", rows("intent_tags", {"tag": "other"}), input_digest="new")


def test_equal_rows_have_equal_digests_whatever_their_order_and_files(warehouse, rows):
    one = rows("intent_tags", *({"user_id": f"u{number}"} for number in range(7)))
    two = rows("intent_tags", *({"user_id": f"u{number}", "publish_id": "p2"} for number in reversed(range(7))))
    scope = {"scopes": [DS], "fence": 1, "input_digest": "i"}
    (first,) = publish_arrow(warehouse, "intent_tags", one, publish_id="p1", **scope)
    directory = stage(warehouse, "intent_tags", two.slice(0, 3), two.slice(3), publish_id="p2")
    (second,) = publish_files(warehouse, "intent_tags", directory, publish_id="p2", **scope)
    assert (first.key_digest, first.row_digest) == (second.key_digest, second.row_digest)


def test_case_008_two_writers_of_one_partition_keep_every_key(warehouse, rows):
    """Two attempts at one generation at the same time, each with the same names to choose from."""
    built = rows("intent_tags", *({"user_id": f"u{number}"} for number in range(50)))
    directories = [stage(warehouse, "intent_tags", built) for _ in range(2)]
    barrier, results = threading.Barrier(2), []

    def publish_one(directory: Path) -> None:
        barrier.wait()
        results.append(publish_files(warehouse, "intent_tags", directory, publish_id="p1", scopes=[DS], fence=1, input_digest="i"))

    threads = [threading.Thread(target=publish_one, args=(directory,)) for directory in directories]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert keys(read_generation(warehouse, "intent_tags", ds=DS, publish_id="p1")) == keys(built)
    assert len(results) == 2
    assert {certificate.key_digest for (certificate,) in results} == {results[0][0].key_digest}
    assert len(list(Path(warehouse.path("intent_tags")).rglob("part-*.parquet"))) == 1  # the loser took its files back


def test_case_009_a_date_without_users_is_an_outcome_and_harms_no_other(warehouse, rows, publish):
    publish("intent_tags", rows("intent_tags", {}))
    before = tree(warehouse.path("intent_tags") + f"/ds={DS}")
    (certificate,) = publish("intent_tags", rows("intent_tags"), scopes=["2017-10-31"], publish_id="p2")
    assert (certificate.partition, certificate.row_count, certificate.file_count) == ("2017-10-31", 0, 0)
    assert tree(warehouse.path("intent_tags") + f"/ds={DS}") == before
    assert read_arrow(warehouse, "intent_tags").num_rows == 1
    assert publish("intent_tags", rows("intent_tags"), scopes=["2017-10-31"], publish_id="p2")[0].row_count == 0


def test_case_009_staged_nothing_is_an_outcome_but_no_folder_is_a_fault(warehouse):
    scope = {"publish_id": "p1", "scopes": [DS], "fence": 1, "input_digest": "i"}
    with pytest.raises(NightError, match=r"intent_tags_v1: nothing was staged at .*run the stage again"):
        publish_files(warehouse, "intent_tags", stage_directory(warehouse, "intent_tags", "p1"), **scope)
    (certificate,) = publish_files(warehouse, "intent_tags", stage(warehouse, "intent_tags"), **scope)
    assert certificate.row_count == 0


def test_case_019_a_recomputed_part_leaves_each_key_once(warehouse, rows, monkeypatch):
    """The job dies after its files were written; the stage runs again with its rows in another order and other files."""
    built = rows("intent_tags", *({"user_id": f"u{number}"} for number in range(20)))
    monkeypatch.setattr(generations, "commit_parts", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    scope = {"publish_id": "p1", "scopes": [DS], "fence": 1, "input_digest": "i"}
    with pytest.raises(KeyboardInterrupt):
        publish_files(warehouse, "intent_tags", stage(warehouse, "intent_tags", built), **scope)
    monkeypatch.undo()
    again = built.take(list(reversed(range(20))))
    publish_files(warehouse, "intent_tags", stage(warehouse, "intent_tags", again.slice(0, 5), again.slice(5)), **scope)
    assert keys(read_generation(warehouse, "intent_tags", ds=DS, publish_id="p1")) == keys(built)


def test_case_065_two_backfill_days_at_once_both_land_from_what_they_staged(warehouse, rows, publish, monkeypatch):
    """The other day is published just before this one commits; the rows are staged once."""
    publish("intent_tags", rows("intent_tags"), scopes=["2017-10-28"], publish_id="p0")
    add_files, staged = commits.add_files, []
    monkeypatch.setattr(generations, "write_parts", lambda *a, **k: staged.append(1) or staging.write_parts(*a, **k))

    def other_first(*arguments):
        commits.add_files = add_files
        publish("intent_tags", rows("intent_tags", {"ds": "2017-10-29", "publish_id": "p2"}), scopes=["2017-10-29"], publish_id="p2")
        add_files(*arguments)

    commits.add_files = other_first
    try:
        publish("intent_tags", rows("intent_tags", {}))
    finally:
        commits.add_files = add_files
    assert sorted(read_arrow(warehouse, "intent_tags")["ds"].to_pylist()) == ["2017-10-29", DS]
    assert len(staged) == 2  # once a day


@pytest.mark.parametrize("row_count", [0, 2])
def test_case_067_two_backfills_of_an_empty_date_leave_one_row_per_key(warehouse, rows, publish, row_count):
    """One attempt's commit falls between the other's look at the log and its own commit; the date has no rows yet."""
    built = rows("intent_tags", *({"user_id": f"u{number}"} for number in range(row_count)))
    publish("intent_tags", rows("intent_tags"), scopes=["2017-10-29"], publish_id="p0")  # the table is there
    add_files = commits.add_files

    def beaten(*arguments):
        commits.add_files = add_files
        publish("intent_tags", built)
        add_files(*arguments)

    commits.add_files = beaten
    try:
        (certificate,) = publish("intent_tags", built)
    finally:
        commits.add_files = add_files
    assert certificate.row_count == row_count
    assert keys(read_arrow(warehouse, "intent_tags")) == keys(built)
    assert len(certificates(warehouse, table="intent_tags", publish_id="p1")) == 1


@pytest.mark.parametrize("error", [DeltaError("Invalid table version: 7"), OSError("connection reset")])
def test_case_068_an_error_after_the_commit_is_read_from_the_marker(warehouse, rows, publish, monkeypatch, error):
    add_files, calls = commits.add_files, []

    def commit_then_raise(*arguments):
        add_files(*arguments)
        calls.append(arguments[1].name)
        raise error

    monkeypatch.setattr(commits, "add_files", commit_then_raise)
    (certificate,) = publish("intent_tags", rows("intent_tags", {}))
    assert (certificate.row_count, calls) == (1, ["intent_tags", "certificates"])
    assert read_arrow(warehouse, "intent_tags").num_rows == 1


def test_case_068_an_error_before_the_commit_leaves_nothing(warehouse, rows, publish, monkeypatch):
    def raise_only(*_):
        raise DeltaError("row preview: u_secret")

    monkeypatch.setattr(commits, "add_files", raise_only)
    with pytest.raises(NightError) as raised:
        publish("intent_tags", rows("intent_tags", {}))
    assert "secret" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert not list(Path(warehouse.path("intent_tags")).rglob("*.parquet"))
    monkeypatch.undo()
    assert publish("intent_tags", rows("intent_tags", {}))[0].row_count == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("table", ["intent_tags", "certificates"])
def test_case_068_whoever_is_interrupted_after_the_commit_leaves_its_files(warehouse, rows, publish, table, error):
    @contextmanager
    def interrupted(what: Effect):
        yield
        if str(what) == f"table.commit/{table}":
            raise error

    built = rows("intent_tags", {"user_id": "u1"})
    with watched(interrupted), pytest.raises(error):
        publish("intent_tags", built)
    assert keys(read_generation(warehouse, "intent_tags", ds=DS, publish_id="p1")) == keys(built)
    publish("intent_tags", built)
    assert keys(read_generation(warehouse, "intent_tags", ds=DS, publish_id="p1")) == keys(built)
    assert len(certificates(warehouse, table="intent_tags")) == 1


def test_case_068_a_certificate_that_was_lost_is_made_from_what_landed(warehouse, rows, publish, monkeypatch):
    """Killed between commit and certificate; the retry comes with the same rows in another order."""
    built = rows("intent_tags", {"user_id": "u1"}, {"user_id": "u2"})
    monkeypatch.setattr(generations, "record_certificates", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        publish("intent_tags", built)
    monkeypatch.undo()
    (certificate,) = publish("intent_tags", built.take([1, 0]))
    assert (certificate.row_count, certificate.file_count) == (2, 1)
    assert keys(read_arrow(warehouse, "intent_tags")) == keys(built)


@pytest.mark.parametrize("table", ["intent_tags", "behavior_events"])
def test_case_070_compaction_while_a_day_is_published_keeps_every_key_once(warehouse, rows, publish, table):
    feed = table == "behavior_events"
    for number in range(3):
        if feed:
            publish(
                table, rows(table, {"event_id": f"e{number}", "import_id": f"i{number}"}), publish_id=f"i{number}", scopes=[f"i{number}"]
            )
        else:
            publish(table, rows(table, {"user_id": f"u{number}", "publish_id": f"p{number}"}), publish_id=f"p{number}")
    add_files = commits.add_files

    def compact_first(*arguments):
        commits.add_files = add_files
        DeltaTable(warehouse.path(table)).optimize.compact()
        add_files(*arguments)

    commits.add_files = compact_first
    try:
        if feed:
            publish(table, rows(table, {"event_id": "e9", "import_id": "i9"}), publish_id="i9", scopes=["i9"])
        else:
            publish(table, rows(table, {"user_id": "u9", "publish_id": "p9"}), publish_id="p9")
    finally:
        commits.add_files = add_files
    column = "event_id" if feed else "user_id"
    expected = [f"e{number}" if feed else f"u{number}" for number in (0, 1, 2, 9)]
    assert sorted(read_arrow(warehouse, table)[column].to_pylist()) == expected
    DeltaTable(warehouse.path(table)).optimize.compact()
    assert sorted(read_arrow(warehouse, table)[column].to_pylist()) == expected


def test_case_071_two_hundred_tasks_that_write_one_date_leave_one_file(warehouse, rows):
    files = [rows("intent_tags", {"user_id": f"u{number}"}) for number in range(200)]
    scope = {"publish_id": "p1", "scopes": [DS], "fence": 1, "input_digest": "i"}
    (certificate,) = publish_files(warehouse, "intent_tags", stage(warehouse, "intent_tags", *files), **scope)
    assert (certificate.row_count, certificate.file_count) == (200, 1)


def test_case_071_a_large_partition_has_at_most_as_many_files_as_its_size_asks_for(warehouse, rows, monkeypatch):
    """Target 1 MiB, about 3 MiB of random ids: each file but the last has reached the target."""
    monkeypatch.setattr(staging, "ROW_GROUP_BYTES", 256 * 1024)
    contract = replace(load_contract("intent_tags"), target_file_mb=1)
    built = rows("intent_tags", {})
    batches = []
    for number in range(12):
        ids = pa.array([os.urandom(16).hex() for _ in range(8_000)])
        wide = pa.concat_tables([built] * 8_000).combine_chunks()
        batches.append(wide.set_column(wide.schema.get_field_index("call_id"), "call_id", ids).slice(0, 8_000 - number))
    parts = staging.write_parts(contract, batches, Path(warehouse.root) / "t", publish_id="p1")
    total = sum(part.size_bytes for part in parts)
    assert sum(part.row_count for part in parts) == sum(batch.num_rows for batch in batches)
    assert 1 < len(parts) <= -(-total // (1024 * 1024))
    assert all(part.size_bytes >= 1024 * 1024 for part in parts[:-1])


def test_rows_of_a_scope_that_was_not_named_are_refused(rows, publish):
    with pytest.raises(ContractError, match="rows of ds '2017-10-30', but this publishes 2017-10-31"):
        publish("intent_tags", rows("intent_tags", {}), scopes=["2017-10-31"])


def test_rows_of_another_generation_are_refused(rows, publish):
    with pytest.raises(NightError, match="generation 'p2', expected 'p1'"):
        publish("intent_tags", rows("intent_tags", {"publish_id": "p2"}))


@pytest.mark.parametrize("ds", ["", None, "2017/10/30", "..", "中"])
def test_a_value_that_cannot_be_a_partition_is_refused(rows, publish, ds):
    with pytest.raises(ContractError, match="ds is a partition"):
        publish("intent_tags", rows("intent_tags", {"ds": ds}))


def test_a_state_table_gets_one_certificate_a_bucket_and_one_commit(warehouse, rows, publish):
    built = rows("behavior_days", {"bucket": "2017-10-28"}, {"bucket": "2017-10-29"}, {"bucket": "2017-10-29", "user_id": "u2"})
    made = publish("behavior_days", built, scopes=["2017-10-28", "2017-10-29", "2017-10-30"], arrived_cut_ds=DS)
    assert [(certificate.partition, certificate.row_count) for certificate in made] == [
        ("2017-10-28", 1),
        ("2017-10-29", 2),
        ("2017-10-30", 0),
    ]
    assert warehouse.open("behavior_days").version() == 1


def test_a_night_reads_the_newest_generation_of_a_bucket_that_it_may_know(warehouse, rows, publish):
    for publish_id, cut in (("p1", "2017-10-29"), ("p2", "2017-10-30"), ("p3", "2017-11-02")):
        built = rows("behavior_days", {"publish_id": publish_id, "arrived_cut_ds": cut, "user_id": publish_id})
        publish("behavior_days", built, publish_id=publish_id, scopes=["2017-10-29"], arrived_cut_ds=cut)
    publish("behavior_days", rows("behavior_days"), publish_id="p4", scopes=["2017-10-28"], arrived_cut_ds="2017-10-30")
    assert state_generations(warehouse, "behavior_days", arrived_cut_ds="2017-10-28") == {}
    generations_then = state_generations(warehouse, "behavior_days", arrived_cut_ds="2017-11-01")
    assert generations_then == {"2017-10-28": "p4", "2017-10-29": "p2"}
    assert [file.partition["publish_id"] for file in state_files(warehouse, "behavior_days", generations_then)] == ["p2"]


def test_a_clock_that_was_set_back_hides_no_newer_generation_and_no_input(warehouse, rows, publish, monkeypatch):
    class Set:
        """A clock that goes back by an hour after each look at it."""

        moment = datetime(2030, 1, 1, 12, tzinfo=UTC)

        @classmethod
        def now(cls, zone):
            cls.moment -= timedelta(hours=1)
            return cls.moment

        min = datetime.min

    monkeypatch.setattr(recgpt_ops.delta.certificates, "datetime", Set)
    for publish_id in ("p9", "p1"):  # a late event made the bucket anew; the ids would sort the other way round
        built = rows("behavior_days", {"publish_id": publish_id, "arrived_cut_ds": DS})
        publish("behavior_days", built, publish_id=publish_id, scopes=["2017-10-29"], arrived_cut_ds=DS)
    assert state_generations(warehouse, "behavior_days", arrived_cut_ds=DS) == {"2017-10-29": "p1"}
    publish("night_users", rows("night_users", {}))
    publish("user_contexts", rows("user_contexts"))
    (context,) = certificates(warehouse, table="user_contexts")
    assert context.input_row_count == 1


def test_a_feed_takes_each_key_once_over_all_imports(warehouse, rows, publish):
    publish("behavior_events", rows("behavior_events", {"event_id": "e1"}), publish_id="i1", scopes=["i1"])
    second = rows("behavior_events", {"event_id": "e1", "import_id": "i2"}, {"event_id": "e2", "import_id": "i2"})
    with pytest.raises(ContractError, match=r"behavior_events_v1, i2: 1 keys are in the table already, the first is event_id=e1"):
        publish("behavior_events", second, publish_id="i2", scopes=["i2"])
    assert read_arrow(warehouse, "behavior_events").num_rows == 1


def test_two_imports_at_the_same_time_cannot_bring_one_key_twice(warehouse, rows, publish):
    add_files = commits.add_files

    def beaten(*arguments):
        commits.add_files = add_files
        publish("behavior_events", rows("behavior_events", {"import_id": "i1"}), publish_id="i1", scopes=["i1"])
        add_files(*arguments)

    commits.add_files = beaten
    try:
        with pytest.raises(ContractError, match="1 keys are in the table already"):
            publish("behavior_events", rows("behavior_events", {"import_id": "i2"}), publish_id="i2", scopes=["i2"])
    finally:
        commits.add_files = add_files
    assert read_arrow(warehouse, "behavior_events")["import_id"].to_pylist() == ["i1"]


def test_a_full_disk_is_told_in_one_line_and_leaves_nothing(warehouse, rows, publish, monkeypatch):
    def no_room(*_, **__):
        raise OSError(28, "No space left on device", "part-0000.parquet")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", no_room)
    with pytest.raises(UsageError, match=r"intent_tags_v1, 2017-10-30: cannot write .*No space left on device; free some room"):
        publish("intent_tags", rows("intent_tags", {}))
    assert not list(Path(warehouse.path("intent_tags")).rglob("*.parquet"))
    assert not certificates(warehouse)


def test_staged_files_are_held_to_what_the_commit_says_of_them(warehouse, rows):
    contract = load_contract("intent_tags")
    root = Path(warehouse.root) / "t"
    (part,) = staging.write_parts(contract, [rows("intent_tags", {})], root, publish_id="p1")
    commits.verify_parts(contract, [part], root, publish_id="p1")
    for wrong, told in (
        (part._replace(size_bytes=1), "no file of 1 bytes"),
        (part._replace(row_count=2), "1 rows, expected 2"),
        (part._replace(path="ds=2017-10-30/gone.parquet"), "no file of"),
        (part._replace(partition={"ds": "2017-10-31", "publish_id": "p1"}), "expected ds=2017-10-31"),
        (part._replace(partition={"ds": ""}), "partition"),
    ):
        with pytest.raises(NightError, match=told):
            commits.verify_parts(contract, [wrong], root, publish_id="p1")


def test_a_staged_file_that_is_cut_short_is_told_in_one_line(warehouse, rows):
    directory = stage(warehouse, "intent_tags", rows("intent_tags", {"tag": "secret"}))
    (file,) = directory.iterdir()
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(NightError, match="intent_tags_v1, 2017-10-30: storage failed with Arrow") as raised:
        publish_files(warehouse, "intent_tags", directory, publish_id="p1", scopes=[DS], fence=1, input_digest="i")
    assert "secret" not in str(raised.value)
