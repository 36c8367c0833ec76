"""Segment files: a torn or rotten record costs itself, and another shard count loses nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from recgpt_ops.errors import UsageError
from recgpt_ops.ids import row_id
from recgpt_ops.ledger.segments import HEADER, SHARED_BUCKET, SegmentWriter, ShardIndex, has_answers, pack, scan, shard_name, shard_range


def call(n: int) -> str:
    return row_id(("call", n))


def write(stage: Path, shard: str, attempt: int, calls: dict[int, int]) -> Path:
    """Records call n of bucket b for each n: b, in a segment of its own."""
    writer = SegmentWriter(stage / shard, attempt)
    for n, bucket in calls.items():
        writer.append(pack(call(n), bucket, {"text": f"answer {n} 日本"}))
    writer.close()
    return max((stage / shard).glob("*.seg"), key=lambda path: path.stat().st_mtime_ns)


def found(stage: Path, shard: str, calls: range) -> list[int]:
    index = ShardIndex(stage, shard)
    numbers = [n for n in calls if index.get(call(n)) == {"text": f"answer {n} 日本"}]
    index.close()
    return numbers


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    write(tmp_path, "0000-1023", 1, {1: 5, 2: 900, 3: SHARED_BUCKET})
    assert found(tmp_path, "0000-1023", range(5)) == [1, 2, 3]


@pytest.mark.parametrize(
    ("shard", "expected"),
    [("0000-1023", [1, 2, 3, 4]), ("0000-0511", [1, 2, 4]), ("0512-1023", [3, 4]), ("0100-0100", [2, 4]), ("shared", [4])],
)
def test_another_shard_count_loses_no_answer(tmp_path: Path, shard: str, expected: list[int]) -> None:
    write(tmp_path, "0000-0511", 1, {1: 5, 2: 100})
    write(tmp_path, "0512-1023", 1, {3: 1023})
    write(tmp_path, "shared", 1, {4: SHARED_BUCKET})
    if shard not in ("shared",):
        expected = [n for n in expected if n != 4]  # shared answers lie in a shard of their own
    assert found(tmp_path, shard, range(6)) == expected


def test_a_torn_last_record_costs_that_record_only(tmp_path: Path) -> None:
    path = write(tmp_path, "0000-1023", 1, {1: 5, 2: 5, 3: 5})
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 3)
    index = ShardIndex(tmp_path, "0000-1023")
    assert [n for n in range(5) if index.get(call(n))] == [1, 2]
    assert len(index.faults) == 1
    assert "0000-1023/1.seg: torn record" in index.faults[0]


@pytest.mark.parametrize("where", ["magic", "length", "bucket", "call id", "checksum", "payload"])
def test_a_corrupt_record_in_the_middle_is_told_and_reading_goes_on_after_it(tmp_path: Path, where: str) -> None:
    path = write(tmp_path, "0000-1023", 1, {1: 5, 2: 5, 3: 5})
    data = bytearray(path.read_bytes())
    second = HEADER.size + len(pack(call(1), 5, {"text": "answer 1 日本"})) - HEADER.size
    data[second + {"magic": 0, "length": 5, "bucket": 8, "call id": 20, "checksum": 43, "payload": HEADER.size + 3}[where]] ^= 0xFF
    path.write_bytes(data)
    index = ShardIndex(tmp_path, "0000-1023")
    assert [n for n in range(5) if index.get(call(n))] == [1, 3]
    assert f"corrupt record at byte {second}" in index.faults[0]


def test_a_payload_that_holds_the_magic_is_no_record(tmp_path: Path) -> None:
    faults: list[str] = []
    record = pack(call(1), 5, {"text": "x"})
    data = b"\xabRG1 rubbish" + record + b"\xabRG1"
    assert [scanned.call_id.hex() for scanned in scan(data, faults, where="a.seg")] == [call(1)]
    assert len(faults) == 2


def test_two_writers_of_one_attempt_never_share_a_file(tmp_path: Path) -> None:
    write(tmp_path, "0000-1023", 2, {1: 5})
    write(tmp_path, "0000-1023", 2, {2: 5})
    write(tmp_path, "0000-1023", 10, {3: 5})
    assert sorted(path.name for path in (tmp_path / "0000-1023").iterdir()) == ["10.seg", "2.1.seg", "2.seg"]
    assert found(tmp_path, "0000-1023", range(5)) == [1, 2, 3]


def test_of_two_records_of_one_call_the_first_attempt_stands(tmp_path: Path) -> None:
    for attempt in (10, 2):
        writer = SegmentWriter(tmp_path / "0000-1023", attempt)
        writer.append(pack(call(1), 5, {"attempt": attempt}))
        writer.close()
    assert ShardIndex(tmp_path, "0000-1023").get(call(1)) == {"attempt": 2}


def test_nothing_is_made_on_disk_before_the_first_answer(tmp_path: Path) -> None:
    SegmentWriter(tmp_path / "0000-1023", 1).close()
    assert list(tmp_path.iterdir()) == []
    assert list(ShardIndex(tmp_path / "no such stage", "0000-1023").calls()) == []


def test_whether_anything_is_recorded_is_told_by_range(tmp_path: Path) -> None:
    write(tmp_path / "2017-10-30" / "v2" / "intents", "0000-0511", 1, {1: 5})
    asked = {"ds": "2017-10-30", "method": "v2", "stage": "intents"}
    assert has_answers(tmp_path, **asked, shard="0000-1023")
    assert not has_answers(tmp_path, **asked, shard="0512-1023")
    assert not has_answers(tmp_path, **{**asked, "ds": "2017-10-31"}, shard="0000-1023")


def test_a_full_disk_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(file: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", no_room)
    writer = SegmentWriter(tmp_path / "0000-1023", 1)
    writer.append(pack(call(1), 5, {}))
    with pytest.raises(UsageError, match="No space left on device"):
        writer.flush()


def test_case_010_memory_is_an_index_entry_per_record_of_the_shard_and_no_payload(tmp_path: Path) -> None:
    write(tmp_path, "0000-1023", 1, {n: n % 1024 for n in range(2048)})
    index = ShardIndex(tmp_path, "0000-0003")
    assert (index.record_count, len(list(index.calls()))) == (8, 8)  # two of each of four buckets, though the segment holds 2048
    kept = len(index.keys) + sum(column.itemsize * len(column) for column in index.places) + index.order.nbytes + index.prefixes.nbytes
    assert kept <= 8 * 70


@pytest.mark.parametrize("name", ["0-1023", "all", "0000-1023 "])
def test_a_shard_name_is_a_range_or_shared(name: str) -> None:
    with pytest.raises(UsageError, match="expected a range"):
        shard_range(name)
    with pytest.raises(UsageError, match="expected 0 <= first"):
        shard_name(5, 1024)
