"""The small warehouse, made once; tests damage copies of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from recgpt_ops.delta import checks
from recgpt_ops.delta.warehouse import Warehouse
from tests.unit.verification.nights import copy_of, fill


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """The warehouse of `nights`; tests only read it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "run_checks", lambda *_: [])
        return fill(tmp_path_factory.mktemp("sound") / "warehouse")


@pytest.fixture
def damaged(sound: Warehouse, tmp_path: Path) -> Warehouse:
    """A copy of it, for one test."""
    return copy_of(sound, tmp_path)
