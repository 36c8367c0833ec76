"""The one way to a Spark session: Spark Connect, to an embedded server or to an address.

    engine: sail      an in-process Spark Connect server without a JVM, started once per process (the default)
    engine: connect   a Connect server of a cluster, at `remote` (sc://host:15002)
    engine: classic   the session of the driver that spark-submit started, with its master and its jars

Everything else uses the DataFrame API alone, so the same code runs on all. What of it we use stands in
infra/docs/adr/0004-the-spark-we-use.md. On the embedded server nothing is written to Delta by Spark's own writer (ADR 0007).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache, partial

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from recgpt_ops.errors import ConfigError, NightError
from recgpt_ops.settings import Spark


def spark_session(settings: Spark) -> SparkSession:
    """The session of this process. Its time zone is UTC, whatever the machine's is."""
    if settings.engine == "connect" and not settings.remote:
        raise ConfigError("spark", ["spark.engine is 'connect', but spark.remote is empty; set it to sc://host:port"])
    if settings.engine == "sail" and settings.writer == "spark":
        raise ConfigError("spark", ["spark.writer is 'spark', but Sail ignores Delta's transactions and would commit twice; use delta_rs"])
    builder = SparkSession.builder
    if settings.engine != "classic":
        builder = builder.remote(settings.remote if settings.engine == "connect" and settings.remote else embedded_address())
    return with_fixed_conf(builder.getOrCreate(), shuffle_partitions=settings.shuffle_partitions)


def with_fixed_conf(session: SparkSession, *, shuffle_partitions: int) -> SparkSession:
    """What every session of ours is set to, so that results depend on no server's defaults."""
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.shuffle.partitions", str(shuffle_partitions))
    session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")  # INT96 is read back without a zone
    return session


@cache
def embedded_address() -> str:
    """Starts the embedded server, once per process, and says where it listens. It ends with the process."""
    os.environ.setdefault("RUST_LOG", "error")  # the server's own log would drown the job's summary line
    from pysail.spark import SparkConnectServer  # type: ignore[import-untyped]  # no stubs; here, so that a cluster needs no pysail

    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    _, port = server.listening_address
    KEPT_ALIVE.append(server)
    return f"sc://127.0.0.1:{port}"


KEPT_ALIVE: list[object] = []  # a server that is collected stops listening


def read_delta(session: SparkSession, path: str) -> DataFrame:
    """A Delta table as a DataFrame; partition filters on it are pruned before any file is opened."""
    return session.read.format("delta").load(path)


def frame_of(session: SparkSession, rows: pa.Table) -> DataFrame:
    """Rows in memory as a DataFrame; none at all too, which Spark cannot tell a schema from by itself."""
    if rows.num_rows:
        return session.createDataFrame(rows)
    return session.createDataFrame([], from_arrow_schema(rows.schema))


def own_append(settings: Spark, session: SparkSession) -> Callable[..., None] | None:
    """What `publish_files` takes as `append`: Spark's own writer of Delta where the settings name it, None for delta-rs."""
    return partial(delta_append, session) if settings.writer == "spark" else None


def delta_append(
    session: SparkSession, files: Sequence[str], table: str, *, schema: pa.Schema, partition_by: Sequence[str], file_count: int, app: str,
    version: int, metadata: str,
) -> None:  # fmt: skip
    """One commit by Delta's own writer. It does nothing, without a word, when the log holds a version of `app` that is not lower.

    A fault is told by Spark's name for it alone, because its text may hold rows.
    """
    try:
        rows = session.read.schema(from_arrow_schema(schema)).parquet(*files) if files else frame_of(session, schema.empty_table())
        writer = rows.coalesce(file_count).write.format("delta").mode("append").partitionBy(*partition_by)
        writer.options(txnAppId=app, txnVersion=str(version), userMetadata=metadata).save(table)
    except PySparkException as error:
        told = error.getCondition() or type(error).__name__
        raise NightError(f"{table}: Spark's own writer failed with {told}; look at its log, then run the stage again") from None
