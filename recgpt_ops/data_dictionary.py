"""The data dictionary, schemas/README.md, made from the contracts and the views.

python -m recgpt_ops.data_dictionary            writes it
python -m recgpt_ops.data_dictionary --check    exit code 1 when the file is not what the contracts say
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from recgpt_ops.errors import ConfigError
from recgpt_ops.tables import SCHEMAS, Check, Column, Contract, all_contracts
from recgpt_ops.views import View, all_views

README = SCHEMAS / "README.md"
KINDS = {
    "feed": "appended by imports, never changed; no `ds`, scenario or method",
    "state": "one generation per bucket, each night reads the newest that it may know",
    "night": "one generation per night; readers see what the pointer names",
    "record": "append-only lists that any job writes, visible at commit",
}
INTRODUCTION = """# Data dictionary

Made from the contracts in this folder and the views in [sql/views](../sql/README.md) by `make docs`; change these, never this page.
A table's folder in the warehouse is its name with version. Times are UTC, `ds` is the business date.
`key` is what no two rows share; columns marked *volatile* differ between equal runs and are left out of digests.
A check graded **fail** stops a publication, one graded *warn* is told in its summary.
"""


VIEWS_INTRODUCTION = """# Views

For analysts: SELECTs over what is visible, the same on DuckDB and Spark. A view that has a table's name holds that table's visible rows
with all their columns and more; the rows alone are called by name and version.
"""


def dictionary_text(contracts: Sequence[Contract], views: Sequence[View]) -> str:
    """The whole page."""
    parts = [INTRODUCTION, f"{len(contracts)} tables:\n"]
    for kind, meaning in KINDS.items():
        links = [f"[{contract.name}](#{contract.table_id})" for contract in contracts if contract.kind == kind]
        parts.append(f"- **{kind}**: {meaning}. {', '.join(links)}")
    links = [f"[{view.name}](#{view.name})" for view in views]
    parts.append(f"\n{len(views)} views for analysts: {', '.join(links)}")
    return "\n".join([*parts, "", *map(table_text, contracts), VIEWS_INTRODUCTION, *map(view_text, views)])


def table_text(contract: Contract) -> str:
    """One table's section."""
    facts = [
        f"- kind: {contract.kind}",
        f"- grain: {contract.grain}",
        f"- key: {code_list(contract.key)}",
        f"- partitioned by: {code_list(contract.partition_by)}",
        f"- retention: {contract.retention}",
        f"- made by: {contract.producer}",
        f"- read by: {', '.join(contract.readers)}",
    ]
    columns = ["| column | type | null | meaning |", "| --- | --- | --- | --- |"]
    columns += [column_text(contract, column) for column in contract.columns]
    checks = [f"- {check_text(check)}" for check in contract.checks]
    checked = ["", "Checks, beside key and nulls:", "", *checks] if checks else []
    return "\n".join([f"## {contract.table_id}", "", contract.description, "", *facts, "", *columns, *checked, ""])


def view_text(view: View) -> str:
    """One view's section."""
    columns = [f"| `{name}` | {meaning.replace('|', chr(92) + '|')}. |" for name, meaning in view.columns]
    head = [
        f"## {view.name}",
        "",
        view.description,
        "",
        f"- grain: {view.grain}",
        f"- defined in: [sql/views/{view.name}.sql](../sql/views/{view.name}.sql)",
    ]
    return "\n".join([*head, "", "| column | meaning |", "| --- | --- |", *columns, ""])


def column_text(contract: Contract, column: Column) -> str:
    """One row of a table's column list."""
    notes = [column.description]
    if column.unit:
        notes.append(f"Unit: {column.unit}.")
    if column.source:
        notes.append(f"Source: {column.source}.")
    if column.name in contract.volatile:
        notes.append("*volatile*")
    meaning = " ".join(note if note.endswith((".", "*")) else f"{note}." for note in notes).replace("|", "\\|")
    return f"| `{column.name}` | `{column.type}` | {'yes' if column.nullable else ''} | {meaning} |"


def check_text(check: Check) -> str:
    """`rank`: between, min 1 (**fail**)."""
    arguments = ", ".join(f"{name} {argument_text(value)}" for name, value in check.arguments.items())
    grade = "**fail**" if check.grade == "fail" else "*warn*"
    subject = f"{code_list(check.columns)}: " if check.columns else ""
    return f"{subject}{check.rule}{', ' if arguments else ''}{arguments} ({grade})"


def argument_text(value: object) -> str:
    """A list without brackets, a pattern as code."""
    return ", ".join(map(str, value)) if isinstance(value, list) else f"`{value}`"


def code_list(names: Sequence[str]) -> str:
    """`a`, `b`; or "nothing"."""
    return ", ".join(f"`{name}`" for name in names) or "nothing"


def main(arguments: Sequence[str]) -> int:
    """Writes or checks the page; returns the exit code."""
    text = dictionary_text(list(all_contracts().values()), list(all_views().values()))
    if "--check" not in arguments:
        README.write_text(text)
        return 0
    current = README.read_text() if README.is_file() else ""
    if current != text:
        sys.stderr.write(f"{ConfigError('schemas/README.md', ['is not what the contracts and views say; run `make docs`'])}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
