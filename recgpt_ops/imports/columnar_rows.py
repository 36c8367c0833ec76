"""Parquet and Delta as plain text: every value in the spelling that a CSV export would have, bytes that are no UTF-8 as \\xNN.

    user_id binary [b'u1', b'\\xff']   price double [2.5, NaN]   ->   ['u1', '\\xff'] (row 2 is broken)   ['2.5', 'nan']

Engines stop at the first string that is no UTF-8, and take the whole file with it. Here columns are read as bytes, so that such
a string costs its row only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from recgpt_ops.errors import UsageError

Array = Any  # pyarrow's annotations know no "array of any kind of text"
compute: Any = pyarrow.compute  # nor do they allow the mixes of arrays and scalars that its functions take
BATCH_ROWS = 50_000
BROKEN = "\\xNN"
OUT_OF_RANGE = '"out of range"'  # a time in a list or struct that Python has no word for
DAMAGED = (pa.ArrowInvalid, OSError)


def parquet_columns(path: Path, name: str) -> list[str]:
    """The columns of a Parquet file, in file order."""
    try:
        return list(pq.read_schema(path).names)
    except DAMAGED as error:
        raise damaged_parquet(name, error) from error


def parquet_batches(path: Path, name: str) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet file in file order."""
    try:
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(batch_size=BATCH_ROWS)
    except DAMAGED as error:
        raise damaged_parquet(name, error) from error


def damaged_parquet(name: str, error: BaseException) -> UsageError:
    """The error for a Parquet file that is cut off or none at all."""
    first = str(error).splitlines()[0] if str(error) else type(error).__name__
    return UsageError(f"{name}: cannot be read as Parquet ({first}); nothing was imported; fetch the file again")


def open_delta(path: Path) -> DeltaTable:
    """A Delta table's newest version; UsageError in one line when it cannot be opened."""
    try:
        return DeltaTable(str(path))
    except (DeltaError, OSError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise UsageError(f"{path}: cannot be opened as a Delta table ({first}); check the path") from error


def delta_columns(path: Path) -> list[str]:
    """The columns of a Delta table, partition columns among them."""
    return [field.name for field in open_delta(path).schema().fields]


def delta_batches(path: Path) -> Iterator[pa.RecordBatch]:
    """The rows of a Delta table, its files in name order so that row numbers mean something."""
    table = open_delta(path)
    columns = [field.name for field in table.schema().fields]
    try:
        data = table.to_pyarrow_dataset()
    except DeltaError:  # a table with deletion vectors or the like: delta-rs' own reader knows it, but stops at broken UTF-8
        for batch in pa.RecordBatchReader.from_stream(table.scan()):
            yield batch.select(columns)
        return
    for fragment in sorted(data.get_fragments(), key=lambda fragment: str(fragment.path)):
        try:
            yield from (
                batch for batch in fragment.to_batches(schema=data.schema, columns=columns, batch_size=BATCH_ROWS) if batch.num_rows
            )
        except DAMAGED as error:
            name = fragment.path
            raise UsageError(f"{path}: its file {name} is missing or damaged; nothing was imported; restore the table") from error


def delta_digest(path: Path) -> str:
    """Digest of a Delta table's active files. A data file never changes, so its name and size stand for its contents."""
    actions = pa.table(open_delta(path).get_add_actions(flatten=True))
    files = sorted(zip(actions["path"].to_pylist(), actions["size_bytes"].to_pylist(), strict=True))
    return hashlib.sha256(json.dumps(files).encode()).hexdigest()


def as_text_column(column: Array) -> tuple[Array, Array | None, bool]:
    """A column as text; which of its values are no UTF-8 (None: all are); and whether it held text rather than numbers or times.

    Times with a zone are told in UTC, so that they stay the same instant.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return (*decode(column.cast(pa.binary())), True)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return (*decode(column.cast(pa.binary())), True)
    if pa.types.is_nested(kind):
        texts = [plain(value) for value in column]
        return pa.array(texts, pa.string()), pa.array([text == BROKEN for text in texts]), True
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        column = column.cast(pa.timestamp(kind.unit, "UTC"))
    return compute.cast(column, pa.string()), None, False


def decode(column: Array) -> tuple[Array, Array | None]:
    """Bytes as text, and which values are no UTF-8."""
    try:
        return column.cast(pa.string()), None  # checks the bytes
    except pa.ArrowInvalid:
        pass
    texts, broken = [], []
    for value in column.to_pylist():
        try:
            texts.append(None if value is None else value.decode())
            broken.append(False)
        except UnicodeDecodeError:
            texts.append(value.decode(errors="backslashreplace"))
            broken.append(True)
    return pa.array(texts, pa.string()), pa.array(broken)


def plain(value: Any) -> str | None:
    """A list or struct as JSON; BROKEN when a text in it is no UTF-8, OUT_OF_RANGE when a time in it is beyond Python's years."""
    try:
        inner = value.as_py()
    except UnicodeDecodeError:
        return BROKEN
    except (OverflowError, ValueError):
        return OUT_OF_RANGE
    return None if inner is None else json.dumps(inner, ensure_ascii=False, default=str)
