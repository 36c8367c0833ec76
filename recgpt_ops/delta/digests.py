"""Digests of a multiset of rows: equal for the same rows in any order and in any split into files.

    rows ("u1", 3), ("u2", null)
    texts    "u1" US "3"        "u2" US NUL             as in `ids`: one text per row, columns in contract order
    md5      128 bits of each text, taken as two numbers of 64 bits, summed up
    digest   sha256 of "2:<sum>:<sum>"                  the count and both sums

Sums do not depend on order, two equal rows count twice, and every step is defined outside any engine, so a digest outlives the
versions of DuckDB and Arrow. Volatile columns are left out of both digests and have one of their own, beside the key, so that none of
them changes unseen. One pass over the rows makes all, about 1 s for a million.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from recgpt_ops.delta.schemas import arrow_type
from recgpt_ops.tables import Contract

LANE = 2**64
GENERATION_NAMES = frozenset({"publish_id", "import_id"})  # one value in all rows of what is certified


@dataclass
class Sums:
    """Running sums of one scope: rows, then the two halves of the md5 numbers of keys, of whole rows, and of keys with volatile columns."""

    row_count: int = 0
    key_low: int = 0
    key_high: int = 0
    row_low: int = 0
    row_high: int = 0
    volatile_low: int = 0
    volatile_high: int = 0

    @property
    def key_digest(self) -> str:
        """sha256 hex over the keys."""
        return sums_digest(self.row_count, self.key_low, self.key_high)

    @property
    def row_digest(self) -> str:
        """sha256 hex over the whole rows, volatile columns left out."""
        return sums_digest(self.row_count, self.row_low, self.row_high)

    @property
    def volatile_digest(self) -> str:
        """sha256 hex over the keys with the columns of `volatile_columns`."""
        return sums_digest(self.row_count, self.volatile_low, self.volatile_high)


def sums_digest(count: int, low: int, high: int) -> str:
    """The digest of one multiset from its count and sums; `low` and `high` are taken modulo 2^64.

    >>> sums_digest(0, 0, 0)[:12]
    '3c7d41b10a91'
    """
    return hashlib.sha256(f"{count}:{low % LANE}:{high % LANE}".encode()).hexdigest()


def canonical_type(type_: Any) -> pa.DataType:
    """The type a column is cast to before it becomes text: times are microseconds, doubles their shortest text, at any depth."""
    if pa.types.is_timestamp(type_):
        return pa.int64()
    if pa.types.is_float64(type_):
        return pa.string()
    if pa.types.is_list(type_):
        return pa.list_(pa.field("element", canonical_type(type_.value_type)))
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(field.name, canonical_type(field.type)) for field in type_])
    same: pa.DataType = type_
    return same


def volatile_columns(contract: Contract) -> tuple[str, ...]:
    """The volatile columns whose values rows of one generation (or import) may differ in: they are digested apart, with the key.

    night_users -> ("made_by", "attempt")        intent_tags -> ()
    """
    return tuple(name for name in contract.volatile if name not in GENERATION_NAMES)


def text_sql(contract: Contract, columns: tuple[str, ...]) -> str:
    """The SQL that writes one row's columns as the text that is hashed; arrays and structs as JSON."""
    parts = []
    for name in columns:
        nested = "<" in contract.column(name).type
        text = f'to_json("{name}")::varchar' if nested else f'"{name}"::varchar'
        parts.append(f'CASE WHEN "{name}" IS NULL THEN chr(0) ELSE {text} END')
    return f"concat_ws(chr(31), {', '.join(parts)})"


class DigestPass:
    """Takes a table's rows in batches and holds the sums of each scope (ds, bucket or import)."""

    def __init__(self, contract: Contract, scope_column: str | None, *, connection: duckdb.DuckDBPyConnection | None = None) -> None:
        """`scope_column` None: all rows are one scope, found under "". `connection`: DuckDB's to work in, its own by default."""
        self.contract, self.scope_column = contract, scope_column
        self.volatile = volatile_columns(contract)
        scope_columns = (scope_column,) if scope_column else ()
        self.columns = tuple(dict.fromkeys((*contract.digest_columns, *contract.digest_key, *self.volatile, *scope_columns)))
        self.sums: dict[str, Sums] = {}
        self.connection = connection or duckdb.connect()
        low, high = "(({0} & 18446744073709551615::uhugeint)::hugeint)", "(({0} >> 64)::hugeint)"
        numbers = ("k", "r", "v") if self.volatile else ("k", "r")
        lanes = ", ".join(f"sum({lane.format(number)})" for number in numbers for lane in (low, high))
        scope = f'"{scope_column}"' if scope_column else "''"
        key, row = text_sql(contract, contract.digest_key), text_sql(contract, contract.digest_columns)
        volatile = f", md5_number({text_sql(contract, (*contract.digest_key, *self.volatile))}) AS v" if self.volatile else ""
        self.query = (
            f"SELECT scope, count(*), {lanes} "
            f"FROM (SELECT {scope} AS scope, md5_number({key}) AS k, md5_number({row}) AS r{volatile} FROM batch) GROUP BY scope"
        )

    def add(self, rows: pa.Table) -> None:
        """Counts the rows in; columns that no digest needs may be there."""
        types = {name: canonical_type(arrow_type(self.contract.column(name).type)) for name in self.columns}
        canonical = pa.Table.from_arrays([rows[name].cast(type_) for name, type_ in types.items()], names=list(types))
        self.connection.register("batch", canonical)
        for scope, count, key_low, key_high, row_low, row_high, *volatile in self.connection.execute(self.query).fetchall():
            sums = self.sums.setdefault(scope, Sums())
            sums.row_count += count
            sums.key_low, sums.key_high = sums.key_low + int(key_low), sums.key_high + int(key_high)
            sums.row_low, sums.row_high = sums.row_low + int(row_low), sums.row_high + int(row_high)
            if volatile:
                sums.volatile_low, sums.volatile_high = sums.volatile_low + int(volatile[0]), sums.volatile_high + int(volatile[1])
        self.connection.unregister("batch")
