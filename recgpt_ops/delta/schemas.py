"""Arrow schemas from contracts, and `conform`: the last select before rows are staged.

    contract  id: string, n: long          rows  n: int64, id: large_string, in any order
    conform -> id: string, n: int64

Only the spelling of a type may differ (large_string is string, a time in any unit is a time). An int where a long stands is refused:
a column is widened by a new version of its contract, not by the rows that happen to come.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pyarrow as pa

from recgpt_ops.errors import ContractError
from recgpt_ops.tables import Contract, split_fields

TIMESTAMP = pa.timestamp("us", tz="UTC")
ARROW_SCALARS: dict[str, pa.DataType] = {
    "string": pa.string(),
    "int": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "timestamp": TIMESTAMP,
}


@cache
def arrow_type(type_: str) -> pa.DataType:
    """The Arrow type of a contract's type.

    >>> arrow_type("array<struct<name:string,count:long>>")
    ListType(list<element: struct<name: string, count: int64>>)
    """
    if type_ in ARROW_SCALARS:
        return ARROW_SCALARS[type_]
    outer = re.fullmatch(r"(array|struct)<(.+)>", type_)
    if outer is None:
        raise ContractError(f"unknown type {type_!r}; the contract's own check should have found it")
    if outer[1] == "array":
        return pa.list_(pa.field("element", arrow_type(outer[2])))
    fields = (field.partition(":") for field in split_fields(outer[2]))
    return pa.struct([pa.field(name, arrow_type(inner)) for name, _, inner in fields])


def arrow_schema(contract: Contract) -> pa.Schema:
    """All columns in contract order. Every field may hold null here: what may not is a check, which names the row's key."""
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in contract.columns])


def empty_table(contract: Contract) -> pa.Table:
    """No rows, all columns."""
    return arrow_schema(contract).empty_table()


def is_same_type(given: Any, wanted: Any) -> bool:  # pa.DataType; its subclasses differ in what they have
    """Whether two types hold the same values and differ in their storage at most; a column of nulls alone fits any type."""
    if pa.types.is_null(given):
        return True
    if pa.types.is_dictionary(given):
        return is_same_type(given.value_type, wanted)
    if pa.types.is_string(wanted):
        return bool(pa.types.is_string(given) or pa.types.is_large_string(given) or pa.types.is_string_view(given))
    if pa.types.is_timestamp(wanted):
        return bool(pa.types.is_timestamp(given)) and given.tz is not None
    if pa.types.is_list(wanted):
        is_list = pa.types.is_list(given) or pa.types.is_large_list(given) or pa.types.is_list_view(given)
        return bool(is_list) and is_same_type(given.value_type, wanted.value_type)
    if pa.types.is_struct(wanted):
        return (
            bool(pa.types.is_struct(given))
            and [field.name for field in given] == [field.name for field in wanted]
            and all(is_same_type(mine.type, theirs.type) for mine, theirs in zip(given, wanted, strict=True))
        )
    return bool(given.equals(wanted))


def column_faults(contract: Contract, schema: pa.Schema) -> list[str]:
    """How a schema differs from the contract in more than order and storage; empty when `conform` will do."""
    faults = [f"column {name} is missing" for name in contract.column_names if name not in schema.names]
    faults += [f"column {name} stands in no contract" for name in schema.names if name not in contract.column_names]
    faults += [f"column {name} stands there twice" for name in sorted(set(schema.names)) if schema.names.count(name) > 1]
    for name in contract.column_names:
        if schema.names.count(name) == 1:
            given, wanted = schema.field(name).type, arrow_type(contract.column(name).type)
            if not is_same_type(given, wanted):
                faults.append(f"column {name} is {given}, the contract says {contract.column(name).type}")
    return faults


def require_columns(contract: Contract, schema: pa.Schema) -> None:
    """ContractError with every column that does not fit."""
    if faults := column_faults(contract, schema):
        raise ContractError(
            f"{contract.table_id}: {'; '.join(faults)}; cast in the job that makes the rows, or declare a new version of the contract"
        )


def conform(contract: Contract, table: pa.Table) -> pa.Table:
    """The rows with the contract's columns, in its order, of its types; ContractError names every column that cannot be."""
    require_columns(contract, table.schema)
    wanted = arrow_schema(contract)
    columns = []
    for field in wanted:
        try:
            columns.append(table[field.name].cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # its text may hold the value
            raise ContractError(
                f"{contract.table_id}: column {field.name} has a value that is no {contract.column(field.name).type} "
                f"(it came as {table.schema.field(field.name).type}); mend the job that makes it"
            ) from None
    return pa.Table.from_arrays(columns, schema=wanted)
