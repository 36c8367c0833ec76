"""A tokenizer that counts words, where a test needs one and no model."""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit


def write_word_tokenizer(folder: Path) -> Path:
    """Makes the folder that a model's would be."""
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "<|im_start|>": 1, "<|im_end|>": 2}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    (folder / "tokenizer.json").write_text(json.dumps(json.loads(tokenizer.to_str())))
    return folder
