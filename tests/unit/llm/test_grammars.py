"""Every schema of a recipe is compiled before a night starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from recgpt_ops.errors import ConfigError
from recgpt_ops.llm.grammars import check_schemas
from recgpt_ops.llm.structured import compact_schema

GOOD = compact_schema(
    {"type": "array", "items": {"type": "string", "pattern": "^[a-z]{2,12}( [a-z]{2,12}){0,3}$"}, "minItems": 5, "maxItems": 5}
)


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small byte-level tokenizer."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=["<|im_end|>"], initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(["milk and bread"] * 5, trainer)
    folder = tmp_path_factory.mktemp("model")
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def test_good_schemas_compile(model_dir: Path) -> None:
    check_schemas(
        {"planner.schema": GOOD, "arbiter.schema": '{"type":"object","properties":{"ids":{"type":"array"}}}'}, model_dir=model_dir
    )


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        ({"type": "string", "pattern": "[("}, "experts.schema: does not compile"),
        ({"type": "no such type"}, "experts.schema: does not compile"),
        ({"$ref": "#/$defs/missing"}, "experts.schema: does not compile"),
        ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, r"experts.schema: \$.uniqueItems is not enforced"),
        ({"type": "object", "properties": {"n": {"type": "integer", "multipleOf": 2}}}, r"\$.properties.n.multipleOf is not enforced"),
        ({"type": "string", "pattern": "^a+$", "maxLength": 5}, "write the length into the pattern"),
        ({"type": "string", "pattern": "^(?!the )[a-z]+$"}, "look-around is silently ignored"),
        ({"anyOf": [{"type": "array", "contains": {"const": 1}}]}, r"\$.anyOf\[0\].contains is not enforced"),
    ],
)
def test_case_025_a_schema_that_the_grammar_cannot_take_stops_the_run_before_anything_is_loaded(
    model_dir: Path, schema: dict[str, object], fault: str
) -> None:
    with pytest.raises(ConfigError, match=fault):
        check_schemas({"planner.schema": GOOD, "experts.schema": compact_schema(schema)}, model_dir=model_dir)


def test_case_026_empty_schemas_are_all_told_at_once(model_dir: Path) -> None:
    with pytest.raises(ConfigError, match="2 faults") as refused:
        check_schemas({"planner.schema": "", "experts.schema": "false", "arbiter.schema": GOOD}, model_dir=model_dir)
    assert [fault.split()[0] for fault in refused.value.faults] == ["planner.schema", "experts.schema"]
