"""These tests are for JVM Spark alone."""

from __future__ import annotations

import pytest

from tests.conftest import IS_JVM


@pytest.fixture(autouse=True, scope="session")
def only_on_the_jvm() -> None:
    """Skips them in a run on the embedded server."""
    if not IS_JVM:
        pytest.skip("RECGPT_SPARK=jvm runs these, as `make test-jvm` does")
