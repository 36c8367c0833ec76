"""The guards are themselves counted: a rule that finds nothing to guard would pass for ever."""

from __future__ import annotations

import configparser
import re
import subprocess
import sys
from pathlib import Path

import pytest

from recgpt_ops.tables import ROOT
from tests.architecture.sources import CODE, imported_packages, source_files

ENGINES = frozenset({"pyspark", "ray", "vllm", "great_expectations", "sentence_transformers", "airflow"})
HEAVY = ("pyspark", "ray", "torch", "vllm", "pandas", "pyarrow", "deltalake", "great_expectations", "duckdb", "transformers")


def relative(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


def test_import_linter_holds_six_contracts():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    assert len([section for section in config.sections() if section.startswith("importlinter:contract:")]) == 6
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "Contracts: 6 kept, 0 broken." in done.stdout


def test_there_is_code_to_guard():
    assert len(source_files(*CODE)) > 100
    assert len(source_files("jobs")) > 10


def test_no_module_holds_two_engines():
    """torch is left out: vllm and sentence_transformers are made of it. DAG code submits to Ray by Ray's own client."""
    both = {str(path.relative_to(ROOT)): imported_packages(path) & ENGINES for path in source_files(*CODE)}
    assert {name: engines for name, engines in both.items() if len(engines) > 1} == {"dags/common/ray_jobs.py": {"airflow", "ray"}}


@pytest.mark.parametrize(
    ("package", "folders"),
    [
        ("airflow", ["dags"]),
        ("pyspark", ["recgpt_ops/contexts", "recgpt_ops/imports", "recgpt_ops/spark.py"]),
        ("pysail", ["recgpt_ops/spark.py"]),
        ("great_expectations", ["recgpt_ops/delta"]),
        ("vllm", ["recgpt_ops/llm"]),
        ("torch", ["recgpt_ops/llm"]),
        ("sentence_transformers", ["recgpt_ops/llm"]),
        ("ray", ["recgpt_ops/llm", "recgpt_ops/shards.py", "jobs/ray", "dags/common/ray_jobs.py"]),
    ],
)
def test_an_engine_lives_in_its_rooms(package, folders):
    users = relative([path for path in source_files(*CODE) if package in imported_packages(path)])
    assert users, f"nobody imports {package}: is it still needed?"
    assert [path for path in users if not any(path.startswith(folder) for folder in folders)] == []


def test_only_settings_read_recgpt_variables():
    reading = re.compile(r"""(environ(\.get\(|\[)|getenv\()\s*["']RECGPT""")
    readers = [path for path in source_files(*CODE) if reading.search(path.read_text())]
    assert relative(readers) in ([], ["recgpt_ops/settings.py"])


def test_dag_files_import_nothing_heavy():
    """In a clean interpreter, because this one has loaded everything already."""
    script = (
        "import importlib, sys, tempfile, os;"
        "os.environ['AIRFLOW_HOME'] = tempfile.mkdtemp();"
        "names = sys.argv[1].split(',');"
        "[importlib.import_module(name) for name in names];"
        "print(','.join(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in source_files("dags") if path.stem != "__init__"]
    assert {"dags.contexts_daily", "dags.intents_daily", "dags.common.submit", "dags.common.ray_jobs"} <= set(names)
    done = subprocess.run([sys.executable, "-c", script, ",".join(names)], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.strip().splitlines()[-1].split(","))
    assert "airflow" in loaded
    assert loaded & set(HEAVY) == set()


def test_a_finished_night_is_recognized_without_loading_an_engine():
    """`recgpt night` on a done night ends in seconds; what it imports for that is light."""
    script = (
        "import sys; import recgpt_ops.cli, recgpt_ops.commands.night, recgpt_ops.nights, recgpt_ops.delta.warehouse;"
        "print(','.join(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.strip().split(","))
    assert loaded & {"airflow", "ray", "torch", "vllm", "great_expectations", "pyspark", "transformers"} == set()
