"""CSV rows by themselves: whatever is wrong with one costs that one."""

from __future__ import annotations

import io

import pytest

from recgpt_ops.errors import UsageError
from recgpt_ops.imports import csv_rows
from recgpt_ops.imports.csv_rows import CsvRow, Lines, read_chunks, read_header


def rows_of(content: bytes) -> tuple[list[str], list[CsvRow]]:
    lines = Lines(io.BytesIO(content))
    header = read_header(lines, "shop.csv")
    return header, [CsvRow(*row) for chunk in read_chunks(lines, len(header)) for row in zip_rows(chunk)]


def zip_rows(chunk: csv_rows.CsvRows) -> list[tuple[int, list[str] | None, str, str | None, str | None]]:
    nothing = [None] * len(chunk.lines)
    return list(zip(chunk.lines, chunk.fields, chunk.raws, chunk.faults or nothing, chunk.details or nothing, strict=True))


def told(content: bytes) -> list[tuple[int, list[str] | str | None]]:
    return [(row.line, row.fault or row.fields) for row in rows_of(content)[1]]


def test_a_plain_file_gives_its_rows_with_their_line_numbers_and_raw_text() -> None:
    header, rows = rows_of(b"user,item\nu1,tea\nu2,milk\n")
    assert header == ["user", "item"]
    assert rows == [CsvRow(2, ["u1", "tea"], "u1,tea", None, None), CsvRow(3, ["u2", "milk"], "u2,milk", None, None)]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a,b\nu1,tea", [(2, ["u1", "tea"])]),  # no line end at the end of the file
        (b"\xef\xbb\xbfa,b\r\nu1,tea\r\nu2,milk\r\n", [(2, ["u1", "tea"]), (3, ["u2", "milk"])]),  # byte order mark, CRLF
        (b'a,b\nu1,"two\nlines"\nu2,milk\n', [(2, ["u1", "two\nlines"]), (4, ["u2", "milk"])]),
        (b'a,b\nu1,"two\r\nlines"\r\nu2,milk\r\n', [(2, ["u1", "two\r\nlines"]), (4, ["u2", "milk"])]),
        (b'a,b\nu1,"5"" pipe"\nu2,5" pipe\n', [(2, ["u1", '5" pipe']), (3, ["u2", '5" pipe'])]),
        (b"a,b\nu1\nu2,milk,3\nu3,tea\n", [(2, "wrong_column_count"), (3, "wrong_column_count"), (4, ["u3", "tea"])]),
        (b"a,b\nu1;tea\nu2,milk\n", [(2, "wrong_column_count"), (3, ["u2", "milk"])]),
        (b"a,b\nu1,\xff\nu2,milk\n", [(2, "broken_utf8"), (3, ["u2", "milk"])]),
        (b"a,b\nu1,\xed\xa0\x80\nu2,milk\n", [(2, "broken_utf8"), (3, ["u2", "milk"])]),  # a lone surrogate
        (b"a,b\nu1,te\x00a\nu2,milk\n", [(2, ["u1", "te\x00a"]), (3, ["u2", "milk"])]),  # NUL: told by the reading of values
        (b'a,b\nu1,"tea\nu2,milk\nu3,rice\n', [(2, "unclosed_quote"), (3, ["u2", "milk"]), (4, ["u3", "rice"])]),
        (b'a,b\nu1,tea\nu2,"milk\n', [(2, ["u1", "tea"]), (3, "unclosed_quote")]),  # at the very end
        (b'a,b\nu1,tea\nu2,"milk', [(2, ["u1", "tea"]), (3, "unclosed_quote")]),
        (b'a,b\nu1,"te"a\nu2,milk\n', [(2, "malformed_quotes"), (3, ["u2", "milk"])]),
        (b'a,b\nu1,"tea\nu2,"milk"\nu3,rice\n', [(2, "unclosed_quote"), (3, ["u2", "milk"]), (4, ["u3", "rice"])]),
        (b"a,b\n\nu1,tea\n\n", [(3, ["u1", "tea"])]),  # lines without any character are no rows
        (b"a,b\n", []),
        (b"a,b", []),
    ],
)
def test_what_is_wrong_with_one_row_costs_that_row(content: bytes, expected: list[tuple[int, list[str] | str]]) -> None:
    assert told(content) == expected


def test_bytes_that_are_no_utf8_stand_as_hex_in_the_raw_row() -> None:
    assert rows_of(b"a,b\nu1,caf\xe9\n")[1][0].raw == "u1,caf\\xe9"


def test_a_quote_that_is_never_closed_in_a_long_file_costs_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_rows, "MAX_RECORD_LINES", 10)
    content = b"a,b\n" + b'u0,"tea\n' + b"".join(b"u%d,tea\n" % number for number in range(1, 101))
    result = told(content)
    assert result[0] == (2, "unclosed_quote")
    assert result[1:] == [(number + 2, [f"u{number}", "tea"]) for number in range(1, 101)]


def test_a_record_that_spans_two_blocks_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_rows, "BLOCK_BYTES", 8)
    assert told(b'a,b\nu1,tea\nu2,"a long\nstory"\nu3,milk\n') == [(2, ["u1", "tea"]), (3, ["u2", "a long\nstory"]), (5, ["u3", "milk"])]


def test_a_line_beyond_the_limit_costs_that_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_rows, "MAX_LINE_BYTES", 64)
    monkeypatch.setattr(csv_rows, "BLOCK_BYTES", 16)
    assert told(b"a,b\nu1," + b"x" * 200 + b"\nu2,milk\n") == [(2, "row_too_long"), (3, ["u2", "milk"])]


def test_a_field_of_ten_megabytes_is_a_field() -> None:
    rows = rows_of(b"a,b\nu1," + b"x" * 10_000_000 + b"\nu2,milk\n")[1]
    assert [len(row.fields[1]) for row in rows if row.fields] == [10_000_000, 4]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected a header row, got an empty file"),
        (b"\n", "expected a header row, got an empty line"),
        ("a,b\n".encode("utf-16"), "got UTF-16"),
        (b"PK\x03\x04rest", "got a spreadsheet or zip file"),
        (b'a,"b\n', "the header row cannot be split"),
        ("a,b\n".encode("utf-16-le"), "got a NUL in the first line"),
        (b"\x1f\x8b\x08\r\n", "got gzip inside of gzip"),
        (b"BZh91AY", "got a bzip2 file"),
        (b"a,b\ru1,tea\ru2,milk\r", "got carriage returns alone; save it with line feeds"),
    ],
)
def test_a_file_without_a_header_is_told_in_one_line(content: bytes, message: str) -> None:
    with pytest.raises(UsageError, match=message) as told_error:
        rows_of(content)
    assert "\n" not in str(told_error.value)
