"""A report is there whole or not at all, and the same tables make the same bytes."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from markupsafe import Markup

from recgpt_ops.cli import run
from recgpt_ops.delta import checks
from recgpt_ops.delta.warehouse import open_warehouse
from recgpt_ops.report import charts, site
from recgpt_ops.report.pages import index_page
from recgpt_ops.report.site import by_number, write_report
from tests.unit.report.nights import DS, fill


def digests(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def undrawn(monkeypatch):
    """Charts take most of the time and nothing here looks at them."""
    monkeypatch.setattr(charts, "draw", lambda *_: Markup("<svg></svg>"))


def test_run_twice_it_is_the_same_bytes(nights, report, tmp_path, capsys):
    assert run(["report", "--ds", DS, "--warehouse", nights.root, "--out", str(tmp_path)]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first == str(tmp_path / DS / "index.html")
    assert second.startswith("5 users, 6 files, 0.")
    assert digests(tmp_path / DS) == digests(report.index.parent)


def test_when_it_breaks_off_the_older_report_stays_whole(nights, undrawn, tmp_path, monkeypatch):
    write_report(nights, ds=DS, scenario="default", folder=tmp_path, most_users=2)
    before = digests(tmp_path / DS)
    monkeypatch.setattr(site, "index_page", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(nights, ds=DS, scenario="default", folder=tmp_path, most_users=5)
    assert digests(tmp_path / DS) == before
    monkeypatch.setattr(site, "index_page", index_page)
    made = write_report(nights, ds=DS, scenario="default", folder=tmp_path, most_users=5)
    assert (made.user_count, len(digests(tmp_path / DS))) == (5, 6)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f".{DS}.lock", DS]  # nothing half made is left


def test_of_many_users_the_first_by_hash_have_a_page_and_the_index_says_so(nights, undrawn, tmp_path):
    made = write_report(nights, ds=DS, scenario="default", folder=tmp_path, most_users=2)
    text = made.index.read_text(encoding="utf-8")
    smallest = sorted(["886", "1391", "zh-1", "hostile", "failed"], key=lambda user_id: hashlib.sha256(user_id.encode()).hexdigest())[:2]
    assert "2 of 5 users have a page: those with the smallest sha256 of their id." in text
    assert [user_id for user_id in ("886", "1391", "zh-1", "hostile", "failed") if f"<bdi>{user_id}</bdi>" in text] == [
        user_id for user_id in ("886", "1391", "zh-1", "hostile", "failed") if user_id in smallest
    ]


def test_without_users_there_is_the_night_alone(nights, undrawn, tmp_path):
    made = write_report(nights, ds=DS, scenario="default", folder=tmp_path, most_users=0)
    assert (made.user_count, made.file_count) == (0, 1)


def test_a_thousand_users_make_a_thousand_pages_and_an_index_below_a_megabyte(undrawn, tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "run_checks", lambda *_: [])
    warehouse = open_warehouse(str(tmp_path / "warehouse"), create=True)
    fill(warehouse, more_users=995)
    made = write_report(warehouse, ds=DS, scenario="default", folder=tmp_path / "reports", most_users=1000)
    assert (made.user_count, made.file_count) == (1000, 1001)
    assert made.index.stat().st_size < 1_000_000


def test_people_are_listed_by_number_then_by_name():
    assert sorted(["u1", "1391", "886", "٣", "02"], key=by_number) == ["02", "886", "1391", "u1", "٣"]
