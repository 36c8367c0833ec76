"""CSV as it comes, one broken row never costing another: bytes -> rows with line number, raw text and what was wrong.

    b'u1,"Tea\\n20 bags",2\\nu2,"Coffee,1\\nu3,Milk,1\\n'   ->   line 1: 3 fields (a line break inside quotes is fine)
                                                         line 3: unclosed_quote, line 4: 3 fields

Python's own csv module splits the fields; what it lacks is added here: bytes that are no UTF-8, a quote that is never closed and
would swallow the rows below it, rows with too few or too many fields, and lines of any length.
"""

from __future__ import annotations

import codecs
import csv
from collections import deque
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple

from recgpt_ops.errors import UsageError

MAX_RECORD_LINES = 1000  # a quoted field with more line breaks is taken for a quote that was never closed
MAX_LINE_BYTES = 32 << 20
BLOCK_BYTES = 4 << 20
FOREIGN_MARKS = {
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
    b"PK\x03\x04": "a spreadsheet or zip file",
    b"\x1f\x8b": "gzip inside of gzip",
    b"\x28\xb5\x2f\xfd": "a zstd file",
    b"BZh": "a bzip2 file",
    b"\xfd7zXZ": "an xz file",
    b"PAR1": "Parquet inside of gzip",
}


class CsvRow(NamedTuple):
    """One row. `fields` is None when it could not be split; `fault` is None for a whole row; bytes that are no UTF-8 are \\xNN in `raw`."""

    line: int
    fields: list[str] | None
    raw: str
    fault: str | None
    detail: str | None


class CsvRows(NamedTuple):
    """Many rows, column by column as in CsvRow. `faults` and `details` are None when all rows are good."""

    lines: Sequence[int]
    fields: Sequence[list[str] | None]
    raws: Sequence[str]
    faults: Sequence[str | None] | None
    details: Sequence[str | None] | None


class RunawayQuoteError(Exception):
    """The record being read has taken too many lines."""


