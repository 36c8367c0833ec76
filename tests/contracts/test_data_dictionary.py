from __future__ import annotations

from recgpt_ops.data_dictionary import README, dictionary_text, main, table_text
from recgpt_ops.tables import all_contracts, load_contract
from recgpt_ops.views import all_views


def test_the_data_dictionary_is_what_the_contracts_say():
    assert main(["--check"]) == 0, "run `make docs`"


def test_it_names_every_table_and_every_column():
    text = README.read_text()
    for contract in all_contracts().values():
        section = text.split(f"\n## {contract.table_id}\n")[1].split("\n## ")[0]
        for column in contract.columns:
            assert f"| `{column.name}` | `{column.type}` |" in section


def test_a_change_of_a_contract_is_noticed(monkeypatch, capsys, tmp_path):
    stale = tmp_path / "README.md"
    stale.write_text(README.read_text().replace("one row per event", "one row per click", 1))
    monkeypatch.setattr("recgpt_ops.data_dictionary.README", stale)
    assert main(["--check"]) == 1
    assert "run `make docs`" in capsys.readouterr().err
    assert main([]) == 0
    assert stale.read_text() == dictionary_text(list(all_contracts().values()), list(all_views().values()))


def test_it_names_every_view_and_every_column_of_it():
    text = README.read_text()
    for view in all_views().values():
        section = text.split(f"\n## {view.name}\n")[1].split("\n## ")[0]
        assert all(f"| `{name}` | {meaning}" in section for name, meaning in view.columns)


def test_a_section_reads_like_this():
    lines = table_text(load_contract("prompts")).splitlines()
    assert lines[:5] == [
        "## prompts_v1",
        "",
        "The text of every prompt template that was ever used. A rendered prompt is this and its inputs, and is not kept.",
        "",
        "- kind: record",
    ]
    assert "| `first_used_at` | `timestamp` |  | When this warehouse first used it (UTC). *volatile* |" in lines
