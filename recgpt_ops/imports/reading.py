"""Reading rows: batches of text become batches of typed columns, each row with a verdict and, when it is not kept, a reason.

    user_id=' u1 ' action='buy' event_at='2017-10-30 18:05:00' amount='-3'   ->   verdict=quarantined reason=negative_amount

Runs inside Spark's mapInArrow. Each distinct value is read once and remembered, so that plain Python rules cost little even on
millions of rows.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, cast

import pyarrow as pa

from recgpt_ops.ids import NULL, SEPARATOR, text_hash, user_bucket
from recgpt_ops.imports.columnar_rows import Array, compute
from recgpt_ops.imports.mapping import ATTRIBUTE, FieldRule, ImportMapping, constant, reader_of
from recgpt_ops.imports.values import Fault

MAX_REMEMBERED = 500_000
INVISIBLE = "\ufeff\u200b\u2060"  # what joined files and web pages leave around a value: byte order marks, spaces without width
# Tab and line breaks are white space of a text.
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
ARROW_CONTROL = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x{80}-\x{9f}]"
WITH_ITEM = frozenset({"click", "detail_view", "review_read", "favorite", "cart", "purchase", "return"})
COUNTED = ("purchase", "return", "cart")  # one piece unless the source says more
MOMENT = pa.timestamp("us", tz="UTC")
ATTRIBUTES = pa.list_(pa.struct([("name", pa.string()), ("value", pa.string())]))
VERDICT = {"file": "string", "line": "long", "raw": "string", "verdict": "string", "reason": "string", "detail": "string"}
COLUMNS: dict[str, dict[str, str]] = {
    "behavior_events": {
        "event_id": "string",
        "user_id": "string",
        "user_bucket": "int",
        "action": "string",
        "item_id": "string",
        "query": "string",
        "campaign_id": "string",
        "quantity": "long",
        "amount": "double",
        "currency": "string",
        "event_at": "timestamp",
        "event_at_precision": "string",
        "event_ds": "string",
        "arrived_ds": "string",
    },
    "items": {
        "item_id": "string",
        "valid_from_ds": "string",
        "valid_to_ds": "string",
        "locale": "string",
        "title": "string",
        "category": "string",
        "item_type": "string",
        "brand": "string",
        "price": "double",
        "currency": "string",
        "text_hash": "string",
    },
    "user_profiles": {
        "user_id": "string",
        "valid_from_ds": "string",
        "valid_to_ds": "string",
        "user_bucket": "int",
        "locale": "string",
        "region": "string",
        "attributes": "array<struct<name:string,value:string>>",
        "text_hash": "string",
    },
}
ARROW: dict[str, Any] = {
    "string": pa.string(),
    "int": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "timestamp": MOMENT,
    "array<struct<name:string,value:string>>": ATTRIBUTES,
}
MISSING = {"user_id": "no_user_id", "event_at": "no_time", "action": "no_action", "item_id": "no_item_id", "title": "no_title"}


@dataclass(frozen=True)
class Reading:
    """How the rows of one table are read. `arrived_ds` None: each event arrived on the day it happened, unless its row says more.

    `inputs`: contract column -> column of the batch. `labels`: column of the batch -> the source's name, for telling a raw row.
    `checked`: columns searched for control characters though nothing is read from them.
    """

    mapping: ImportMapping
    inputs: Mapping[str, str]
    labels: Mapping[str, str]
    checked: tuple[str, ...]
    arrived_ds: str | None
    now: datetime


class Verdict(NamedTuple):
    """What becomes of a row that is not kept: quarantined or dropped, and why."""

    verdict: str
    reason: str
    detail: str | None


def spark_ddl(table: str) -> str:
    """The columns that reading a table makes, as Spark tells a schema."""
    return ", ".join(f"{name} {kind}" for name, kind in (VERDICT | COLUMNS[table]).items())


def arrow_columns(table: str) -> pa.Schema:
    """The same as an Arrow schema."""
    return pa.schema([(name, ARROW[kind]) for name, kind in (VERDICT | COLUMNS[table]).items()])


def read_batches(batches: Iterator[pa.RecordBatch], reading: Reading) -> Iterator[pa.RecordBatch]:
    """All batches of one partition; values are remembered from batch to batch."""
    reader = BatchReader(reading)
    for batch in batches:
        if batch.num_rows:
            yield reader.read(batch)


class BatchReader:
    """Reads batches of one table and remembers what each distinct text meant."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.table = reading.mapping.table
        self.remembered: dict[str, dict[str, Any]] = {}

    def read(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """One batch: same number of rows, same order."""
        bad: dict[int, Verdict] = {}
        self.note_landing_faults(batch, bad)
        columns: dict[str, Any] = {}
        for rule in self.reading.mapping.fields:
            columns[rule.column] = self.read_field(batch, rule, bad)
        finish = {"behavior_events": self.finish_events, "items": self.finish_items, "user_profiles": self.finish_profiles}
        finish[self.table](columns, batch, bad)
        schema = arrow_columns(self.table)
        columns |= self.verdict_columns(batch, bad)
        nulls: dict[str, Any] = {field.name: pa.nulls(batch.num_rows, field.type) for field in schema if columns.get(field.name) is None}
        filled: list[Any] = [nulls.get(f.name, columns.get(f.name)) for f in schema]
        return pa.record_batch(filled, schema=schema)

    def note_landing_faults(self, batch: pa.RecordBatch, bad: dict[int, Verdict]) -> None:
        """Rows that could not be landed, rows the source's own rules drop, rows with control characters; in this order."""
        faults, details = batch.column("fault"), batch.column("detail")
        for row in compute.indices_nonzero(compute.is_valid(faults)).to_pylist():
            bad[row] = Verdict("quarantined", faults[row].as_py(), details[row].as_py())
        dropped = named(batch, "dropped")
        if dropped is not None:
            for row, reason in zip(
                compute.indices_nonzero(compute.is_valid(dropped)).to_pylist(), dropped.drop_null().to_pylist(), strict=True
            ):
                bad.setdefault(row, Verdict("dropped", reason, None))
        for name in self.reading.checked:
            found = compute.fill_null(compute.match_substring_regex(batch.column(name), ARROW_CONTROL), False)
            for row in compute.indices_nonzero(found).to_pylist():
                label = self.reading.labels.get(name, "the row")
                bad.setdefault(row, Verdict("quarantined", "control_characters", f"expected printable text in {label}"))

    def read_field(self, batch: pa.RecordBatch, rule: FieldRule, bad: dict[int, Verdict]) -> Any:
        """One contract column, typed; for `event_at` an array of moments as Python objects would be too slow, so three arrays."""
        reading, count = self.reading, batch.num_rows
        default = constant(reading.mapping, rule, now=reading.now)
        texts = batch.column(reading.inputs[rule.column]) if rule.source is not None else None
        encoded = (pa.nulls(count, pa.string()) if texts is None else texts).dictionary_encode()
        meanings = self.meanings(rule, cast(list[str], encoded.dictionary.to_pylist()))
        faulty = {code: value for code, value in enumerate(meanings) if isinstance(value, Fault)}
        if faulty:
            codes = encoded.indices.to_pylist()
            verdict = "dropped" if rule.on_bad == "drop" else "quarantined"
            for row, code in enumerate(codes):
                if code in faulty:
                    bad.setdefault(row, Verdict(verdict, *faulty[code]))
        values = [default if value is None else None if isinstance(value, Fault) else value for value in meanings] + [default]
        indices = compute.fill_null(encoded.indices, len(values) - 1)
        if rule.column == "event_at":
            parts = list(zip(*[value or (None, None, None) for value in values], strict=True))
            kinds: tuple[Any, ...] = (MOMENT, pa.string(), pa.string())
            return tuple(pa.array(part, kind).take(indices) for part, kind in zip(parts, kinds, strict=True))
        kind = ARROW[COLUMNS[self.table].get(rule.column, "string")]
        return pa.array(values, kind).take(indices)

    def meanings(self, rule: FieldRule, texts: Sequence[str]) -> list[Any]:
        """What distinct texts of a column mean; a blank one is None, and so is one that `tidy` leaves nothing of."""
        memory = self.memory(rule.column)
        unknown = [text for text in texts if text not in memory]
        if unknown:
            read = reader_of(self.reading.mapping, rule, now=self.reading.now)
            for text in unknown:
                bare = text.strip().strip(INVISIBLE).strip()
                meant = rule.map.get(bare, bare)
                if CONTROL.search(text):
                    memory[text] = Fault("control_characters", f"expected printable text in {rule.column}")
                    continue
                meant = rule.tidy(meant) if rule.tidy and meant else meant
                memory[text] = read(meant) if meant else None
        return [memory[text] for text in texts]

    def memory(self, name: str) -> dict[str, Any]:
        """What was read before, forgotten when it grows too large."""
        memory = self.remembered.setdefault(name, {})
        if len(memory) > MAX_REMEMBERED:
            memory.clear()
        return memory

    def derived(self, name: str, texts: Array, make: Callable[[str], Any], kind: pa.DataType) -> Array:
        """A column made from the distinct values of another."""
        memory = self.memory(name)
        encoded = texts.dictionary_encode()
        for text in encoded.dictionary.to_pylist():
            if text not in memory:
                memory[text] = make(text)
        return pa.array([memory[text] for text in encoded.dictionary.to_pylist()], kind).take(encoded.indices)

    def finish_events(self, columns: dict[str, Any], batch: pa.RecordBatch, bad: dict[int, Verdict]) -> None:
        """What an event needs beyond its single values."""
        columns["event_at"], columns["event_at_precision"], columns["event_ds"] = columns["event_at"]
        identity = columns.get("event_id")
        if identity is None:
            identity = batch.column("identity")
        require(identity, "no_event_id", bad)
        columns["event_id"] = event_ids(self.reading.mapping.source, identity)
        for name in ("user_id", "event_at", "action"):
            require(columns[name], MISSING[name], bad)
        action = columns["action"]
        for name, actions in (("item_id", sorted(WITH_ITEM)), ("query", ["search"]), ("campaign_id", ["campaign"])):
            needed = compute.is_in(action, pa.array(actions))
            present = columns.get(name)
            missing = needed if present is None else compute.and_(needed, compute.is_null(present))
            note(missing, f"no_{name}", f"the action needs a {name}", bad)
        quantity = columns.get("quantity")
        one = compute.if_else(compute.is_in(action, pa.array(COUNTED)), pa.scalar(1, pa.int64()), pa.scalar(None, pa.int64()))
        columns["quantity"] = one if quantity is None else compute.coalesce(quantity, one)
        if columns.get("currency") is not None and columns.get("amount") is not None:
            columns["currency"] = compute.if_else(compute.is_valid(columns["amount"]), columns["currency"], pa.scalar(None, pa.string()))
        arrived = columns.get("arrived_ds")
        told = pa.array([self.reading.arrived_ds] * batch.num_rows, pa.string())
        columns["arrived_ds"] = compute.coalesce(*[c for c in (arrived, told, columns["event_ds"]) if c is not None])
        late = compute.fill_null(compute.greater(columns["event_ds"], columns["arrived_ds"]), False)
        note(late, "future_time", "expected an event on or before the day on which it arrived", bad)
        columns["user_bucket"] = self.derived("user_bucket", columns["user_id"], user_bucket, pa.int32())

    def finish_items(self, columns: dict[str, Any], batch: pa.RecordBatch, bad: dict[int, Verdict]) -> None:
        """What an item needs beyond its single values."""
        for name in ("item_id", "title"):
            require(columns[name], MISSING[name], bad)
        require(columns["locale"], "no_locale", bad)
        check_validity(columns, bad)
        columns["text_hash"] = self.derived("text_hash", columns["title"], text_hash, pa.string())

    def finish_profiles(self, columns: dict[str, Any], batch: pa.RecordBatch, bad: dict[int, Verdict]) -> None:
        """What a profile needs beyond its single values. Attributes stand in the mapping's order; an empty one is left out."""
        for name, reason in (("user_id", "no_user_id"), ("locale", "no_locale"), ("region", "no_region")):
            require(columns[name], reason, bad)
        check_validity(columns, bad)
        names = [name for name in columns if name.startswith(ATTRIBUTE)]
        told = (
            [[]] * batch.num_rows
            if not names
            else [
                [
                    {"name": name.removeprefix(ATTRIBUTE), "value": value}
                    for name, value in zip(names, row, strict=True)
                    if value is not None
                ]
                for row in zip(*(columns[name].to_pylist() for name in names), strict=True)
            ]
        )
        columns["attributes"] = pa.array(told, ATTRIBUTES)
        texts = ["\n".join(f"{pair['name']}: {pair['value']}" for pair in row) for row in told]
        columns["text_hash"] = self.derived("attributes", pa.array(texts, pa.string()), text_hash, pa.string())
        columns["user_bucket"] = self.derived("user_bucket", columns["user_id"], user_bucket, pa.int32())

    def verdict_columns(self, batch: pa.RecordBatch, bad: Mapping[int, Verdict]) -> dict[str, Array]:
        """file, line, verdict, reason, detail; and the raw row where it goes to quarantine. Items and profiles may do so later."""
        count = batch.num_rows
        verdicts, reasons, details, raws = ["kept"] * count, [None] * count, [None] * count, [None] * count
        columns: Sequence[list[Any]] = verdicts, reasons, details, raws
        raw = batch.column("raw")
        for row, verdict in bad.items():
            columns[0][row], columns[1][row], columns[2][row] = verdict
            if verdict.verdict == "quarantined":
                columns[3][row] = raw[row].as_py() or self.raw_row(batch, row)
        if self.table != "behavior_events":
            columns[3][:] = [text or self.raw_row(batch, row) for row, text in enumerate(raw.to_pylist())]
        told = {name: pa.array(values, pa.string()) for name, values in zip(("verdict", "reason", "detail", "raw"), columns, strict=True)}
        return {"file": batch.column("file"), "line": batch.column("line"), **told}

    def raw_row(self, batch: pa.RecordBatch, row: int) -> str:
        """A row of a file that has no lines, as JSON under the source's own names; missing values are left out."""
        values = {label: batch.column(name)[row].as_py() for name, label in self.reading.labels.items()}
        return json.dumps({label: value for label, value in values.items() if value is not None}, ensure_ascii=False)


def named(batch: pa.RecordBatch, name: str | None) -> Array | None:
    """A column of a batch, None when it has none of that name."""
    return batch.column(name) if name is not None and name in batch.schema.names else None


def note(found: Array, reason: str, detail: str, bad: dict[int, Verdict]) -> None:
    """Puts the rows where `found` is true into quarantine, unless something was wrong with them before."""
    for row in compute.indices_nonzero(compute.fill_null(found, False)).to_pylist():
        bad.setdefault(row, Verdict("quarantined", reason, detail))


def require(values: Array, reason: str, bad: dict[int, Verdict]) -> None:
    """Puts the rows without a value into quarantine."""
    note(compute.is_null(values), reason, "expected a value, got none", bad)


def check_validity(columns: Mapping[str, Any], bad: dict[int, Verdict]) -> None:
    """A validity period must not end before it begins."""
    first, last = columns.get("valid_from_ds"), columns.get("valid_to_ds")
    if first is not None and last is not None:
        note(compute.greater(first, last), "ends_before_it_begins", "expected valid_to_ds on or after valid_from_ds", bad)


def event_ids(source: str, identities: Array) -> Array:
    """`ids.row_id((source, identity))` of many rows; hashed here because the embedded engine's own sha2 takes ten times as long."""
    start = hashlib.sha256((source + SEPARATOR).encode())
    made = []
    for identity in identities.to_pylist():
        digest = start.copy()
        digest.update((NULL if identity is None else identity).encode())
        made.append(digest.hexdigest())
    return pa.array(made, pa.string())
