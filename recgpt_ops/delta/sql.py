"""The warehouse as people query it: DuckDB over what is visible, for reading only.

`views` says what is visible and what else there is to ask. Here each table gets its files: of night tables only those of generations
that some visible night names, of state tables those of the newest generations. One that was never made is empty. Files are read when a
query asks for them. Once the tables are known, files, network, extensions and settings are locked.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Any

import duckdb

from recgpt_ops.delta.pointer import visible_publications
from recgpt_ops.delta.reading import DataFile, files_dataset, generation_files, state_files, state_generations
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.errors import UsageError
from recgpt_ops.tables import Contract, all_contracts
from recgpt_ops.views import EXPLAINED, all_relations, shown_name

END_OF_TIME = "9999-12-31"
STORED = "stored"  # the schema of the tables as they lie in the warehouse; what people name stands in main
SPARK_WORDS = (  # functions that views use and that DuckDB calls otherwise
    "CREATE MACRO explode(list_) AS unnest(list_)",
    "CREATE MACRO size(list_) AS len(list_)",
    "CREATE MACRO array_min(list_) AS list_min(list_)",
)
LOCKS = (
    "SET enable_progress_bar = true",  # so that query_progress() tells how far a query is
    "SET enable_progress_bar_print = false",
    "SET python_enable_replacements = false",  # or a query could name the variables of the program that runs it
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
GENERATIONS = f"CREATE TABLE {STORED}.generations AS SELECT made_by FROM night_users UNION SELECT publish_id FROM night_users"
EXPLANATIONS_NAMED = "SELECT DISTINCT explanation_made_by FROM explanation_assignments WHERE status IN ('written', 'shared')"
READING = frozenset({duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN})


def connect(warehouse: Warehouse) -> duckdb.DuckDBPyConnection:
    """A locked connection that knows every table of every contract and every view."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(f"CREATE SCHEMA {STORED}")
    for word in SPARK_WORDS:
        connection.execute(word)
    contracts = {shown_name(contract): contract for contract in all_contracts().values()}
    for relation in all_relations(stored=f"{STORED}."):
        if contract := contracts.get(relation.name):
            add_stored(connection, contract, shown_files(connection, warehouse, contract))
        connection.execute(f"CREATE VIEW {relation.name} AS {relation.select}")
        if relation.name == "night_users":
            connection.execute(GENERATIONS)
    for lock in LOCKS:
        connection.execute(lock)
    return connection


def add_stored(connection: duckdb.DuckDBPyConnection, contract: Contract, files: Sequence[DataFile]) -> None:
    """The files as one table of the schema `stored`, out of the way of those who list tables."""
    connection.execute(f"USE {STORED}")  # a relation becomes a view of the schema in use
    connection.from_arrow(files_dataset(contract, files)).create_view(contract.table_id)
    connection.execute("USE main")


def shown_files(connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, contract: Contract) -> list[DataFile]:
    """The files that visible rows may stand in: all of a feed or record, else those of the generations that something visible names."""
    name = contract.name
    if contract.kind == "state":
        return state_files(warehouse, name, state_generations(warehouse, name, arrived_cut_ds=END_OF_TIME))
    if contract.kind != "night":
        return generation_files(warehouse, name)
    if name == "night_users":
        nights = visible_publications(warehouse)
        shown = {str(row["publish_id"]) for row in nights.values()}
        return generation_files(warehouse, name, ds={ds for ds, _, _ in nights}, publish_id=shown)
    told = connection.execute(EXPLANATIONS_NAMED if name in EXPLAINED else f"FROM {STORED}.generations").fetchall()
    return generation_files(warehouse, name, publish_id={publish_id for (publish_id,) in told})


def fetch_select(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Column names and rows of one SELECT; anything else, and a wrong name, is a UsageError in one line with the nearest right name."""
    if not is_utf8(sql):
        raise UsageError("query: expected UTF-8, got bytes that are none; mend the text or the terminal's encoding")
    try:
        statements = connection.extract_statements(sql)
    except duckdb.Error as error:
        raise UsageError(f"query: {first_line(error)}; it is DuckDB's SQL") from None
    if len(statements) != 1 or statements[0].type not in READING:
        raise UsageError(f"query: expected one SELECT, got {statement_names(statements)}; the warehouse is read-only here")
    try:
        found = connection.execute(statements[0])
        return distinct_names([column[0] for column in found.description or []]), found.fetchall()
    except duckdb.Error as error:
        raise UsageError(f"query: {first_line(error)}{suggestion(connection, str(error))}") from None


def is_utf8(text: str) -> bool:
    """Whether the text can be written; arguments of a command hold surrogates where their bytes were no UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def distinct_names(names: list[str]) -> list[str]:
    """Names of which each stands once, as DuckDB itself tells columns of a subquery apart.

    >>> distinct_names(["a", "b", "a", "a_1", "a"])
    ['a', 'b', 'a_2', 'a_1', 'a_3']
    """
    taken, told = set(names), []
    for place, name in enumerate(names):
        if name in names[:place]:
            number = next(n for n in range(1, len(names) + 1) if f"{name}_{n}" not in taken)
            name = f"{name}_{number}"
            taken.add(name)
        told.append(name)
    return told


def statement_names(statements: list[duckdb.Statement]) -> str:
    """`INSERT`, or `SELECT, SELECT`, or `nothing`."""
    return ", ".join(statement.type.name for statement in statements) or "nothing"


def first_line(error: duckdb.Error) -> str:
    """What DuckDB says, without its picture of the query and without its own guess, which may be a table of its catalog."""
    return str(error).strip().splitlines()[0].removesuffix("!")


def suggestion(connection: duckdb.DuckDBPyConnection, message: str) -> str:
    """`; did you mean intent_tags?` for a table, view or column that does not exist, else nothing."""
    if found := re.search(r"Table with name \"?(\w+)\"? does not exist", message):
        names = relation_names(connection)
        near = difflib.get_close_matches(found[1].lower(), names, n=1, cutoff=0.3)
        return f"; did you mean {near[0]}?" if near else f"; there are {', '.join(names)}"
    if found := re.search(r"Referenced column \"(\w+)\"|column named \"(\w+)\"", message):
        bindings = re.findall(r'"([\w.]+)"', message.partition("Candidate bindings")[2])
        near = difflib.get_close_matches((found[1] or found[2]).lower(), bindings or column_names(connection), n=1, cutoff=0.3)
        return f"; did you mean {near[0]}?" if near else ""
    if "disabled by configuration" in message or "disabled through configuration" in message:
        return "; only the tables of the warehouse can be read"
    return ""


def relation_names(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """What a query may name, sorted: tables and views, without what they are made of."""
    return [
        name
        for (name,) in connection.execute(
            "SELECT view_name FROM duckdb_views() WHERE schema_name = 'main' AND NOT internal ORDER BY ALL"
        ).fetchall()
    ]


def column_names(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """All columns of all of them, sorted."""
    told = connection.execute("SELECT DISTINCT column_name FROM duckdb_columns() WHERE schema_name = 'main' AND NOT internal ORDER BY ALL")
    return [name for (name,) in told.fetchall()]
