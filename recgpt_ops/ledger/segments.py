"""Segment files: recorded answers on disk, append-only, checked record by record.

    <ledger_root>/<ds>/<method>/<stage>/<shard>/<attempt>.seg        shard: "0000-1023" (a range of user_bucket) or "shared"

    record = magic 4 | payload length 4 | bucket 2 | call id 32 | xxh3 checksum 8 | payload (JSON)

A record is found again by its magic, so a torn or rotten one costs itself and no other. A range reads every segment whose
range overlaps its own and keeps the buckets that are its own, so another `shard_count` loses no answer. What stays in memory
is one small index entry per record of the shard; payloads are read when asked for (010).
"""

from __future__ import annotations

import json
import mmap
import os
import re
import struct
from array import array
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xxhash

from recgpt_ops.effects import effect
from recgpt_ops.errors import UsageError
from recgpt_ops.ids import BUCKET_COUNT

MAGIC = b"\xabRG1"
HEADER = struct.Struct("<4sIH32sQ")
CALL_ID_BYTES = 32
RELEASE_BYTES = 64 * 2**20  # whole pages
SHARED = "shared"
SHARED_BUCKET = 0xFFFF  # of a call that belongs to no user

Bytes = bytes | mmap.mmap  # a segment in memory, or one that is read where it lies


class Places(NamedTuple):
    """Where the payload of each record lies: in which segment, at which byte, how long."""

    segments: array[int]
    offsets: array[int]
    lengths: array[int]


class Record(NamedTuple):
    """One record while it is scanned."""

    call_id: bytes
    bucket: int
    offset: int
    payload: bytes


def shard_name(first: int, last: int) -> str:
    """The name of a range of user buckets, both ends inside.

    >>> shard_name(0, 1023)
    '0000-1023'
    """
    if not 0 <= first <= last < BUCKET_COUNT:
        raise UsageError(f"shard {first}-{last}: expected 0 <= first <= last < {BUCKET_COUNT}")
    return f"{first:04d}-{last:04d}"


