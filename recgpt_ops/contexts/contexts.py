"""Contexts of a night's audience: gathers each user's bounded bucket rows and lets context_rows.py write one row a user.

Only rows of audience users are read, of exactly the generations that count; nobody's raw events are. A user whose row cannot be
made comes back with a `reason`, and everybody else's row is made all the same (001).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from zoneinfo import ZoneInfo

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from recgpt_ops.contexts.context_rows import (
    ContextShape,
    Draft,
    TokenCounter,
    UserHistory,
    draft_context,
    finish_context,
    header_text,
)
from recgpt_ops.contexts.feeds import current_items, current_profiles
from recgpt_ops.contexts.lines import Entry
from recgpt_ops.contexts.places import Surroundings
from recgpt_ops.contexts.state import night_buckets
from recgpt_ops.contexts.words import clean_text, short_title, words_of
from recgpt_ops.delta.schemas import arrow_schema
from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.effects import effect
from recgpt_ops.errors import RowError
from recgpt_ops.llm.tokenizer import load_tokenizer
from recgpt_ops.tables import load_contract

T = TypeVar("T")

TABLE = "user_contexts"
USERS_A_TIME = 64  # users whose entries are Python objects at the same time; bounds the memory of a worker
ENTRY_FIELDS = ("bucket", "action", "item_id", "query", "title", "category", "item_type", "event_count", "newest_at")
CAMPAIGN_ACTIONS = frozenset({"coupon", "campaign"})
FAULTS = ("reason", "detail")  # null on a good row


def gather_histories(buckets: DataFrame, items: DataFrame) -> DataFrame:
    """One row per user: `entries` (ENTRY_FIELDS, in no order) and `unknown_item_count`.

    `buckets` are rows of the three state tables; `items` are as of the night. An entry whose item has no text is counted only.
    """
    exploded = buckets.select("user_id", "bucket", "action", F.explode("entries").alias("entry")).select(
        "user_id",
        "bucket",
        "action",
        F.col("entry.item_id").alias("item_id"),
        F.col("entry.query").alias("query"),
        F.col("entry.event_count").alias("event_count"),
        F.unix_micros(F.col("entry.last_event_at")).alias("newest_at"),
    )
    told = exploded.join(items.select("item_id", "title", "category", "item_type"), "item_id", "left").withColumn(
        "title", F.when(F.col("item_id").isNull(), F.col("query")).otherwise(F.col("title"))
    )
    entry = F.struct(*[F.col(name) for name in ENTRY_FIELDS])
    return told.groupBy("user_id").agg(
        F.collect_list(F.when(F.col("title").isNotNull(), entry)).alias("entries"),
        F.countDistinct(F.when(F.col("title").isNull(), F.col("item_id"))).alias("unknown_item_count"),
    )


def build_contexts(audience: DataFrame, profiles: DataFrame, histories: DataFrame, writer: ContextWriter) -> DataFrame:
    """The rows of user_contexts, with `reason` and `detail` where a row could not be made. `audience`: one row per user and method."""
    told = (
        audience.select("user_id", "user_bucket", "method", "locale", "region")
        .join(profiles.select("user_id", "attributes"), "user_id", "left")
        .join(histories, "user_id", "left")
    )
    return told.mapInArrow(writer, row_ddl())


@dataclass(frozen=True)
class ContextWriter:
    """Writes rows from gathered users, batch by batch; travels to the workers, so it holds values and no session."""

    ds: str
    serve_ds: str
    scenario: str
    publish_id: str
    zone: str
    tokenizer_dir: str
    shapes: Mapping[str, ContextShape]  # by method
    surroundings: Surroundings

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row out for every row in."""
        count = token_counter(self.tokenizer_dir)
        schema = row_schema()
        for batch in batches:
            for start in range(0, batch.num_rows, USERS_A_TIME):
                rows = list(read_users(batch.slice(start, USERS_A_TIME)))
                yield pa.RecordBatch.from_pylist(self.write_rows(rows, count), schema=schema)

    def write_rows(self, rows: Sequence[Mapping[str, Any]], count: TokenCounter) -> list[dict[str, object]]:
        """The rows of some users, with a reason where one cannot be made. Tokens are counted for all of them at once."""
        users = [self.known_user(row) for row in rows]
        count.learn([f" {entry.title}" for user in users for entry in user.entries])
        count.learn([header_text(user, self.signals_of(row), self.serve_ds) for user, row in zip(users, rows, strict=True)])
        drafts = [self.try_draft(user, row, count) for user, row in zip(users, rows, strict=True)]
        counts = iter(count.count_batch([draft.text for draft in drafts if isinstance(draft, Draft)]))
        return [
            self.key_of(row) | (self.try_finish(draft, next(counts), row, count) if isinstance(draft, Draft) else fault_fields(draft))
            for draft, row in zip(drafts, rows, strict=True)
        ]

    def try_draft(self, user: UserHistory, row: Mapping[str, Any], count: TokenCounter) -> Draft | RowError:
        """A draft, or why there is none."""
        try:
            return draft_context(user, self.signals_of(row), serve_ds=self.serve_ds, shape=self.shapes[row["method"]], count=count)
        except RowError as error:
            return error

    def try_finish(self, draft: Draft, tokens: int, row: Mapping[str, Any], count: TokenCounter) -> dict[str, object]:
        """The finished columns, or why there are none."""
        try:
            return finish_context(draft, tokens, ds=self.ds, shape=self.shapes[row["method"]], count=count)
        except RowError as error:
            return fault_fields(error)

    def known_user(self, row: Mapping[str, Any]) -> UserHistory:
        """What was gathered of one user."""
        entries = [with_campaign(entry, row["locale"]) if entry.action in CAMPAIGN_ACTIONS else entry for entry in row["entries"]]
        return UserHistory(row["user_id"], row["locale"], row["attributes"], entries, row["unknown_item_count"], ZoneInfo(self.zone))

    def signals_of(self, row: Mapping[str, Any]) -> list[str]:
        """The signal lines of the user's place."""
        return self.surroundings[(row["region"], row["locale"])][0]

    def key_of(self, row: Mapping[str, Any]) -> dict[str, object]:
        """The columns that say whose row it is, and for when."""
        return {
            "ds": self.ds,
            "publish_id": self.publish_id,
            "scenario": self.scenario,
            "method": row["method"],
            "user_id": row["user_id"],
            "user_bucket": row["user_bucket"],
            "locale": row["locale"],
            "region": row["region"],
            "serve_ds": self.serve_ds,
            "situation_id": self.surroundings[(row["region"], row["locale"])][1],
        }


