from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from recgpt_ops.delta import checks
from recgpt_ops.delta.pointer import move_pointer
from recgpt_ops.delta.records import append_records
from recgpt_ops.delta.sql import connect, fetch_select
from recgpt_ops.delta.warehouse import Warehouse, open_warehouse
from recgpt_ops.errors import UsageError
from recgpt_ops.tables import all_contracts
from recgpt_ops.views import all_views, shown_name
from tests.unit.delta.conftest import DS

NEXT = "2017-10-31"


@pytest.fixture(autouse=True)
def unchecked(monkeypatch):
    monkeypatch.setattr(checks, "run_checks", lambda *_: [])


@pytest.fixture
def show(warehouse):
    """show(ds, fence, publish_id): moves the pointer of method v2."""

    def move(ds: str, fence: int, publish_id: str) -> None:
        move_pointer(
            warehouse, ds=ds, scenario="default", method="v2", fence=fence, publish_id=publish_id, input_digest="i",
            certificate_sha256="c", why="night", published_by="run",
        )  # fmt: skip

    return move


@pytest.fixture(scope="module")
def empty(tmp_path_factory) -> Warehouse:
    """A warehouse without nights, for what a query may and may not do."""
    return open_warehouse(str(tmp_path_factory.mktemp("warehouse")))


@pytest.fixture(scope="module")
def locked(empty):
    return connect(empty)


def query(warehouse, sql: str) -> list[tuple]:
    return fetch_select(connect(warehouse), sql)[1]


def test_every_table_can_be_queried_before_anything_was_made(warehouse):
    connection = connect(warehouse)
    for contract in all_contracts().values():
        assert fetch_select(connection, f"SELECT * FROM {shown_name(contract)}") == (list(contract.column_names), [])


def test_a_view_over_an_empty_warehouse_has_no_rows_and_its_columns(locked):
    for name, view in all_views().items():
        assert fetch_select(locked, f"SELECT * FROM {name}") == ([column for column, _ in view.columns], [])


def test_a_view_that_takes_a_tables_name_has_the_tables_columns_first():
    taken = [contract for contract in all_contracts().values() if contract.name in all_views()]
    assert [shown_name(contract) for contract in taken] == ["explanations_v1", "intent_tags_v1"]
    for contract in taken:
        named = [column for column, _ in all_views()[contract.name].columns]
        assert named[: len(contract.columns)] == list(contract.column_names)


def test_what_tables_and_views_are_made_of_is_not_listed(locked):
    listed = [name for (name,) in fetch_select(locked, "SHOW TABLES")[1]]
    assert listed == sorted([*map(shown_name, all_contracts().values()), *all_views()])


def test_rows_are_seen_when_the_pointer_names_their_generation_and_not_before(warehouse, rows, publish, show):
    publish("night_users", rows("night_users", {}))
    publish("intent_tags", rows("intent_tags", {}))
    assert query(warehouse, "SELECT * FROM intent_tags") == []
    assert query(warehouse, "SELECT * FROM night_users") == []
    show(DS, 1, "p1")
    assert query(warehouse, "SELECT ds, method, user_id, tag FROM intent_tags") == [(DS, "v2", "u1", "red wine")]
    assert query(warehouse, "SELECT user_id FROM night_users") == [("u1",)]


def test_a_newer_generation_takes_the_place_of_the_older(warehouse, rows, publish, show):
    for fence, publish_id in ((1, "p1"), (2, "p2")):
        publish("night_users", rows("night_users", {"publish_id": publish_id, "made_by": publish_id}), publish_id=publish_id)
        publish("intent_tags", rows("intent_tags", {"publish_id": publish_id, "tag": publish_id}), publish_id=publish_id)
        show(DS, fence, publish_id)
    assert query(warehouse, "SELECT tag FROM intent_tags") == [("p2",)]


def test_eight_more_users_are_seen_beside_the_first(warehouse, rows, publish, show):
    """The second attempt's night_users names p1 for the user that p1 computed."""
    publish("night_users", rows("night_users", {}))
    publish("intent_tags", rows("intent_tags", {}))
    show(DS, 1, "p1")
    both = rows("night_users", {"publish_id": "p2", "made_by": "p1"}, {"publish_id": "p2", "made_by": "p2", "user_id": "u2"})
    publish("night_users", both, publish_id="p2")
    publish("intent_tags", rows("intent_tags", {"publish_id": "p2", "user_id": "u2"}), publish_id="p2")
    show(DS, 2, "p2")
    assert query(warehouse, "SELECT user_id, publish_id FROM intent_tags ORDER BY 1") == [("u1", "p1"), ("u2", "p2")]


def test_a_carried_user_stands_in_both_nights_each_under_its_ds(warehouse, rows, publish, show):
    publish("night_users", rows("night_users", {}))
    publish("intent_tags", rows("intent_tags", {}))
    show(DS, 1, "p1")
    carried = {"ds": NEXT, "publish_id": "p2", "made_by": "p1", "computed_ds": DS, "status": "carried"}
    publish("night_users", rows("night_users", carried), publish_id="p2", scopes=[NEXT])
    show(NEXT, 1, "p2")
    assert query(warehouse, "SELECT ds, user_id, publish_id FROM intent_tags ORDER BY 1") == [(DS, "u1", "p1"), (NEXT, "u1", "p1")]


