"""Model folders: safetensors only, made once, named by their content."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from recgpt_ops.errors import ConfigError, UsageError
from recgpt_ops.llm import models
from recgpt_ops.llm.models import MINILM, SMOLLM2, model_directory, model_hash


def folder(root: Path, **files: str) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for name, text in {"model__safetensors": "weights", "config__json": "{}", "tokenizer__json": "{}", **files}.items():
        (root / name.replace("__", ".")).write_text(text)
    return root


def test_a_folder_with_safetensors_is_taken_as_it_is(tmp_path: Path) -> None:
    assert model_directory(str(folder(tmp_path / "m")), models_root=tmp_path) == tmp_path / "m"


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        ({"pytorch_model__bin": "x"}, "pytorch_model.bin may run code when it is opened"),
        ({"consolidated__pth": "x"}, "consolidated.pth may run code"),
        ({"config__json": json.dumps({"auto_map": {"AutoModel": "modeling.Evil"}})}, "names code of its own"),
    ],
)
def test_what_could_run_code_is_refused(tmp_path: Path, files: dict[str, str], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        model_directory(str(folder(tmp_path / "m", **files)), models_root=tmp_path)


def test_a_missing_folder_and_missing_files_are_told_together(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no folder and no known model; known are smollm2-135m-instruct, all-minilm-l6-v2"):
        model_directory("smollm3", models_root=tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="2 faults"):
        model_directory(str(tmp_path / "empty"), models_root=tmp_path)


@pytest.mark.parametrize(
    ("file", "is_same"),
    [
        ("model.safetensors", False),
        ("tokenizer.json", False),
        ("config.json", False),
        ("generation_config.json", True),
        ("README.md", True),
    ],
)
def test_the_hash_follows_what_answers_depend_on(tmp_path: Path, file: str, is_same: bool) -> None:
    made = folder(tmp_path / "m")
    before = model_hash(made)
    (made / file).write_text('{"changed": 1}')
    assert (model_hash(made) == before) == is_same


def test_the_embedder_comes_from_its_package(tmp_path: Path) -> None:
    assert (model_directory(MINILM, models_root=tmp_path) / "model.safetensors").is_file()


def test_a_converted_model_is_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Any] = []

    def convert(gguf: Path, made: Path) -> None:
        runs.append(made)
        folder(made)
        if len(runs) == 1:
            raise UsageError("killed half-way")

    monkeypatch.setattr(models, "run_conversion", convert)
    with pytest.raises(UsageError):
        model_directory(SMOLLM2, models_root=tmp_path / "models")
    assert [path.name for path in (tmp_path / "models").iterdir()] == [".lock"]
    made = model_directory(SMOLLM2, models_root=tmp_path / "models")
    assert model_directory(SMOLLM2, models_root=tmp_path / "models") == made
    assert len(runs) == 2


def test_a_full_disk_and_a_read_only_warehouse_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "DISK_BYTES", 1 << 60)
    with pytest.raises(UsageError, match="MB are free, the model needs"):
        model_directory(SMOLLM2, models_root=tmp_path / "models")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="choose a --warehouse that can be written"):
        model_directory(SMOLLM2, models_root=tmp_path / "file" / "models")


def test_a_conversion_that_fails_is_told_by_its_last_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "CONVERTER", "recgpt_ops.llm.no_such_module")
    with pytest.raises(UsageError, match=r"could not convert not-there\.gguf: .*No module named"):
        models.run_conversion(tmp_path / "not-there.gguf", tmp_path / "out")
