"""Every view gives the same rows on DuckDB and on Spark, whatever their order."""

from __future__ import annotations

import pytest

from recgpt_ops.delta.sql import connect, fetch_select
from recgpt_ops.tables import all_contracts
from recgpt_ops.views import all_relations, all_views
from tests.sql.conftest import add_spark_views, readme_snippet

NAMES = [relation.name for relation in all_relations(stored="stored_")]


def plain(value: object) -> object:
    """A value without what the engines spell apart: times by their digits, floats to nine places, rows as tuples."""
    if isinstance(value, float):
        return round(value, 9)
    if isinstance(value, dict):
        return tuple(plain(inner) for inner in value.values())
    if isinstance(value, list):
        return tuple(plain(inner) for inner in value)
    if hasattr(value, "asDict"):
        return plain(value.asDict())
    return str(value)[:19] if hasattr(value, "isoformat") else value


def same_order(rows: list) -> list[tuple]:
    return sorted((tuple(plain(value) for value in row) for row in rows), key=repr)


@pytest.fixture(scope="module")
def session(spark, shop):
    add_spark_views(spark, shop)
    return spark


@pytest.fixture(scope="module")
def duck(shop):
    return connect(shop)


@pytest.mark.parametrize("name", NAMES)
def test_both_engines_give_the_same_rows(session, duck, name):
    columns, rows = fetch_select(duck, f"SELECT * FROM {name}")
    table = session.sql(f"SELECT * FROM {name}").toArrow()
    assert table.column_names == columns
    assert same_order([tuple(row.values()) for row in table.to_pylist()]) == same_order(rows)


def test_the_shop_has_rows_for_every_view(duck):
    assert [name for name in all_views() if not fetch_select(duck, f"SELECT 1 FROM {name} LIMIT 1")[1]] == []


@pytest.mark.usefixtures("delta_spark")
def test_the_lines_for_spark_in_the_readme_run_as_they_stand(spark, shop, capsys):
    exec(compile(readme_snippet(), "sql/README.md", "exec"), {"spark": spark, "root": shop.root})
    assert "user_count" in capsys.readouterr().out
    assert spark.sql("SELECT ds FROM night_summary").toArrow().num_rows == 3


@pytest.mark.usefixtures("delta_spark")
def test_over_an_empty_warehouse_every_table_and_view_is_empty(spark, bare, capsys):
    exec(compile(readme_snippet(), "sql/README.md", "exec"), {"spark": spark, "root": bare.root})
    assert len(NAMES) == len(all_contracts()) + len(all_views())
    assert {name: spark.sql(f"SELECT * FROM {name}").toArrow().num_rows for name in NAMES} == dict.fromkeys(NAMES, 0)