def test_rows_of_an_attempt_that_no_night_names_are_hidden(warehouse, rows, publish, show):
    publish("night_users", rows("night_users", {}))
    publish("intent_tags", rows("intent_tags", {}))
    publish("intent_tags", rows("intent_tags", {"publish_id": "p9", "tag": "late"}), publish_id="p9")
    show(DS, 1, "p1")
    assert query(warehouse, "SELECT tag FROM intent_tags") == [("red wine",)]


def test_signals_of_a_night_are_shown_once(warehouse, rows, publish, show):
    publish("environment_signals", rows("environment_signals", {}))
    publish("environment_signals", rows("environment_signals", {"publish_id": "p2"}), publish_id="p2")
    publish("environment_signals", rows("environment_signals", {"publish_id": "p3", "name": "spring"}), publish_id="p3")
    both = rows("night_users", {"publish_id": "p2", "made_by": "p1"}, {"publish_id": "p2", "made_by": "p2", "user_id": "u2"})
    publish("night_users", both, publish_id="p2")
    show(DS, 1, "p2")
    assert query(warehouse, "SELECT ds, name FROM environment_signals") == [(DS, "autumn")]


def test_of_a_bucket_the_newest_generation_is_shown(warehouse, rows, publish):
    for publish_id, cut in (("p1", DS), ("p2", NEXT)):
        built = rows("behavior_days", {"publish_id": publish_id, "arrived_cut_ds": cut})
        publish("behavior_days", built, publish_id=publish_id, scopes=["2017-10-29"], arrived_cut_ds=cut)
    assert query(warehouse, "SELECT publish_id FROM behavior_days") == [("p2",)]


def test_feeds_and_records_are_whole(warehouse, rows, publish):
    publish("behavior_events", rows("behavior_events", {"event_id": "e1"}, {"event_id": "e2"}), publish_id="i1", scopes=["i1"])
    row = {
        "prompt_id": "a",
        "name": "n",
        "version": "v1",
        "locale": "en",
        "text": "x",
        "first_used_at": rows("behavior_events", {})["event_at"][0].as_py(),
    }
    append_records(warehouse, "prompts", [row])
    assert query(warehouse, "SELECT count(*), max(event_at)::varchar FROM behavior_events") == [(2, "1970-01-01 00:00:00+00")]
    assert query(warehouse, "SELECT name FROM prompts") == [("n",)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/hostname')",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM '/etc/hostname.csv'",
        "COPY (SELECT 1) TO '/tmp/never_written.csv'",
        "ATTACH '/tmp/never_written.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "PRAGMA database_list",
        "CREATE TABLE mine AS SELECT 1",
        "INSERT INTO prompts SELECT * FROM prompts",
        "DROP VIEW intent_tags",
        "EXPORT DATABASE '/tmp/never_written'",
        "SELECT 1; DROP VIEW intent_tags",
        "",
        "-- nothing",
    ],
)
def test_nothing_but_reading_the_tables_passes(locked, sql):
    with pytest.raises(UsageError) as raised:
        fetch_select(locked, sql)
    assert "\n" not in str(raised.value)


def test_columns_of_one_name_are_told_apart_and_none_is_lost(locked):
    assert fetch_select(locked, "select 1 as a, 2 as a, 3 as a_1, 4 as a") == (["a", "a_2", "a_1", "a_3"], [(1, 2, 3, 4)])


def test_a_query_does_not_find_the_variables_of_the_program_that_runs_it(warehouse):
    secrets = pa.table({"secret": ["s"]})
    with pytest.raises(duckdb.CatalogException, match="secrets does not exist"):
        connect(warehouse).execute("SELECT * FROM secrets")
    assert secrets.num_rows == 1


@pytest.mark.parametrize("sql", ["FROM intent_tags", "DESCRIBE intent_tags", "EXPLAIN SELECT 1", "WITH a AS (SELECT 1) SELECT * FROM a"])
def test_what_reads_passes(locked, sql):
    fetch_select(locked, sql)


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT * FROM intent_tag", "did you mean intent_tags?"),
        ("SELECT * FROM Intent_Tags_v2", "did you mean intent_tags_v1?"),
        ("SELECT * FROM night_sumary", "did you mean night_summary?"),
        ("SELECT * FROM explanation", "did you mean explanations?"),  # not stored.generations, which is no one's business
        ("SELECT tags_count FROM night_summary", "did you mean tag_count?"),
        ("SELECT tagg FROM intent_tags", "did you mean tag?"),
        ("SELECT t.user FROM intent_tags t", "did you mean user_id?"),
        ("SELEC 1", "syntax error"),
    ],
)
def test_a_wrong_name_is_told_with_the_nearest_right_one(locked, sql, told):
    with pytest.raises(UsageError) as raised:
        fetch_select(locked, sql)
    assert told in str(raised.value)
    assert raised.value.exit_code == 2
