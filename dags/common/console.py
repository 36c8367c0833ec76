"""Airflow with our DAGs on this machine: its configuration, then `airflow standalone` in this very process.

    python -m dags.common.console --warehouse /data/shop --home /data/shop/_airflow/console --port 8080

The command `recgpt airflow` starts it, waits until all of it answers, and stops it. Airflow's command line works on the same Airflow
after `source /data/shop/_airflow/console/environment.sh`.
"""

from __future__ import annotations

import argparse
import os
import shlex
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from dags.common.environment import airflow_environment
from recgpt_ops.tables import ROOT

HOST = "127.0.0.1"
ENVIRONMENT = "environment.sh"
PARALLEL_TASKS = 3  # memory: each may hold a Spark session of its own


def console_environment(home: Path, *, warehouse: str, port: int) -> dict[str, str]:
    """What Airflow and our tasks must find in the environment. No port is a default, since another Airflow may have those."""
    worker_port, trigger_port = free_ports(2)
    return {
        **airflow_environment(home, lineage=home.parent),
        "AIRFLOW__CORE__PARALLELISM": str(PARALLEL_TASKS),
        "AIRFLOW__API__HOST": HOST,
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": f"http://{HOST}:{port}",  # also where tasks report to
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "300",  # parsing takes a core for seconds, and no file changes
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(worker_port),
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(trigger_port),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",  # Airflow starts its parts by name
        "PYTHONPATH": str(ROOT),
        "RECGPT_WAREHOUSE": warehouse,
    }


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind((HOST, 0))
    ports: list[int] = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def main(argv: Sequence[str] | None = None) -> None:
    """Writes the environment down and becomes `airflow standalone`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--warehouse", required=True)
    parser.add_argument("--home", required=True, type=Path)
    parser.add_argument("--port", required=True, type=int)
    arguments = parser.parse_args(argv)
    environment = console_environment(arguments.home, warehouse=arguments.warehouse, port=arguments.port)
    arguments.home.mkdir(parents=True, exist_ok=True)
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in environment.items())
    (arguments.home / ENVIRONMENT).write_text(exports)
    os.execve(sys.executable, [sys.executable, "-m", "airflow", "standalone"], {**os.environ, **environment})


if __name__ == "__main__":
    main()
