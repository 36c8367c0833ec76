"""One prepared process and one unkilled night for all tests here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.matrix import Unkilled, prepared, unkilled_night


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """These tests come first: they fork, and a process in which Delta or Arrow has worked holds threads that no fork takes along."""
    items.sort(key=lambda item: Path(__file__).parent not in item.path.parents)


@pytest.fixture(scope="session")
def scratch() -> Iterator[Path]:
    """See `prepared`."""
    with prepared() as folder:
        yield folder


@pytest.fixture(scope="session")
def unkilled(scratch: Path) -> Unkilled:
    """The night that the others are compared with."""
    return unkilled_night(scratch)
