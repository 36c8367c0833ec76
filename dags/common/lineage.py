"""Which Delta tables a task reads and writes, for OpenLineage: by the contracts, so that no task says it a second time.

    intents, warehouse /data/shop  ->  in   file:///data/shop  user_contexts_v1, night_users_v1, items_v1, ...
                                       out  file:///data/shop  intent_plans_v1, tag_proposals_v1, intent_tags_v1

Airflow's OpenLineage provider asks each of our operators for it when a task ends, well or badly. Where the events go is Airflow's
configuration (`[openlineage] transport`, on this machine environment.py); without any the provider does nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dags.common.assets import tables_of
from recgpt_ops.tables import all_contracts, load_contract

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage


def tables_read_by(job: str) -> tuple[str, ...]:
    """The tables that one job reads: those whose contract names a table of the job as reader, its own left out."""
    made = tables_of(job)
    return tuple(name for name, contract in all_contracts().items() if name not in made and set(made) & set(contract.readers))


def namespace_of(warehouse: str) -> str:
    """The warehouse as OpenLineage names a place: its root as an address."""
    return warehouse if "://" in warehouse else Path(warehouse).absolute().as_uri()


def lineage_of(job: str, warehouse: str) -> OperatorLineage[Any, Any]:
    """The datasets of one job in one warehouse. The provider is imported here, since no DAG file may wait for it."""
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import Dataset

    namespace = namespace_of(warehouse)
    read, made = ([Dataset(namespace, load_contract(table).table_id) for table in told] for told in (tables_read_by(job), tables_of(job)))
    return OperatorLineage(inputs=read, outputs=made)
