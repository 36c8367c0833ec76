"""`recgpt verify`: what it says, and its exit code: 0 clean, 1 differences, 2 could not run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from recgpt_ops.cli import run
from tests.unit.verification.damage import files_of
from tests.unit.verification.nights import DS, SECOND

pytestmark = pytest.mark.slow  # a warehouse is made, and verified in each test


def told(capsys, *arguments: str) -> tuple[int, list[str], str]:
    """Exit code, lines of stdout, and stderr."""
    code = run(["verify", *arguments])
    captured = capsys.readouterr()
    return code, captured.out.splitlines(), captured.err


@pytest.mark.parametrize("arguments", [(), ("--ds", DS)])
def test_a_clean_warehouse_ends_with_0_and_one_line(capsys, sound, arguments):
    code, [line], err = told(capsys, "--warehouse", sound.root, *arguments)
    assert (code, err) == (0, "")
    assert line.startswith("verify: ")
    assert line.endswith(": 0 differences, 0 not verifiable")


def test_differences_end_with_1_and_a_line_each(capsys, damaged):
    file = Path(files_of(damaged, "intent_tags", publish_id=SECOND)[0].path)
    file.unlink()
    code, [*lines, summary], err = told(capsys, "--warehouse", damaged.root)
    assert (code, err) == (1, "")
    assert any(f"intent_tags, file ds={DS}/publish_id={SECOND}/{file.name}: expected a Parquet file, got none" in line for line in lines)
    assert summary.endswith(f": {len(lines)} differences, 0 not verifiable")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--ds", "2017-11-05"), "there is no night of 2017-11-05; there are 2017-10-29, 2017-10-30"),
        (("--ds", "yesterday"), "--ds: expected a date such as 2017-10-30, got 'yesterday'"),
        (("--until", DS), "No such option"),
    ],
)
def test_what_cannot_be_verified_at_all_ends_with_2_and_says_why(capsys, sound, arguments, expected):
    code, lines, err = told(capsys, "--warehouse", sound.root, *arguments)
    assert (code, lines) == (2, [])
    assert expected in err


def test_a_warehouse_that_is_none_ends_with_2(capsys, tmp_path):
    code, lines, err = told(capsys, "--warehouse", str(tmp_path / "nowhere"))
    assert (code, lines) == (2, [])
    assert "does not exist; run `recgpt import`" in err


def test_a_ledger_past_its_retention_is_not_verifiable_which_is_no_difference_and_not_clean(capsys, damaged, monkeypatch):
    monkeypatch.setenv("RECGPT_LEDGER__KEEP_DAYS", "0")
    code, [*lines, summary], _ = told(capsys, "--warehouse", damaged.root)
    assert code == 0
    assert lines
    assert all(line.startswith("not verifiable: ledger, ") and "older than ledger.keep_days, 0 days" in line for line in lines)
    assert summary.endswith(f": 0 differences, {len(lines)} not verifiable")


def test_a_ledger_that_is_gone_is_not_verifiable(capsys, damaged):
    shutil.rmtree(Path(damaged.root) / "_ledger")
    code, [*lines, summary], _ = told(capsys, "--warehouse", damaged.root)
    assert code == 0
    assert lines
    assert all(line.startswith("not verifiable: ledger, ") and "there is no ledger of its" in line for line in lines)
    assert summary.endswith(f"{len(lines)} not verifiable")
