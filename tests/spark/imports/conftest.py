"""What the import tests share: a run of an import, and the tables it left."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from recgpt_ops.imports.report import ImportReport, TableReport
from recgpt_ops.imports.run import import_mapped, import_source
from recgpt_ops.settings import load_settings

OWN_SHOP = Path(__file__).parents[2] / "fixtures" / "own_shop"
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
RunMapped = Callable[..., TableReport]


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    return str(tmp_path / "warehouse")


@pytest.fixture
def run_mapped(warehouse: str, tmp_path: Path) -> RunMapped:
    """Imports a file by the sample's mapping of that table, or by one given as a dictionary."""

    def run(table: str, path: Path, *, mapping: object = None, arrived_ds: str | None = None, now: datetime = NOW) -> TableReport:
        file = OWN_SHOP / f"{table}.yaml"
        if mapping is not None:
            file = tmp_path / "mapping.yaml"
            file.write_text(yaml.safe_dump(mapping, allow_unicode=True))
        settings = load_settings({}, warehouse=warehouse)
        report = import_mapped(
            warehouse, table, mapping=file, path=path, arrived_ds=arrived_ds, settings=settings, say=lambda line: None, now=now
        )
        assert report.tables[0].adds_up
        return report.tables[0]

    return run


@pytest.fixture
def run_source(warehouse: str) -> Callable[[str, Path], ImportReport]:
    """Imports a known source from small files."""

    def run(source: str, path: Path) -> ImportReport:
        settings = load_settings({}, warehouse=warehouse)
        report = import_source(warehouse, source, path=path, arrived_ds=None, settings=settings, say=lambda line: None, now=NOW)
        assert all(table.adds_up for table in report.tables)
        return report

    return run
