"""Turns the GGUF file of a PyPI package into a model folder: `python -m recgpt_ops.llm.convert GGUF FOLDER`.

Run as a process of its own by `llm.models`, because it holds the whole model twice for a moment. The only module that
imports transformers.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def convert(gguf: Path, folder: Path) -> None:
    """Writes config, tokenizer and float32 safetensors of the model in `gguf` to `folder`.

    Float32 because the file's own 4 bits are a storage format only: the engine casts to the dtype of its settings.
    """
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    # What was read as 4 bits is saved as plain float32, so the folder must not say that it is quantized.
    del model.config.quantization_config
    model.hf_quantizer = None  # type: ignore[assignment]  # an attribute that from_pretrained sets on the fly
    model.config._name_or_path = ""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