def fault_fields(error: RowError) -> dict[str, object]:
    """What a row says that could not be made."""
    return {"reason": error.reason, "detail": error.detail}


def read_users(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows of a batch with `entries` as Entry tuples; column by column, for a dict per entry would cost most of the time."""
    lists: Any = batch.column("entries")  # the stubs know no list array
    flat = lists.flatten()
    columns = {name: flat.field(flat.type.get_field_index(name)).to_pylist() for name in ENTRY_FIELDS}
    columns["title"] = each_once(columns["title"], lambda title: short_title(title) or "-")
    for name in ("category", "item_type"):
        columns[name] = each_once(columns[name], lambda text: (clean_text(text) or None) if text else None)
    entries = list(map(Entry, *columns.values()))
    lengths = [length or 0 for length in lists.value_lengths().to_pylist()]
    plain = batch.drop_columns(["entries"]).to_pylist()
    start = 0
    for row, length in zip(plain, lengths, strict=True):
        attributes = [(attribute["name"], attribute["value"]) for attribute in row["attributes"] or []]
        unknown = row["unknown_item_count"] or 0
        yield {**row, "entries": entries[start : start + length], "attributes": attributes, "unknown_item_count": unknown}
        start += length


def with_campaign(entry: Entry, locale: str) -> Entry:
    """A coupon or mailing without an item is called by its campaign, for the bare id says nothing."""
    if entry.item_id is not None:
        return entry
    return entry._replace(title=words_of(locale).campaign.format(campaign_id=entry.title))


def each_once(values: Sequence[T], change: Callable[[T], T]) -> list[T]:
    """`change` of every value, asked for once per distinct one: the users of a night buy the same things."""
    changed = {value: change(value) for value in set(values)}
    return [changed[value] for value in values]


@cache
def token_counter(tokenizer_dir: str) -> TokenCounter:
    """The counter of a worker process, with what it remembers."""
    return TokenCounter(load_tokenizer(Path(tokenizer_dir)).count_batch)


def row_ddl() -> str:
    """The columns of a written row as Spark's DDL: the contract's, and the faults."""
    columns = [(column.name, column.type) for column in load_contract(TABLE).columns] + [(name, "string") for name in FAULTS]
    return ", ".join(f"{name} {type_}" for name, type_ in columns)


def row_schema() -> pa.Schema:
    """The contract's schema and the faults; all nullable, because a row that could not be made has only its key."""
    fields = [field.with_nullable(True) for field in arrow_schema(load_contract(TABLE))]
    return pa.schema([*fields, *[pa.field(name, pa.string()) for name in FAULTS]])


class StagedContexts(NamedTuple):
    """What lies staged, and the rows that could not be made: user_id, method, reason, detail."""

    row_count: int
    failed: list[dict[str, str]]
    context_tokens: int
    plain_tokens: int
    cut_line_count: int


def stage_contexts(session: SparkSession, warehouse: Warehouse, audience: DataFrame, writer: ContextWriter, stage: Path) -> StagedContexts:
    """Gathers, writes and stages the rows of an audience; `stage` then holds the good rows as Parquet.

    Rows of users, and nobody else's, are read. All rows are written once as drafts, because a plan is computed each time it is used.
    """
    users = audience.select("user_id").distinct()
    profiles = current_profiles(session, warehouse, writer.ds)
    buckets = night_buckets(session, warehouse, writer.ds).join(users, "user_id", "left_semi")
    histories = gather_histories(buckets, current_items(session, warehouse, writer.ds))
    drafts = stage.with_name(f"{stage.name}_drafts")
    with effect("stage.write", "user_contexts drafts"):
        drafts.mkdir(parents=True)
        build_contexts(audience, profiles, histories, writer).write.mode("overwrite").parquet(str(drafts))
    written = session.read.schema(row_ddl()).parquet(str(drafts))
    is_good = F.col("reason").isNull()
    with effect("stage.write", TABLE):
        written.filter(is_good).drop(*FAULTS).write.mode("overwrite").parquet(str(stage))
        stage.mkdir(exist_ok=True)  # no rows may leave no folder
    failed = written.filter(~is_good).select("user_id", "method", *FAULTS).orderBy("user_id", "method").collect()
    sums = written.agg(
        F.count(F.lit(1)).alias("row_count"),
        *[F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in ("context_tokens", "plain_tokens", "cut_line_count")],
    ).collect()[0]
    with effect("stage.remove", "user_contexts drafts"):
        shutil.rmtree(drafts, ignore_errors=True)
    return StagedContexts(
        sums["row_count"],
        [row.asDict() for row in failed],
        sums["context_tokens"],
        sums["plain_tokens"],
        sums["cut_line_count"],
    )
