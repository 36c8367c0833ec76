"""Landing: somebody's CSV, Parquet or Delta becomes Parquet of plain text, with where each row stood and what was wrong with it.

    events.csv, line 7: 'u1,2017-10-30,\\xff'
    -> file=events.csv line=7 raw='u1,2017-10-30,\\xff' fault=broken_utf8 c0=null c1=null c2=null

Nothing is judged here but what must be known to hold a row as text at all: can it be decoded, can it be split. The columns are
called c0, c1, ... because the source's own names are somebody's text and never become part of a query.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import pyarrow as pa
import pyarrow.parquet as pq

from recgpt_ops.errors import UsageError
from recgpt_ops.imports.columnar_rows import (
    Array,
    as_text_column,
    compute,
    delta_batches,
    delta_columns,
    delta_digest,
    parquet_batches,
    parquet_columns,
)
from recgpt_ops.imports.csv_rows import CsvRows, Lines, read_chunks, read_header

BATCH_ROWS = 50_000
META: tuple[tuple[str, Any], ...] = (
    ("file", pa.string()),
    ("line", pa.int64()),
    ("raw", pa.string()),
    ("fault", pa.string()),
    ("detail", pa.string()),
)
DAMAGE = (EOFError, gzip.BadGzipFile, zlib.error)  # what a compressed file that was cut off raises
Say = Callable[[str], None]


class SourceFile(NamedTuple):
    """One file to land. `name` is what people are told; `kind` is csv, parquet or delta (then `path` is the table's folder)."""

    name: str
    path: Path
    kind: str


@dataclass(frozen=True)
class Landed:
    """What was landed. The source's i-th column stands in column c<i>; `text_columns` are those that held text, not numbers or times."""

    directory: Path
    columns: tuple[str, ...]
    text_columns: tuple[str, ...]
    row_count: int
    digest: str

    def column(self, name: str) -> str:
        """The landed name of a source column, such as c3."""
        return f"c{self.columns.index(name)}"


def find_files(path: Path) -> list[SourceFile]:
    """The files at a path, a file or a folder, in name order; UsageError in one line when there is nothing to read."""
    if not path.exists():
        raise UsageError(f"{path}: no such file or folder; check the path")
    if (path / "_delta_log").is_dir():
        return [SourceFile(told_name(path.name), path, "delta")]
    if path.is_file():
        return [SourceFile(told_name(path.name), path, file_kind(path))]
    below = sorted(path.rglob("*"))
    tables = {p.parent for p in below if p.name == "_delta_log" and p.is_dir()}  # their files may be removed rows: only the log knows
    files = [p for p in below if p.name.lower().endswith((".csv", ".csv.gz", ".parquet")) and (p.is_file() or p.is_symlink())]
    files = [p for p in files if not any(part[0] in "._" for part in p.relative_to(path).parts) and tables.isdisjoint(p.parents)]
    if not files and not tables:
        raise UsageError(f"{path}: expected a Delta table, or files that end in .csv, .csv.gz or .parquet, got none; check the path")
    kinds = [(p, "delta" if p in tables else file_kind(p)) for p in sorted([*files, *tables])]
    return [SourceFile(told_name(str(p.relative_to(path))), p, kind) for p, kind in kinds]


def told_name(name: str) -> str:
    """A file's name as text; bytes in it that are no UTF-8 stand as \\xNN."""
    return os.fsencode(name).decode(errors="backslashreplace")


def file_kind(path: Path) -> str:
    """`parquet` by its first bytes, else `csv`."""
    try:
        with path.open("rb") as stream:
            return "parquet" if stream.read(4) == b"PAR1" else "csv"
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}; mend its rights or name another file") from error


def source_columns(file: SourceFile) -> list[str]:
    """The names of a file's columns; a name that stands twice is told apart as `name#2`."""
    if file.kind == "csv":
        with file.path.open("rb") as compressed, decompressed(compressed) as stream:
            names = guarded(file, lambda: read_header(Lines(stream), file.name))
    else:
        names = delta_columns(file.path) if file.kind == "delta" else parquet_columns(file.path, file.name)
    seen: dict[str, int] = {}
    told = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        told.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return told


def decompressed(stream: BinaryIO) -> BinaryIO:
    """The bytes of a file, decompressed when they are gzip; buffered, because gzip's own reading of lines is slow."""
    is_gzip = stream.read(2) == b"\x1f\x8b"
    stream.seek(0)
    return cast(BinaryIO, io.BufferedReader(gzip.GzipFile(fileobj=stream), 1 << 20)) if is_gzip else stream


def guarded(file: SourceFile, read: Callable[[], list[str]]) -> list[str]:
    """Runs a read of a compressed file; damage is told in one line."""
    try:
        return read()
    except DAMAGE as error:
        raise damaged(file, 1, error) from error


def damaged(file: SourceFile, line: int, error: BaseException) -> UsageError:
    """The error for a compressed file that ends too early or was changed."""
    return UsageError(f"{file.name}: damaged after line {line:,} ({error}); nothing was imported; fetch the file again")