def shard_names(count: int) -> list[str]:
    """The user buckets in `count` ranges that touch and do not overlap.

    >>> shard_names(2)
    ['0000-0511', '0512-1023']
    """
    count = max(1, min(count, BUCKET_COUNT))
    edges = [BUCKET_COUNT * index // count for index in range(count + 1)]
    return [shard_name(first, after - 1) for first, after in pairwise(edges)]


def shard_range(name: str) -> range:
    """The buckets of a shard; none of its own for `shared`.

    >>> shard_range("0512-1023")
    range(512, 1024)
    """
    if name == SHARED:
        return range(SHARED_BUCKET, SHARED_BUCKET + 1)
    match = re.fullmatch(r"(\d{4})-(\d{4})", name)
    if not match:
        raise UsageError(f"shard {name!r}: expected a range such as '0000-1023', or {SHARED!r}")
    return range(int(match[1]), int(match[2]) + 1)


def pack(call_id: str, bucket: int, payload: dict[str, Any]) -> bytes:
    """One record as bytes."""
    body = json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return HEADER.pack(MAGIC, len(body), bucket, bytes.fromhex(call_id), checksum(bytes.fromhex(call_id), bucket, body)) + body


def checksum(call_id: bytes, bucket: int, body: bytes) -> int:
    """Over everything that a reader relies on: key, bucket and payload."""
    digest = xxhash.xxh3_64(call_id + bucket.to_bytes(2, "little"))
    digest.update(body)
    return digest.intdigest()


def scan(data: Bytes, faults: list[str], *, where: str) -> Iterator[Record]:
    """The sound records of a segment's bytes, in order. What is not sound is told in `faults` with its place."""
    at = 0
    while at < len(data):
        record = record_at(data, at)
        if record is not None:
            yield record
            at = record.offset + len(record.payload)
            continue
        following = next_sound(data, at + 1)
        if following is None:
            faults.append(f"{where}: torn record at byte {at} of {len(data)}; that call is made again")
            return
        faults.append(f"{where}: corrupt record at byte {at}, reading goes on at byte {following}; what stood between is called again")
        at = following


def scan_file(path: Path, faults: list[str], *, where: str) -> Iterator[Record]:
    """`scan` of a file where it lies; what was read does not stay in memory."""
    if not path.stat().st_size:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        released = 0
        for record in scan(data, faults, where=where):
            yield record
            if record.offset - released > RELEASE_BYTES:
                data.madvise(mmap.MADV_DONTNEED, released, RELEASE_BYTES)
                released += RELEASE_BYTES


def record_at(data: Bytes, at: int) -> Record | None:
    """The record that starts at a byte, or None when there is no sound one."""
    if len(data) - at < HEADER.size:
        return None
    magic, length, bucket, call_id, expected = HEADER.unpack_from(data, at)
    start = at + HEADER.size
    if magic != MAGIC or start + length > len(data):
        return None
    body = data[start : start + length]
    return Record(call_id, bucket, start, body) if checksum(call_id, bucket, body) == expected else None


def next_sound(data: Bytes, at: int) -> int | None:
    """Where the next sound record starts, or None."""
    while (at := data.find(MAGIC, at)) >= 0:
        if record_at(data, at) is not None:
            return at
        at += 1
    return None


def attempt_order(path: Path) -> tuple[int, int]:
    """Sort key of `<attempt>.seg` and `<attempt>.<n>.seg`."""
    attempt, _, again = path.name.removesuffix(".seg").partition(".")
    return int(attempt), int(again or 0)


def segments_of(stage_dir: Path, shard: str) -> list[Path]:
    """Every segment that may hold records of the shard, older attempts first."""
    wanted = shard_range(shard)
    found = []
    for directory in sorted(stage_dir.iterdir()) if stage_dir.is_dir() else []:
        theirs = shard_range(directory.name)
        if theirs.start < wanted.stop and wanted.start < theirs.stop:
            found += list(directory.glob("*.seg"))
    return sorted(found, key=lambda path: (*attempt_order(path), path.parent.name))


def has_answers(ledger_root: Path, *, ds: str, method: str, stage: str, shard: str) -> bool:
    """Whether anything is recorded that a shard could read; nothing recorded means that calls are sure to come."""
    return bool(segments_of(Path(ledger_root) / ds / method / stage, shard))


class ShardIndex:
    """What a shard has recorded: call id -> where its payload lies. `faults` tells what could not be read.

    Some 70 bytes a record stay in memory, whatever the answers' length: five million records are a third of a GB.
    """

    def __init__(self, stage_dir: Path, shard: str) -> None:
        """Reads all segments once, one after the other."""
        self.faults: list[str] = []
        self.paths = segments_of(stage_dir, shard)
        self.files: dict[int, int] = {}
        keys, segments, offsets, lengths = bytearray(), array("I"), array("Q"), array("I")
        wanted = shard_range(shard)
        for segment, path in enumerate(self.paths):
            for record in scan_file(path, self.faults, where=f"{path.parent.name}/{path.name}"):
                if record.bucket in wanted or record.bucket == SHARED_BUCKET:
                    keys += record.call_id
                    segments.append(segment)
                    offsets.append(record.offset)
                    lengths.append(len(record.payload))
        self.places = Places(segments, offsets, lengths)
        self.keys = bytes(keys)
        # The first 8 bytes of an id find its records, the other 24 tell them from a stranger's; a stable order leaves the oldest first.
        prefixes = np.frombuffer(self.keys, ">u8")[::4].astype(np.uint64)
        self.order = np.argsort(prefixes, kind="stable").astype(np.uint32)
        self.prefixes = prefixes[self.order]

    @property
    def record_count(self) -> int:
        """How many records; of a call there may be more than one."""
        return len(self.order)

    def calls(self) -> Iterator[str]:
        """The id of each call, once, in the order in which they were first recorded."""
        for record in range(self.record_count):
            call_id = self.key(record).hex()
            if self.records(call_id)[0] == record:
                yield call_id

    def key(self, record: int) -> bytes:
        """The call id of a record."""
        return self.keys[CALL_ID_BYTES * record : CALL_ID_BYTES * (record + 1)]

    def records(self, call_id: str) -> list[int]:
        """The records of a call, oldest first."""
        key = bytes.fromhex(call_id)
        prefix = np.uint64(int.from_bytes(key[:8], "big"))
        first, after = np.searchsorted(self.prefixes, prefix, "left"), np.searchsorted(self.prefixes, prefix, "right")
        return [record for record in self.order[first:after].tolist() if self.key(record) == key]

    def find(self, call_id: str) -> tuple[int, dict[str, Any]] | None:
        """The record that stands for a call, and its payload; None when the call is not recorded.

        The first record of a call stands: what a later attempt read from it is what this one must read too. Only a refused answer gives
        way: to the first good one that came later, when a replay asked again, else to the last refusal.
        """
        found = None
        for record in self.records(call_id):
            payload = self.read(record)
            found = (record, payload)
            if payload.get("row", {}).get("status") in (None, "ok"):
                break
        return found

    def get(self, call_id: str) -> dict[str, Any] | None:
        """The payload of a call, or None when it is not recorded."""
        found = self.find(call_id)
        return None if found is None else found[1]

    def read(self, record: int) -> dict[str, Any]:
        """The payload of a record; its file is opened when it has to be."""
        segment = self.places.segments[record]
        if segment not in self.files:
            self.files[segment] = os.open(self.paths[segment], os.O_RDONLY)
        payload: dict[str, Any] = json.loads(os.pread(self.files[segment], self.places.lengths[record], self.places.offsets[record]))
        return payload

    def close(self) -> None:
        """Gives the files back."""
        for file in self.files.values():
            os.close(file)
        self.files.clear()


class SegmentWriter:
    """Appends records to this process's own file, which is made at the first flush.

    A file is never continued by another process: an attempt that is started again writes `<attempt>.1.seg` beside it, so a
    writer that was believed dead cannot tear another's records.
    """

    def __init__(self, directory: Path, attempt: int) -> None:
        """Nothing is made on disk yet."""
        self.directory, self.attempt = directory, attempt
        self.subject = "/".join(directory.parts[-3:-1])  # method and stage
        self.pending: list[bytes] = []
        self.file: int | None = None

    def append(self, record: bytes) -> None:
        """Holds a record until the next flush."""
        self.pending.append(record)

    def flush(self) -> None:
        """Writes what is held and waits for the disk. UsageError when there is no room."""
        if not self.pending:
            return
        data = b"".join(self.pending)
        try:
            if self.file is None:
                with effect("ledger.create", self.subject):
                    self.file = self.create()
            with effect("ledger.append", self.subject):
                written = 0
                while written < len(data):
                    written += os.write(self.file, data[written:])
                os.fsync(self.file)
        except OSError as error:
            raise UsageError(
                f"ledger {self.directory}: could not write {len(data)} bytes ({error.strerror}); make room, then run again"
            ) from error
        self.pending.clear()

    def create(self) -> int:
        """A file of our own: the first free name of this attempt."""
        self.directory.mkdir(parents=True, exist_ok=True)
        again = 0
        while True:
            path = self.directory / (f"{self.attempt}.{again}.seg" if again else f"{self.attempt}.seg")
            try:
                return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
            except FileExistsError:
                again += 1

    def close(self) -> None:
        """Flushes and closes."""
        try:
            self.flush()
        finally:
            if self.file is not None:
                os.close(self.file)
                self.file = None
