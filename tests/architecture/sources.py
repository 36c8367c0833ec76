"""Reading our own source: files, and what each imports anywhere in it, inside functions too."""

from __future__ import annotations

import ast
from pathlib import Path

from recgpt_ops.tables import ROOT

CODE = ("recgpt_ops", "jobs", "dags")


def source_files(*folders: str) -> list[Path]:
    """Every Python file of these folders."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def imported_packages(path: Path) -> set[str]:
    """First part of every import's name: `ray.job_submission` -> ray."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module.split(".")[0])
    return names
