"""The Spark that transform tests run on: Sail by default, JVM Spark Connect with RECGPT_SPARK=jvm."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

IS_JVM = os.environ.get("RECGPT_SPARK") == "jvm"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for all tests; each test makes its own small frames."""
    if IS_JVM:
        session = jvm_session()
        yield session
        session.stop()  # ends the server, which would outlive the tests
    else:
        from recgpt_ops.settings import load_settings
        from recgpt_ops.spark import spark_session

        yield spark_session(load_settings({}).spark)


def jvm_session() -> SparkSession:
    """A Connect server on this machine's Java, without Delta's jars; skipped where there is no Java, unless it is required."""
    from recgpt_ops.spark import with_fixed_conf

    if shutil.which("java") is None:
        reason = "RECGPT_SPARK=jvm needs Java 17 on the PATH"
        if os.environ.get("RECGPT_REQUIRE_JVM") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return with_fixed_conf(SparkSession.builder.remote("local[2]").getOrCreate(), shuffle_partitions=2)
