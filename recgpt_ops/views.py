"""What people query, as SQL that DuckDB and Spark both run: the visible rows of every table, and the analysts' views in sql/views.

    feeds and records     whole
    state tables          the newest generation of each bucket
    night_users           the generation that the pointer names, of every night
    other night tables    the rows that a visible night_users names by (scenario, method, user_id, made_by), under that night's ds: a
                          user who was carried from an older night stands in both nights
    environment_signals   the generations that visible night_users of the same ds name
    explanations and      hold nothing of a user: the rows of the generation that a visible assignment names (explanation_made_by), under
    their verdicts        the ds of that assignment; a text that an older night wrote stands once in each night that shows it

A table is called by its name without version. Where sql/views has a file of that name, the file's view takes the name, and the table's
own rows are called by name and version, such as intent_tags_v1. Nothing here opens a table; `delta.sql` does for DuckDB, and
sql/README.md shows the few lines for Spark.
"""

from __future__ import annotations

import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

from recgpt_ops.errors import ConfigError
from recgpt_ops.tables import ROOT, Contract, all_contracts, load_contract

VIEWS = ROOT / "sql" / "views"
EXPLAINED = ("explanations", "explanation_verdicts")  # night tables without a user, seen through the assignments
GRAIN = re.compile(r"grain: (.+)")
COLUMNS_OF = re.compile(r"columns of (\w+)_v\d+, and")
COLUMN = re.compile(r"(\w+): (.+)")


class View(NamedTuple):
    """One file of sql/views. `columns` are (name, meaning) in the order of the SELECT."""

    name: str
    description: str
    grain: str
    columns: tuple[tuple[str, str], ...]
    select: str


class Relation(NamedTuple):
    """Something that a query may name, and the SELECT behind it."""

    name: str
    select: str


def parse_view(path: Path) -> View:
    """Reads one view: the comment at its head says what a row is and what each column means, the rest is its SELECT.

    -- What it shows.
    -- grain: one row per ds and user
    -- columns of intent_tags_v1, and           only where it widens a table
    -- users: How many users there are,
    --   and where a meaning goes on
    """
    lines = path.read_text().splitlines()
    length = next((number for number, line in enumerate(lines) if not line.startswith("--")), len(lines))
    description, grain = "", ""
    columns: list[tuple[str, str]] = []
    for line in (text.removeprefix("--").removeprefix(" ") for text in lines[:length]):
        if line.startswith("  ") and columns:
            name, meaning = columns.pop()
            columns.append((name, f"{meaning} {line.strip()}"))
        elif not grain and not (found := GRAIN.fullmatch(line)):
            description = f"{description} {line}".strip()
        elif not grain and found:
            grain = found[1]
        elif widened := COLUMNS_OF.fullmatch(line):
            columns += [(column.name, column.description) for column in load_contract(widened[1]).columns]
        elif told := COLUMN.fullmatch(line):
            columns.append((told[1], told[2]))
        else:
            raise ConfigError(f"sql/views/{path.name}", [f"expected `-- column: meaning`, got {line!r}"])
    if not (description and grain and columns):
        raise ConfigError(f"sql/views/{path.name}", ["expected a comment at its head: what it shows, `grain: ...`, then each column"])
    return View(path.stem, description, grain, tuple(columns), "\n".join(lines[length:]).strip().removesuffix(";"))


@cache
def all_views() -> dict[str, View]:
    """Every analysts' view by name, in file order."""
    return {path.stem: parse_view(path) for path in sorted(VIEWS.glob("*.sql"))}


def shown_name(contract: Contract) -> str:
    """How the visible rows of a table are called: `night_users`, or `intent_tags_v1` where a view took the short name."""
    return contract.table_id if contract.name in all_views() else contract.name


@cache
def all_relations(stored: str) -> tuple[Relation, ...]:
    """Everything that can be queried, each after what it reads.

    `stored` goes before the ids of the tables as they lie in the warehouse, all generations: `stored.` where they are tables of a
    schema, `stored_` where they are temporary views.
    """
    selects = {shown_name(contract): visible_select(contract, stored=stored) for contract in all_contracts().values()}
    selects.update({view.name: view.select for view in all_views().values()})
    reads = {name: sources(select) & selects.keys() for name, select in selects.items()}
    return tuple(Relation(name, selects[name]) for name in TopologicalSorter(reads).static_order())


