from __future__ import annotations

import pytest

from recgpt_ops.errors import ConfigError
from recgpt_ops.tables import all_contracts, load_contract
from recgpt_ops.views import all_relations, all_views, parse_view, shown_name, sources, visible_select

HEAD = """-- How many users there are,
-- night after night.
-- grain: one row per ds
-- ds: Business date
-- users: Users of the night,
--   carried ones among them
"""
SELECT = "SELECT ds, count(*) AS users FROM night_users GROUP BY ds;\n"


@pytest.fixture
def written(tmp_path):
    def write(text: str):
        path = tmp_path / "users.sql"
        path.write_text(text)
        return path

    return write


def test_the_comment_at_the_head_says_what_a_row_is_and_each_column(written):
    view = parse_view(written(HEAD + SELECT))
    assert (view.name, view.description, view.grain) == ("users", "How many users there are, night after night.", "one row per ds")
    assert view.columns == (("ds", "Business date"), ("users", "Users of the night, carried ones among them"))
    assert view.select == "SELECT ds, count(*) AS users FROM night_users GROUP BY ds"


def test_a_view_that_widens_a_table_takes_over_its_columns(written):
    view = parse_view(written("-- Prompts.\n-- grain: one row\n-- columns of prompts_v1, and\n-- uses: How often\nSELECT 1\n"))
    assert [name for name, _ in view.columns] == [*load_contract("prompts").column_names, "uses"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (SELECT, "expected a comment at its head"),
        (HEAD.replace("-- grain: one row per ds\n", "") + SELECT, "expected a comment at its head"),
        (HEAD + "-- and so on\n" + SELECT, "expected `-- column: meaning`, got 'and so on'"),
    ],
)
def test_a_view_without_a_full_head_is_refused(written, text, told):
    with pytest.raises(ConfigError, match=r"sql/views/users\.sql") as raised:
        parse_view(written(text))
    assert told in str(raised.value)


def test_the_views_that_analysts_were_promised_are_there():
    promised = {"intent_tags", "explanations", "verdicts", "night_summary", "user_journey", "tag_trends", "method_comparison"}
    assert promised == set(all_views())


def test_each_relation_stands_after_what_it_reads():
    seen: set[str] = set()
    known = {relation.name for relation in all_relations(stored="stored_")}
    for relation in all_relations(stored="stored_"):
        assert sources(relation.select) & known <= seen
        seen.add(relation.name)
    assert len(seen) == len(all_contracts()) + len(all_views())


def test_what_a_select_reads_is_found_and_comments_and_schemas_are_not():
    assert sources("-- FROM nowhere\nSELECT 1 FROM a JOIN b ON 1 = 1 join stored.c ON 1 = 1 FROM (SELECT 2)") == {"a", "b"}


def test_a_table_is_called_by_its_short_name_unless_a_view_took_it():
    assert shown_name(load_contract("night_users")) == "night_users"
    assert shown_name(load_contract("intent_tags")) == "intent_tags_v1"


@pytest.mark.parametrize("word", ["QUALIFY", "REPLACE", "SEMI JOIN", "ARRAY[", "UNNEST", "LATERAL"])
def test_selects_hold_nothing_that_one_of_the_engines_does_not_know(word):
    selects = [visible_select(contract, stored="stored.") for contract in all_contracts().values()]
    assert [select for select in [*selects, *(view.select for view in all_views().values())] if word in select.upper()] == []
