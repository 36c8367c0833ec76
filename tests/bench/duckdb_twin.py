"""The same work as histories and contexts in DuckDB: what a person would write who needs the result once, on one machine.

Left out of it, and so a part of what the ratio tells: checks, digests, certificates, generations, quarantine, groups.
"""

from __future__ import annotations

import time
from pathlib import Path

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from recgpt_ops.contexts.buckets import STATE_TABLES, bucket_span
from recgpt_ops.llm.tokenizer import load_tokenizer
from tests.bench.contexts import BUDGET_TOKENS, tokenizer_dir

KEPT = "('detail_view', 'review_read', 'favorite', 'cart', 'purchase', 'search', 'coupon', 'campaign')"
RULES = f"""
create table ids as select *, sha256(concat_ws(chr(31), source, event_id)) as id from events;
create table once as select * exclude (id) from ids qualify row_number() over (partition by id order by arrived_ds) = 1;
create table pairs as select distinct user_id, item_id from once where action = 'return';
create table netted as
with signed as (
  select o.*, if(action = 'return', -1, 1) * coalesce(quantity, 1) as s from once o join pairs using (user_id, item_id)
  where action in ('purchase', 'return')),
summed as (select *, sum(s) over w as p from signed
  window w as (partition by user_id, item_id order by event_at, action = 'return', event_id)),
level as (select *, p - least(0, min(p) over w) as h from summed
  window w as (partition by user_id, item_id order by event_at, action = 'return', event_id)),
remains as (select *, greatest(0, min(h) over w - (h - s)) as kept_pieces from level window w as
  (partition by user_id, item_id order by event_at, action = 'return', event_id rows between current row and unbounded following))
select * exclude (s, p, h, kept_pieces, quantity), kept_pieces::bigint as quantity from remains
where action = 'purchase' and kept_pieces > 0;
create table kept as
select user_id, user_bucket, action, item_id, query, campaign_id, quantity, event_at, event_ds from once
where action in {KEPT} and not (action = 'purchase' and (user_id, item_id) in (select (user_id, item_id) from pairs))
union all select user_id, user_bucket, action, item_id, query, campaign_id, quantity, event_at, event_ds from netted;
"""
STATE = """
create table {table} as
with entries as (
  select substr(event_ds, 1, {chars}) as bucket, user_id, user_bucket, action, item_id,
    if(item_id is null, coalesce(query, campaign_id), null) as query, count(*) as event_count, sum(quantity)::bigint as quantity,
    max(event_at) as last_event_at
  from kept where event_ds between '{first}' and '{last}' group by all),
placed as (select *, row_number() over (
  partition by bucket, user_id, action order by last_event_at desc, item_id, query) as place from entries)
select bucket, user_id, user_bucket, action,
  list(struct_pack(item_id, query, event_count, quantity, last_event_at) order by place) filter (place <= 500) as entries,
  count(*) as entry_count, sum(event_count)::bigint as event_count, max(last_event_at) as last_event_at
from placed group by all
"""
LINES = """
create table told as
with audience as (select user_id from profiles order by sha256(user_id) limit {users}),
states as (select * from behavior_days union all select * from behavior_months union all select * from behavior_years),
entries as (select user_id, bucket, action, unnest(entries) as e from states where user_id in (select user_id from audience)),
named as (
  select user_id, bucket, action, e.item_id as item_id, e.last_event_at as newest, coalesce(i.title, e.query) as title
  from entries left join items i on i.item_id = e.item_id where coalesce(i.title, e.query) is not null),
by_item as (
  select user_id, item_id, title, max(newest) as newest, count(*) as fact_count,
    string_agg(bucket || ' (' || action || ')', ', ' order by bucket desc, action) as facts
  from named group by all)
select user_id, facts || ' | ' || string_agg(distinct left(title, 80), '; ') as line, max(newest) as newest
from by_item group by user_id, facts;
create table plain as
select user_id, bucket || ' (' || action || ') | ' || coalesce(i.title, e.query) as line from
  (select user_id, bucket, action, unnest(entries) as e from
    (select * from behavior_days union all select * from behavior_months union all select * from behavior_years)
   where user_id in (select user_id from profiles order by sha256(user_id) limit {users})) left join items i on i.item_id = e.item_id;
"""
TEXTS = f"""
create table texts as
with running as (
  select t.*, row_number() over w as number, sum(c.tokens + 3) over w as total from told t join counted c using (line)
  window w as (partition by user_id order by newest desc, line rows unbounded preceding))
select user_id, 'History, newest first:' || string_agg(chr(10) || number || '. ' || line, '' order by number) as text
from running where total <= {BUDGET_TOKENS} or number = 1 group by user_id
"""


def measure_twin(root: str, ds: str, users: int) -> dict[str, object]:
    """Everything from events to Delta tables of buckets and contexts."""
    tokenizer = load_tokenizer(Path(tokenizer_dir()))
    connection = duckdb.connect()
    connection.execute("set TimeZone = 'UTC'")
    started = time.perf_counter()
    for name, table in (("events", "behavior_events"), ("items", "items"), ("profiles", "user_profiles")):
        connection.register(f"{name}_files", DeltaTable(f"{root}/{table}_v1").to_pyarrow_dataset())
    connection.execute(f"create table events as select * from events_files where arrived_ds <= '{ds}' and event_ds <= '{ds}'")
    connection.execute("create table items as select item_id, title from items_files")
    connection.execute("create table profiles as select user_id from profiles_files")
    connection.execute(RULES)
    for table, chars in zip(STATE_TABLES, (10, 7, 4), strict=True):
        first, last = bucket_span(table, ds)
        connection.execute(STATE.format(table=table, chars=chars, first=first or "0001-01-01", last=last))
        write_deltalake(f"{root}/twin_{table}", connection.sql(f"select * from {table}").to_arrow_table(), partition_by=["bucket"])
    connection.execute(LINES.format(users=users))
    count_into(connection, tokenizer.count_batch, "counted", "select distinct line from told")
    count_into(connection, tokenizer.count_batch, "plain_counted", "select distinct line from plain")
    connection.execute(TEXTS)
    count_into(connection, tokenizer.count_batch, "text_counted", "select distinct text as line from texts")
    rows = connection.sql(
        "select t.user_id, t.text, c.tokens, p.plain_tokens from texts t join text_counted c on c.line = t.text join "
        "(select user_id, sum(tokens)::bigint as plain_tokens from plain join plain_counted using (line) group by user_id) p "
        "on p.user_id = t.user_id"
    ).to_arrow_table()
    write_deltalake(f"{root}/twin_contexts", rows)
    return {"users": users, "rows": rows.num_rows, "seconds": time.perf_counter() - started}


def count_into(connection, count_batch, table: str, query: str) -> None:
    """A table (line, tokens) of the lines that a query returns."""
    lines = connection.sql(query).to_arrow_table()
    column = lines.column(0).combine_chunks()
    counted = pa.table({"line": column, "tokens": pa.array(count_batch(column.to_pylist()), pa.int64())})
    connection.register("counted_rows", counted)
    connection.execute(f"create table {table} as select * from counted_rows")
    connection.unregister("counted_rows")