def content_digest(files: Sequence[SourceFile]) -> str:
    """sha256 over the contents of all files; their names do not count, their order does."""
    digest = hashlib.sha256()
    for file in files:
        if file.kind == "delta":
            digest.update(delta_digest(file.path).encode())
            continue
        with file.path.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def land(files: Sequence[SourceFile], *, directory: Path, say: Say) -> Landed:
    """Lands all files below `directory`. Columns are joined by name; a file that lacks one has nulls there."""
    headers = {file.name: source_columns(file) for file in files}
    columns = list(dict.fromkeys(name for header in headers.values() for name in header))
    schema = pa.schema([*META, *((f"c{i}", pa.string()) for i in range(len(columns)))])
    directory.mkdir(parents=True, exist_ok=True)
    text_columns: set[str] = set()
    row_count = 0
    with pq.ParquetWriter(directory / "part-00000.parquet", schema, compression="lz4") as writer:
        for file in files:
            header = headers[file.name]
            batches = csv_batches(file, header, say) if file.kind == "csv" else columnar_batches(file, header, text_columns)
            for batch in batches:
                by_name = dict(zip([name for name, _ in META] + header, batch, strict=True))
                nulls = pa.nulls(len(batch[0]), pa.string())
                writer.write_table(pa.table([by_name.get(n, nulls) for n in [name for name, _ in META] + columns], schema=schema))
                row_count += len(batch[0])
            if file.kind == "csv":
                text_columns.update(header)
    return Landed(directory, tuple(columns), tuple(c for c in columns if c in text_columns), row_count, content_digest(files))


def csv_batches(file: SourceFile, header: Sequence[str], say: Say) -> Iterator[list[Array]]:
    """The rows of a CSV file, as arrays in the order META, header."""
    size, done, started, told = file.path.stat().st_size, 0, time.monotonic(), time.monotonic()
    line = 1
    with file.path.open("rb") as compressed, decompressed(compressed) as stream:
        lines = Lines(stream)
        read_header(lines, file.name)
        chunks = read_chunks(lines, len(header))
        while True:
            try:
                chunk = next(chunks, None)
            except DAMAGE as error:
                raise damaged(file, line + 1, error) from error
            if chunk is None:
                return
            yield csv_arrays(file.name, chunk, len(header))
            line, done = chunk.lines[-1], done + len(chunk.lines)
            if time.monotonic() - told > 2:
                told = time.monotonic()
                share = min(max(compressed.tell() / max(size, 1), 1e-6), 1.0)
                say(f"{file.name}: {done:,} rows read, {share:.0%}, about {(told - started) * (1 - share) / share:.0f} s left")


def csv_arrays(name: str, rows: CsvRows, width: int) -> list[Array]:
    """Rows as arrays; an empty field means missing. A row that could not be split has nulls, its text stands in `raw`."""
    count, nothing = len(rows.lines), [""] * width
    fields = rows.fields if rows.faults is None else [row if row is not None else nothing for row in rows.fields]
    columns = [empty_as_null(pa.array(column, pa.string())) for column in zip(*fields, strict=True)]
    faults = [pa.nulls(count, pa.string()) if told is None else pa.array(told, pa.string()) for told in (rows.faults, rows.details)]
    return [pa.repeat(name, count), pa.array(rows.lines, pa.int64()), pa.array(rows.raws, pa.string()), *faults, *columns]


def empty_as_null(array: Array) -> Array:
    """The same texts, "" as null."""
    return compute.if_else(compute.equal(compute.binary_length(array), 0), pa.scalar(None, pa.string()), array)


def columnar_batches(file: SourceFile, header: Sequence[str], text_columns: set[str]) -> Iterator[list[Array]]:
    """The rows of a Parquet file or Delta table, as arrays in the order META, header; `line` counts rows from 1.

    `raw` stays null: the row is told from its columns if it has to be. Adds to `text_columns` what holds text.
    """
    batches: Iterable[pa.RecordBatch] = delta_batches(file.path) if file.kind == "delta" else parquet_batches(file.path, file.name)
    first = 1
    for batch in batches:
        count = batch.num_rows
        broken = pa.array([False] * count)
        arrays = []
        for name, column in zip(header, batch.columns, strict=True):
            text, bad, is_text = as_text_column(column)
            arrays.append(empty_as_null(text))
            if is_text:
                text_columns.add(name)
            if bad is not None:
                broken = compute.or_(broken, bad)
        none = pa.scalar(None, pa.string())
        yield [
            pa.array([file.name] * count, pa.string()),
            pa.array(range(first, first + count), pa.int64()),
            pa.nulls(count, pa.string()),
            compute.if_else(broken, "broken_utf8", none),
            compute.if_else(broken, "expected UTF-8; the bytes that are none stand as \\xNN", none),
            *arrays,
        ]
        first += count
