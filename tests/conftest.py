"""The Spark that transform tests run on: Sail by default, a Connect server of JVM Spark with RECGPT_SPARK=jvm."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from recgpt_ops.settings import Spark, load_settings
from recgpt_ops.spark import spark_session
from tests.jvm_spark import connect_server, require_delta, require_java

IS_JVM = os.environ.get("RECGPT_SPARK") == "jvm"


@pytest.fixture(scope="session")
def spark_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spark]:
    """The settings that lead to the session of the tests."""
    settings = load_settings({}).spark
    if not IS_JVM:
        yield settings
        return
    require_java()
    with connect_server(tmp_path_factory.mktemp("connect")) as address:
        yield replace(settings, engine="connect", remote=address, shuffle_partitions=2)


@pytest.fixture(scope="session")
def spark(spark_settings: Spark) -> Iterator[SparkSession]:
    """One session for all tests; each test makes its own small frames."""
    session = spark_session(spark_settings)
    yield session
    if IS_JVM:
        session.stop()


@pytest.fixture(scope="session")
def delta_spark(spark_settings: Spark) -> None:
    """For tests whose Spark must read Delta: without its jars they are skipped on JVM Spark, or fail where it is required."""
    if IS_JVM:
        require_delta()