class Lines:
    """Physical lines for csv.reader, which remembers those of the record being read and can be given them back."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.number = 0  # of the last line handed out
        self.taken: list[bytes] = []
        self.returned: deque[bytes] = deque()
        self.is_broken = self.is_too_long = False

    def __iter__(self) -> Lines:
        return self

    def __next__(self) -> str:
        if len(self.taken) >= MAX_RECORD_LINES:
            raise RunawayQuoteError
        line = self.returned.popleft() if self.returned else self.stream.readline(MAX_LINE_BYTES)
        if not line:
            raise StopIteration
        self.number += 1
        self.taken.append(line)
        if len(line) >= MAX_LINE_BYTES and not line.endswith(b"\n"):
            self.is_too_long = True
            while (rest := self.stream.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
                pass
        try:
            return line.decode()
        except UnicodeDecodeError:
            self.is_broken = True
            return line.decode(errors="surrogateescape")

    def begin(self) -> None:
        """A new record starts."""
        self.taken = []
        self.is_broken = self.is_too_long = False

    def give_back_all_but_first(self) -> None:
        """The record was a mistake: only its first line is spent."""
        self.returned.extendleft(reversed(self.taken[1:]))
        self.number -= len(self.taken) - 1
        self.taken = self.taken[:1]

    def raw(self) -> str:
        """The record as it came, without its line end."""
        return b"".join(self.taken).rstrip(b"\r\n").decode(errors="backslashreplace")


def read_header(lines: Lines, name: str) -> list[str]:
    """The names in the first line, trimmed and without a byte order mark; UsageError when there is none."""
    first = lines.stream.readline(MAX_LINE_BYTES)
    if not first.strip():
        raise UsageError(
            f"{name}: expected a header row, got {'an empty line' if first else 'an empty file'}; export it again with column names"
        )
    for mark, kind in FOREIGN_MARKS.items():
        if first.startswith(mark):
            raise UsageError(f"{name}: expected CSV in UTF-8, got {kind}; save it as CSV, UTF-8")
    if b"\0" in first:
        raise UsageError(f"{name}: expected CSV in UTF-8, got a NUL in the first line; save it as CSV, UTF-8")
    if b"\r" in first.rstrip(b"\r\n") and b'"' not in first:
        raise UsageError(f"{name}: expected lines that end in a line feed, got carriage returns alone; save it with line feeds")
    lines.returned.append(first.removeprefix(codecs.BOM_UTF8))
    try:
        header = next(csv.reader(lines, strict=True))
    except (csv.Error, RunawayQuoteError) as error:
        raise UsageError(f"{name}: the header row cannot be split ({error or 'a quote is not closed'}); mend its quotes") from error
    return [column.encode("utf-8", "surrogateescape").decode(errors="backslashreplace").strip() for column in header]


def read_chunks(lines: Lines, width: int) -> Iterator[CsvRows]:
    """All rows below the header, a few megabytes at a time. Lines without any character are no rows and left out.

    Most blocks hold one row a line and nothing odd, and are split at once; only others are gone through line by line.
    """
    csv.field_size_limit(1 << 30)
    while block := lines.stream.read(BLOCK_BYTES):
        if not block.endswith(b"\n"):
            block += lines.stream.readline(MAX_LINE_BYTES)
        plain = plain_rows(block, width, lines)
        if plain is not None:
            yield plain
        elif odd := list(odd_rows(block, width, lines)):
            yield CsvRows(*zip(*odd, strict=True))


def plain_rows(block: bytes, width: int, lines: Lines) -> CsvRows | None:
    """The rows of a block in which every line is one good row; else None, and nothing of the block is spent."""
    if len(block) > 2 * BLOCK_BYTES:
        return None
    try:
        texts = block.decode().replace("\r\n", "\n").removesuffix("\n").split("\n")
        rows = list(csv.reader(texts, strict=True))
    except (UnicodeDecodeError, csv.Error):
        return None
    if len(rows) != len(texts) or set(map(len, rows)) != {width}:
        return None
    first = lines.number + 1
    lines.number += len(texts)
    return CsvRows(range(first, first + len(texts)), rows, texts, None, None)


def odd_rows(block: bytes, width: int, lines: Lines) -> Iterator[CsvRow]:
    """The rows of a block, each by itself; the last may take lines from behind the block."""
    lines.returned.extend(line + b"\n" for line in block.removesuffix(b"\n").split(b"\n"))
    if not block.endswith(b"\n"):
        lines.returned.append(lines.returned.pop().removesuffix(b"\n"))
    reader = csv.reader(lines, strict=True)
    while lines.returned:
        lines.begin()
        fields, problem = None, None
        try:
            fields = next(reader)
        except (csv.Error, RunawayQuoteError) as error:
            problem = str(error) or f"the quote is still open {MAX_RECORD_LINES} lines below"
        if fields == []:
            continue
        if len(lines.taken) == 1 and fields is not None and len(fields) == width and not (lines.is_broken or lines.is_too_long):
            yield CsvRow(lines.number, fields, lines.raw(), None, None)
        else:
            yield odd_row(lines, fields, width, problem)


def odd_row(lines: Lines, fields: list[str] | None, width: int, problem: str | None) -> CsvRow:
    """A row that spans lines or has something wrong with it; the most basic fault is told."""
    unclosed = fields is None and (len(lines.taken) > 1 or "unexpected end" in (problem or ""))
    if unclosed or (len(lines.taken) > 1 and len(fields or []) != width):
        lines.give_back_all_but_first()
        lines.is_broken = has_broken_bytes(lines.taken[0])
        fields, problem, unclosed = None, problem or "the lines it would span do not make up one row", True
    line = lines.number - len(lines.taken) + 1
    fault, detail = None, None
    if lines.is_too_long:
        fault, detail = "row_too_long", f"expected at most {MAX_LINE_BYTES:,} bytes a line"
    elif lines.is_broken:
        fault, detail = "broken_utf8", "expected UTF-8; the bytes that are none stand as \\xNN"
    elif unclosed:
        fault, detail = "unclosed_quote", f"a quote is opened and not closed: {problem}"
    elif fields is None:
        fault, detail = "malformed_quotes", f"cannot be split into fields: {problem}"
    elif len(fields) != width:
        fault, detail = "wrong_column_count", f"expected {width} columns as in the header, got {len(fields)}"
    return CsvRow(line, None if fault else fields, lines.raw(), fault, detail)


def has_broken_bytes(line: bytes) -> bool:
    """Whether the bytes are no UTF-8."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return True
    return False
