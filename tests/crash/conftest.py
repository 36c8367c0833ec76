"""One prepared process and one unkilled night for all tests here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.matrix import Unkilled, prepared, unkilled_night


@pytest.fixture(scope="session")
def scratch() -> Iterator[Path]:
    """See `prepared`."""
    with prepared() as folder:
        yield folder


@pytest.fixture(scope="session")
def unkilled(scratch: Path) -> Unkilled:
    """The night that the others are compared with."""
    return unkilled_night(scratch)
