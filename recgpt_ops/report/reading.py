"""What a report shows, read by the SQL that people have too: only what is visible. One read a section.

connection = connect(warehouse)
rows(connection, TAGS, ds="2017-10-30", scenario="default")
->  [{"method": "v2", "tags": 48, "distinct_tags": 43}, ...]

Every read has an order, so that the same tables always make the same page.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import duckdb

Row = dict[str, Any]
Rows = list[Row]

PUBLICATIONS = """
SELECT ds, method, publish_id, fence, why FROM publications WHERE scenario = $scenario
QUALIFY row_number() OVER (PARTITION BY ds, method ORDER BY fence DESC) = 1
ORDER BY ds, method
"""
STAGES = """
SELECT * FROM nights WHERE ds = $ds AND scenario = $scenario
QUALIFY row_number() OVER (PARTITION BY stage, attempt ORDER BY state = 'done' DESC, state = 'failed' DESC, recorded_at DESC) = 1
ORDER BY attempt, recorded_at, stage
"""  # one row a stage and attempt: the state it reached
USERS = """
SELECT method, status, count(*) AS users FROM night_users WHERE ds = $ds AND scenario = $scenario GROUP BY ALL ORDER BY ALL
"""
TAGS = """
SELECT method, count(*) AS tags, count(DISTINCT tag_id) AS distinct_tags FROM intent_tags
WHERE ds = $ds AND scenario = $scenario GROUP BY ALL ORDER BY ALL
"""
ASSIGNMENTS = """
SELECT method, status, count(*) AS items, count(DISTINCT explanation_id) AS texts FROM explanation_assignments
WHERE ds = $ds AND scenario = $scenario GROUP BY ALL ORDER BY ALL
"""
TEXTS = """
SELECT method, count(*) AS texts FROM explanations WHERE ds = $ds AND scenario = $scenario GROUP BY ALL ORDER BY ALL
"""
GRADES = """
SELECT method, judge_method, status, label, count(*) AS verdicts, bool_or(is_self_judged) AS is_self_judged
FROM {table} WHERE ds = $ds AND scenario = $scenario GROUP BY method, judge_method, status, label ORDER BY ALL
"""
LEVELS = """
SELECT method, judge_method, level.dimension AS dimension, level.status AS status, level.level AS level, count(*) AS verdicts
FROM (SELECT method, judge_method, unnest(levels) AS level FROM {table} WHERE ds = $ds AND scenario = $scenario)
GROUP BY ALL ORDER BY ALL
"""
QUARANTINE = """
SELECT coalesce(method, '') AS method, table_name, stage, reason, count(*) AS rows, min(detail) AS example
FROM quarantine WHERE ds = $ds AND scenario = $scenario GROUP BY ALL ORDER BY rows DESC, table_name, stage, reason, method
"""
HELD_IMPORTS = """
SELECT table_name, stage, reason, count(*) AS rows, min(detail) AS example FROM quarantine WHERE ds IS NULL
GROUP BY ALL ORDER BY rows DESC, table_name, stage, reason
"""
CALLS = """
SELECT method, stage, role, count(*) AS calls, sum(prompt_tokens) AS prompt_tokens, sum(coalesce(cached_tokens, 0)) AS cached_tokens,
  sum(coalesce(computed_tokens, prompt_tokens)) AS computed_tokens, sum(completion_tokens) AS completion_tokens
FROM llm_calls WHERE ds = $ds AND scenario = $scenario GROUP BY ALL ORDER BY ALL
"""
EVALUATIONS = """
SELECT * FROM evaluations WHERE ds = $ds
QUALIFY made_at = max(made_at) OVER (PARTITION BY name, data_set, split)
ORDER BY name, data_set, split, metric, arm
"""  # of each kind of evaluation the newest
SHOWN_USERS = """
SELECT user_id FROM night_users WHERE ds = $ds AND scenario = $scenario GROUP BY user_id ORDER BY sha256(user_id) LIMIT $most
"""
TOP_TAGS = """
SELECT user_id, method, any_value(locale) AS locale, list(tag ORDER BY rank) AS tags FROM intent_tags
WHERE ds = $ds AND scenario = $scenario AND rank <= 3 AND user_id IN (SELECT unnest($users)) GROUP BY ALL ORDER BY ALL
"""
USER_COUNT = "SELECT count(DISTINCT user_id) AS users FROM night_users WHERE ds = $ds AND scenario = $scenario"
STATUSES = """
SELECT user_id, method, status, locale FROM night_users
WHERE ds = $ds AND scenario = $scenario AND user_id IN (SELECT unnest($users)) ORDER BY ALL
"""
OF_USERS = "SELECT * FROM {table} WHERE ds = $ds AND scenario = $scenario AND user_id IN (SELECT unnest($users)) ORDER BY ALL"
EXPLANATIONS = """
SELECT e.* FROM explanations e WHERE e.ds = $ds AND e.scenario = $scenario AND explanation_id IN (
  SELECT explanation_id FROM explanation_assignments WHERE ds = $ds AND scenario = $scenario AND user_id IN (SELECT unnest($users)))
ORDER BY ALL
"""
EXPLANATION_VERDICTS = EXPLANATIONS.replace("explanations e", "explanation_verdicts e")
ITEMS = """
SELECT item_id, locale, title, category, item_type, brand FROM items WHERE valid_from_ds <= $ds AND item_id IN (SELECT unnest($items))
QUALIFY row_number() OVER (PARTITION BY item_id ORDER BY valid_from_ds DESC) = 1
ORDER BY item_id
"""  # also an item that is no longer sold has the name under which it was bought


class Night(NamedTuple):
    """One night as it is read: the tables, which night, and its visible methods in the order they are shown."""

    connection: duckdb.DuckDBPyConnection
    ds: str
    scenario: str
    methods: tuple[str, ...]


def rows(connection: duckdb.DuckDBPyConnection, sql: str, **values: object) -> Rows:
    """The rows of one read, each by its columns' names."""
    found = connection.execute(sql, values)
    names = [column[0] for column in found.description or []]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def night_rows(night: Night, sql: str, **values: object) -> Rows:
    """`rows` of one night; `{table}` in a statement stands for a table's name and is filled in by the caller."""
    return rows(night.connection, sql, ds=night.ds, scenario=night.scenario, **values)
