"""One Asset a table, named by the table's contract. An event means "landed and checked", not "visible": only the pointer shows."""

from __future__ import annotations

from functools import cache

from airflow.sdk import Asset

from recgpt_ops.tables import all_contracts, load_contract


@cache
def table_asset(table: str) -> Asset:
    """The Asset of a table: `recgpt://tables/intent_tags_v1`, the version from its contract."""
    table_id = load_contract(table).table_id
    return Asset(name=table_id, uri=f"recgpt://tables/{table_id}", group="recgpt")


def tables_of(job: str) -> tuple[str, ...]:
    """The tables that one job writes, by the contracts' `producer`: `jobs/ray/intents.py` -> its three."""
    return tuple(name for name, contract in all_contracts().items() if contract.producer == job)
