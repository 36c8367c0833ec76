"""Real JVM Spark for tests, out of the pyspark wheel: a Connect server, a standalone master with a worker, spark-submit.

Delta's jars come from the folder RECGPT_SPARK_JARS, else ../shared/spark_jars if there is one, else with RECGPT_SPARK_PACKAGES=1 from
Maven; else there are none and whatever needs Delta says why it is skipped. With RECGPT_REQUIRE_JVM=1 nothing is skipped, it fails.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

from recgpt_ops.llm.cluster import free_ports
from recgpt_ops.tables import ROOT

SPARK_HOME = Path(pyspark.__file__).parent
DELTA_PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"
START_SECONDS = 120
CONF = {
    "spark.ui.enabled": "false",
    "spark.log.level": "WARN",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",  # 50 by default: seconds for every small commit
    "spark.databricks.delta.writeChecksumFile.enabled": "false",  # it holds statistics of every file, and no reader needs it
}


def delta_options() -> list[str]:
    """The options by which spark-submit gets Delta; [] when there is no way to."""
    named = os.environ.get("RECGPT_SPARK_JARS")
    folder = Path(named) if named else ROOT.parent / "shared" / "spark_jars"
    if jars := sorted(map(str, folder.glob("*.jar"))):
        return ["--jars", ",".join(jars)]
    return ["--packages", DELTA_PACKAGE] if os.environ.get("RECGPT_SPARK_PACKAGES") == "1" else []


def require_java() -> None:
    """Skips or fails where there is no Java."""
    if shutil.which("java") is None:
        give_up("JVM Spark needs Java 17 or later on the PATH")


def require_delta() -> None:
    """Skips or fails where there is no Java or no Delta for it."""
    require_java()
    if not delta_options():
        give_up("no Delta for JVM Spark: name a folder of its jars in RECGPT_SPARK_JARS, or set RECGPT_SPARK_PACKAGES=1 to fetch them")


def give_up(reason: str) -> None:
    if os.environ.get("RECGPT_REQUIRE_JVM") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def environment(*, daemon_memory: str = "1g") -> dict[str, str]:
    """The variables of a Java process of Spark, with the Python of the tests in its workers. A Connect server is a daemon to it."""
    kept = {name: value for name, value in os.environ.items() if name not in {"SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"}}
    return kept | {
        "SPARK_HOME": str(SPARK_HOME),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": daemon_memory,
    }


def submit_command(master: str, *arguments: str) -> list[str]:
    """A call of spark-submit with the tests' settings and Delta where it is to be had."""
    conf = CONF if delta_options() else {name: value for name, value in CONF.items() if "delta" not in (name + value).lower()}
    options = [text for name, value in conf.items() for text in ("--conf", f"{name}={value}")]
    submit = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", master, "--driver-memory", "1g"]
    return [*submit, *delta_options(), *options, *arguments]


@contextmanager
def running(command: Sequence[str], folder: Path, *, name: str, port: int, memory: str) -> Iterator[None]:
    """A server in a process group of its own, from when it listens until the end."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.log").open("w") as log:
        server = subprocess.Popen(
            command, cwd=folder, env=environment(daemon_memory=memory), stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not listens(port):
            if server.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"{name} did not start: {(folder / f'{name}.log').read_text()[-2000:]}")
            time.sleep(0.2)
        yield
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def connect_server(folder: Path, *, master: str = "local[2]") -> Iterator[str]:
    """The address of a Spark Connect server."""
    (port,) = free_ports(1)
    command = submit_command(
        master, "--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--name", "tests",
        "--conf", f"spark.connect.grpc.binding.port={port}", "--conf", f"spark.sql.warehouse.dir={folder / 'hive'}", "spark-internal",
    )  # fmt: skip
    with running(command, folder, name="connect", port=port, memory="1g"):
        yield f"sc://127.0.0.1:{port}"


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[str]:
    """The address of a master that has one worker of two cores."""
    ports = free_ports(3)
    start = [str(SPARK_HOME / "bin" / "spark-class")]
    here = ["--host", "127.0.0.1"]
    address = f"spark://127.0.0.1:{ports[0]}"
    master = [*start, "org.apache.spark.deploy.master.Master", *here, "--port", str(ports[0]), "--webui-port", str(ports[1])]
    worker = [
        *start, "org.apache.spark.deploy.worker.Worker", *here, "--cores", "2", "--memory", "1g", "--webui-port", str(ports[2]),
        "--work-dir", str(folder / "work"), address,
    ]  # fmt: skip
    with ExitStack() as servers:
        servers.enter_context(running(master, folder, name="master", port=ports[0], memory="256m"))
        servers.enter_context(running(worker, folder, name="worker", port=ports[2], memory="256m"))
        yield address
