from __future__ import annotations

import pytest

from recgpt_ops.commands.import_memo import fingerprint, recall, remember
from recgpt_ops.delta.certificates import Certificate, record_certificates
from recgpt_ops.imports.report import ImportReport, TableReport

REPORT = ImportReport("shop", (TableReport("items", "i1", 10, 7, 1, {"no_text": 1}, {"bad_price": 1}, {"bad_price": "a.csv:3"}),), 2.0, 100)


def certify(warehouse) -> None:
    from datetime import UTC, datetime

    made = Certificate("items", "i1", "i1", None, 7, "k", "r", "i", 1, 1, 0, 0, None, "1", datetime.now(UTC))
    record_certificates(warehouse, [made])


def test_the_same_files_and_words_are_the_same_import(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("x")
    first = fingerprint(["shop"], [file])
    assert fingerprint(["shop"], [file]) == first
    assert fingerprint(["other"], [file]) != first
    file.write_text("y")
    assert fingerprint(["shop"], [file]) != first


def test_an_import_that_landed_is_recalled_with_every_row_already_there(warehouse):
    certify(warehouse)
    remember(warehouse, "f1", REPORT)
    [table] = recall(warehouse, "f1").tables
    assert (table.kept, table.already_there, table.counts_in) == (0, 8, 10)
    assert table.adds_up
    assert recall(warehouse, "f2") is None


def test_an_import_that_brought_nothing_new_is_recalled_too(warehouse):
    certify(warehouse)
    again = ImportReport("shop", (TableReport("items", "i2", 8, 0, 8),), 2.0, 100)
    remember(warehouse, "f1", again)
    assert recall(warehouse, "f1").tables == again.tables


def test_a_memo_without_its_certificate_counts_for_nothing(warehouse):
    remember(warehouse, "f1", REPORT)
    assert recall(warehouse, "f1") is None


@pytest.mark.parametrize("reason", ["future_time", "in_the_future"])
def test_an_import_with_rows_from_the_future_is_read_again(warehouse, reason):
    certify(warehouse)
    remember(warehouse, "f1", ImportReport("shop", (TableReport("items", "i1", 1, 0, 0, {}, {reason: 1}),), 1.0, 1))
    assert recall(warehouse, "f1") is None
