"""One prepared process and one unkilled night for all tests here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.matrix import Unkilled, prepared, unkilled_night


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips these tests beside others: they fork, which threads of Delta and Arrow do not survive, and put stand-ins for Ray in place."""
    mine = [item for item in items if Path(__file__).parent in item.path.parents]
    if len(mine) < len(items):
        for item in mine:
            item.add_marker(pytest.mark.skip(reason="needs a process of its own: pytest tests/crash"))


@pytest.fixture(scope="session")
def scratch() -> Iterator[Path]:
    """See `prepared`."""
    with prepared() as folder:
        yield folder


@pytest.fixture(scope="session")
def unkilled(scratch: Path) -> Unkilled:
    """The night that the others are compared with."""
    return unkilled_night(scratch)
