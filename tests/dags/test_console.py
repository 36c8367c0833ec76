from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from dags.common.console import console_environment
from recgpt_ops.tables import ROOT

HOME = Path("/data/shop/_airflow/console")


def test_airflow_listens_on_this_machine_alone_and_on_no_default_port():
    environment = console_environment(HOME, warehouse="/data/shop", port=8506)
    assert environment["AIRFLOW__API__HOST"] == "127.0.0.1"
    assert (environment["AIRFLOW__API__PORT"], environment["AIRFLOW__API__BASE_URL"]) == ("8506", "http://127.0.0.1:8506")
    logs = {environment[f"AIRFLOW__LOGGING__{name}_LOG_SERVER_PORT"] for name in ("WORKER", "TRIGGER")}
    assert len(logs) == 2
    assert not logs & {"8793", "8794"}


def test_airflow_keeps_its_files_apart_from_those_of_a_night_and_shares_the_lineage():
    environment = console_environment(HOME, warehouse="/data/shop", port=8506)
    assert environment["AIRFLOW_HOME"] == str(HOME)
    assert environment["RECGPT_WAREHOUSE"] == "/data/shop"
    assert '"/data/shop/_airflow/lineage.jsonl"' in environment["AIRFLOW__OPENLINEAGE__TRANSPORT"]


def test_its_command_line_works_after_sourcing_one_file(tmp_path):
    """`airflow` itself is replaced by a module that shows what it was given."""
    (tmp_path / "airflow.py").write_text("import os, sys; print(sys.argv[1:], os.environ['AIRFLOW_HOME'])")
    home = tmp_path / "a home"
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from dags.common import console; console.ROOT = sys.argv.pop(1); console.main()",
         str(tmp_path), "--warehouse", str(tmp_path), "--home", str(home), "--port", "8506"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split(maxsplit=1) == ["['standalone']", f"{home}\n"]
    sourced = subprocess.run(
        ["bash", "-c", f'source "{home}/environment.sh"; echo "$AIRFLOW_HOME"'], capture_output=True, text=True, check=True, env=os.environ
    )
    assert sourced.stdout == f"{home}\n"
