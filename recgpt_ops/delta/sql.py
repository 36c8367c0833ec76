"""The warehouse as people query it: DuckDB over what is visible, for reading only.

    feeds and records     whole
    state tables          the newest generation of each bucket
    night_users           the generation that the pointer names, of every night
    other night tables    the rows that a visible night_users names by (scenario, method, user_id, made_by), under that night's ds: a
                          user who was carried from an older night stands in both nights
    explanations and      hold nothing of a user: the rows of the generation that a visible assignment names (explanation_made_by), under the
    their verdicts        ds of that assignment; a text that an older night wrote stands in each night that shows it, once
    environment_signals   the generations that visible night_users of the same ds name

Tables are called by their names without version; one that was never made is empty. Files are read when a query asks for them. Once
the tables are known, files, network, extensions and settings are locked.
"""

from __future__ import annotations

import difflib
import re
from typing import Any

import duckdb

from recgpt_ops.delta.pointer import visible_publications
from recgpt_ops.delta.reading import DataFile, files_dataset, generation_files, state_files, state_generations
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.errors import UsageError
from recgpt_ops.tables import all_contracts, load_contract

END_OF_TIME = "9999-12-31"
LOCKS = (
    "SET python_enable_replacements = false",  # or a query could name the variables of the program that runs it
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
EXPLAINED = ("explanations", "explanation_verdicts")  # night tables without a user
READING = frozenset({duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN})


def connect(warehouse: Warehouse) -> duckdb.DuckDBPyConnection:
    """A locked connection that knows every table of every contract."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    add_visible_nights(connection, warehouse)
    for name, contract in all_contracts().items():
        if name == "night_users":
            continue
        if contract.kind == "state":
            generations = state_generations(warehouse, name, arrived_cut_ds=END_OF_TIME)
            connection.register(name, files_dataset(contract, state_files(warehouse, name, generations)))
        elif contract.kind == "night":
            if name not in EXPLAINED:
                add_night_table(connection, warehouse, name)
        else:
            connection.register(name, files_dataset(contract, generation_files(warehouse, name)))
    add_explained_tables(connection, warehouse)
    for lock in LOCKS:
        connection.execute(lock)
    return connection


def add_visible_nights(connection: duckdb.DuckDBPyConnection, warehouse: Warehouse) -> None:
    """The view night_users, and `_shown`: which publish_id each user of each night and method shows."""
    visible = {night: str(row["publish_id"]) for night, row in visible_publications(warehouse).items()}
    files = generation_files(warehouse, "night_users", ds={ds for ds, _, _ in visible}, publish_id=set(visible.values()))
    connection.register("_night_users", files_dataset(load_contract("night_users"), files))
    connection.execute("CREATE TABLE _visible (ds VARCHAR, scenario VARCHAR, method VARCHAR, publish_id VARCHAR)")
    if visible:
        connection.executemany("INSERT INTO _visible VALUES (?, ?, ?, ?)", [[*night, shown] for night, shown in visible.items()])
    connection.execute(
        "CREATE VIEW night_users AS SELECT n.* FROM _night_users n SEMI JOIN _visible USING (ds, scenario, method, publish_id)"
    )


def add_night_table(connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, name: str) -> None:
    """The view of one night table; only files of generations that some visible night names are opened."""
    contract = load_contract(name)
    has_method = "method" in contract.column_names
    connection.register(f"_{name}", files_dataset(contract, shown_files(connection, warehouse, name)))
    if has_method:
        connection.execute(
            f"CREATE VIEW {name} AS SELECT t.* REPLACE (n.ds AS ds) FROM _{name} t JOIN night_users n ON "
            "t.scenario = n.scenario AND t.method = n.method AND t.user_id = n.user_id AND t.publish_id = n.made_by"
        )
        return
    key = ", ".join(contract.digest_key)
    connection.execute(  # several attempts of a night may have made the same signals; one copy is shown
        f"CREATE VIEW {name} AS SELECT t.* FROM _{name} t SEMI JOIN "
        "(SELECT ds, scenario, made_by AS publish_id FROM night_users UNION SELECT ds, scenario, publish_id FROM night_users) "
        f"USING (ds, scenario, publish_id) QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY publish_id) = 1"
    )


def add_explained_tables(connection: duckdb.DuckDBPyConnection, warehouse: Warehouse) -> None:
    """The views of what users share: explanations and their verdicts, of the generations that visible assignments name.

    Attempts of one night may each have written the same explanation; text and verdicts are then shown from one of them.
    """
    connection.execute(
        "CREATE VIEW _shown_explanations AS SELECT ds, scenario, method, explanation_id, min(explanation_made_by) AS publish_id "
        "FROM explanation_assignments WHERE status IN ('written', 'shared') GROUP BY ALL"
    )
    named = connection.execute("SELECT DISTINCT publish_id FROM _shown_explanations").fetchall()
    for name in EXPLAINED:
        files = generation_files(warehouse, name, publish_id={publish_id for (publish_id,) in named})
        connection.register(f"_{name}", files_dataset(load_contract(name), files))
        connection.execute(
            f"CREATE VIEW {name} AS SELECT t.* REPLACE (n.ds AS ds) FROM _{name} t JOIN _shown_explanations n ON "
            "t.scenario = n.scenario AND t.method = n.method AND t.explanation_id = n.explanation_id AND t.publish_id = n.publish_id"
        )


def shown_files(connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, name: str) -> list[DataFile]:
    """The files of the generations that visible nights name."""
    named = connection.execute("SELECT made_by FROM night_users UNION SELECT publish_id FROM night_users").fetchall()
    return generation_files(warehouse, name, publish_id={publish_id for (publish_id,) in named})


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
    """`; did you mean intent_tags?` for a table or column that does not exist, else nothing."""
    if found := re.search(r"Table with name \"?(\w+)\"? does not exist", message):
        near = difflib.get_close_matches(found[1].lower(), list(all_contracts()), n=1, cutoff=0.3)
        return f"; did you mean {near[0]}?" if near else f"; there are {', '.join(all_contracts())}"
    if found := re.search(r"Referenced column \"(\w+)\"|column named \"(\w+)\"", message):
        known = {name for contract in all_contracts().values() for name in contract.column_names}
        candidates = re.findall(r'"([\w.]+)"', message.partition("Candidate bindings")[2]) or sorted(known)
        near = difflib.get_close_matches((found[1] or found[2]).lower(), candidates, n=1, cutoff=0.3)
        return f"; did you mean {near[0]}?" if near else ""
    if "disabled by configuration" in message or "disabled through configuration" in message:
        return "; only the tables of the warehouse can be read"
    return ""
