"""Every contract is found, parses, says what its columns mean, and agrees with the rows that code builds for it."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from recgpt_ops.delta.certificates import Certificate
from recgpt_ops.delta.check_columns import contract_checks
from recgpt_ops.delta.generations import SCOPE_COLUMNS
from recgpt_ops.delta.quarantine import QuarantineRow
from recgpt_ops.errors import ConfigError
from recgpt_ops.tables import SCHEMAS, all_contracts, load_contract, parse_contract

CONTRACTS = all_contracts()


def test_every_file_is_a_contract_and_none_was_overlooked():
    files = sorted(path.stem for path in SCHEMAS.iterdir() if path.suffix == ".yaml")
    assert files == sorted(contract.table_id for contract in CONTRACTS.values())
    assert len(files) >= 19


@pytest.mark.parametrize("name", CONTRACTS)
def test_a_contract_says_what_it_is_about(name):
    contract = CONTRACTS[name]
    for text in (contract.description, contract.grain, contract.retention, contract.producer):
        assert text.strip()
    assert contract.readers
    assert contract.grain.startswith("one row per ")
    for column in contract.columns:
        assert len(column.description) >= 5, column.name


@pytest.mark.parametrize("name", CONTRACTS)
def test_keys_and_partitions_are_strings_or_numbers_that_are_never_null(name):
    contract = CONTRACTS[name]
    assert contract.key
    for column in map(contract.column, (*contract.key, *contract.partition_by)):
        assert not column.nullable, column.name
        assert column.type in {"string", "int", "long"}, column.name
    assert all(contract.column(column).type == "string" for column in contract.partition_by)


@pytest.mark.parametrize("name", CONTRACTS)
def test_tables_of_a_kind_share_their_key_and_partition(name):
    contract = CONTRACTS[name]
    if contract.kind == "night":
        assert contract.partition_by == ("ds", "publish_id")
        assert {"ds", "scenario"} <= set(contract.key)
        assert ("method" in contract.key) == (name != "environment_signals")
        assert "publish_id" in contract.volatile
    if contract.kind == "state":
        assert contract.partition_by == ("bucket", "publish_id")
        assert "publish_id" in contract.volatile
    if contract.kind in {"feed", "state"}:
        assert not {"ds", "scenario", "method"} & set(contract.column_names)
    if contract.kind in SCOPE_COLUMNS:
        assert SCOPE_COLUMNS[contract.kind] in contract.column_names


@pytest.mark.parametrize("name", [name for name, contract in CONTRACTS.items() if contract.kind == "night"])
def test_night_tables_with_text_say_its_language(name):
    texts = {"text", "tag", "title", "reason", "user_summary"} & set(CONTRACTS[name].column_names)
    assert not texts or "locale" in CONTRACTS[name].column_names


@pytest.mark.parametrize("name", CONTRACTS)
def test_column_names_follow_the_house(name):
    for column in CONTRACTS[name].columns:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", column.name)
        if column.name.endswith("_at"):
            assert column.type == "timestamp"
        if column.type == "timestamp":
            assert column.name.endswith("_at")
        if column.name.endswith("_count"):
            assert column.type in {"int", "long"}


@pytest.mark.parametrize("name", CONTRACTS)
def test_every_rule_has_the_arguments_it_needs(name):
    needed = {"in_set": {"values"}, "matches": {"pattern"}}
    for check in contract_checks(CONTRACTS[name]):
        assert needed.get(check.rule, set()) <= set(check.arguments), check
        if check.rule in {"between", "length_between", "row_count_between"}:
            assert {"min", "max"} & set(check.arguments), check
            assert set(check.arguments) <= {"min", "max"}, check
        if check.rule == "between":
            assert CONTRACTS[name].column(check.columns[0]).type in {"int", "long", "double"}, check
        if check.rule in {"in_set", "matches", "length_between"}:
            assert CONTRACTS[name].column(check.columns[0]).type == "string", check


def test_no_two_rules_of_a_contract_are_the_same():
    for name, contract in CONTRACTS.items():
        rules = [str(check) for check in contract_checks(contract)]
        assert len(set(rules)) == len(rules), name


def test_certificates_are_built_as_their_contract_says():
    built = {field.name for field in fields(Certificate)} - {"warnings"} | {"certificate_id"}
    assert built == set(load_contract("certificates").column_names)


def test_quarantine_rows_are_built_as_their_contract_says():
    built = {*QuarantineRow._fields, "quarantine_id", "quarantined_at"}
    assert built == set(load_contract("quarantine").column_names)
    nullable = {column.name for column in load_contract("quarantine").columns if column.nullable}
    assert nullable == set(QuarantineRow._field_defaults)


def test_all_faults_of_a_contract_are_told_at_once(tmp_path):
    text = (SCHEMAS / "prompts_v1.yaml").read_text()
    broken = tmp_path / "prompts_v2.yaml"
    broken.write_text(text.replace("type: string", "type: varchar", 1).replace("kind: record", "kind: log").replace("key: [", "key: [id, "))
    with pytest.raises(ConfigError) as raised:
        parse_contract(broken)
    assert len(raised.value.faults) == 4  # type, kind, key and the version in the file name


def test_an_unknown_table_is_told_with_the_tables_there_are():
    with pytest.raises(ConfigError, match="no contract for table 'intent_tag'; there are behavior_days"):
        load_contract("intent_tag")
