"""The made-up nights, written once, and the report of the second of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from recgpt_ops.delta import checks
from recgpt_ops.delta.warehouse import Warehouse, open_warehouse
from recgpt_ops.report.site import Report, write_report
from tests.unit.report.nights import DS, fill


@pytest.fixture(scope="session")
def nights(tmp_path_factory) -> Iterator[Warehouse]:
    """The warehouse of `tests.unit.report.nights`; tests only read it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "run_checks", lambda *_: [])
        warehouse = open_warehouse(str(tmp_path_factory.mktemp("nights")), create=True)
        fill(warehouse)
    return warehouse


@pytest.fixture(scope="session")
def report(nights, tmp_path_factory) -> Report:
    return write_report(nights, ds=DS, scenario="default", folder=tmp_path_factory.mktemp("reports"), most_users=1000)


@pytest.fixture(scope="session")
def page(report):
    """page("886"): the text of a user's page; page(None) that of the index."""
    from recgpt_ops.report.people import page_name

    def read(user_id: str | None) -> str:
        folder: Path = report.index.parent
        return (report.index if user_id is None else folder / "users" / page_name(user_id)).read_text(encoding="utf-8")

    return read