def sources(select: str) -> set[str]:
    """The names that stand after FROM and JOIN, common table expressions among them."""
    code = re.sub(r"--[^\n]*", "", select)
    return set(re.findall(r"\b(?:FROM|JOIN)\s+(\w+)\b(?!\.)", code, flags=re.IGNORECASE))


def visible_select(contract: Contract, *, stored: str) -> str:
    """The SELECT of a table's visible rows, with the contract's columns."""
    table = f"{stored}{contract.table_id}"
    if contract.kind == "state":
        return state_select(contract, table)
    if contract.name == "night_users":
        return night_users_select(contract, table)
    if contract.name in EXPLAINED:
        return explained_select(contract, table)
    if contract.kind == "night" and "method" in contract.column_names:
        return (
            f"SELECT {columns_of(contract, ds='n.ds')} FROM {table} AS t INNER JOIN night_users AS n "
            "ON t.scenario = n.scenario AND t.method = n.method AND t.user_id = n.user_id AND t.publish_id = n.made_by"
        )
    if contract.kind == "night":
        return common_night_select(contract, table)
    return f"SELECT {columns_of(contract)} FROM {table} AS t"


def columns_of(contract: Contract, *, ds: str | None = None) -> str:
    """`t.user_id, t.rank, ...`; `ds` is where ds comes from instead."""
    return ", ".join(f"{ds} AS ds" if ds and name == "ds" else f"t.{name}" for name in contract.column_names)


def night_users_select(contract: Contract, table: str) -> str:
    """The rows of the generation that the row with the highest fence names."""
    return (
        f"SELECT {columns_of(contract)} FROM {table} AS t INNER JOIN (SELECT ds, scenario, method, publish_id, "
        f"row_number() OVER (PARTITION BY ds, scenario, method ORDER BY fence DESC) AS place FROM publications) AS p "
        "ON t.ds = p.ds AND t.scenario = p.scenario AND t.method = p.method AND t.publish_id = p.publish_id WHERE p.place = 1"
    )


def common_night_select(contract: Contract, table: str) -> str:
    """What all methods of a night share. Several attempts may have made the same rows; one copy is shown."""
    key = ", ".join(f"t.{name}" for name in contract.digest_key)
    return (
        f"SELECT {columns_of(contract)} FROM (SELECT t.*, row_number() OVER (PARTITION BY {key} ORDER BY t.publish_id) AS place "
        f"FROM {table} AS t INNER JOIN (SELECT ds, scenario, made_by AS named FROM night_users "
        "UNION SELECT ds, scenario, publish_id AS named FROM night_users) AS n "
        "ON t.ds = n.ds AND t.scenario = n.scenario AND t.publish_id = n.named) AS t WHERE t.place = 1"
    )


def explained_select(contract: Contract, table: str) -> str:
    """What users share. Attempts of one night may each have written the same explanation; text and verdicts are shown from one."""
    return (
        f"SELECT {columns_of(contract, ds='n.ds')} FROM {table} AS t INNER JOIN (SELECT ds, scenario, method, explanation_id, "
        "min(explanation_made_by) AS named FROM explanation_assignments WHERE status IN ('written', 'shared') "
        "GROUP BY ds, scenario, method, explanation_id) AS n "
        "ON t.scenario = n.scenario AND t.method = n.method AND t.explanation_id = n.explanation_id AND t.publish_id = n.named"
    )


def state_select(contract: Contract, table: str) -> str:
    """Of each bucket the generation with the newest cut; of equal cuts the one certified last."""
    return (
        f"SELECT {columns_of(contract)} FROM {table} AS t INNER JOIN (SELECT c.partition AS bucket, c.publish_id, row_number() OVER "
        "(PARTITION BY c.partition ORDER BY c.arrived_cut_ds DESC, c.made_at DESC, c.publish_id DESC) AS place "
        f"FROM certificates AS c WHERE c.table_name = '{contract.name}') AS n "
        "ON t.bucket = n.bucket AND t.publish_id = n.publish_id WHERE n.place = 1"
    )
