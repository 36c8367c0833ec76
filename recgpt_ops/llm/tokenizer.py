"""Prompts as token ids. ChatML, built by us, because an id is the only thing that a user's text cannot forge.

Text is encoded by a copy of the tokenizer that knows no control token at all, so a title that spells `<|im_end|>` becomes
the ordinary pieces `<`, `|`, `im`, ... and is shown to the model unharmed (042, 044). Control ids are put in by this module:
those that frame a turn, and those that our own template text spells. Values and our text between two control ids are encoded
together, so that a value merges with the space before it, as it would in one string.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

from tokenizers import Tokenizer

from recgpt_ops.errors import ConfigError
from recgpt_ops.prompts import Message, Segment

TURN_START, TURN_END = "<|im_start|>", "<|im_end|>"


class PromptTokenizer:
    """Encodes messages and counts tokens; made by `load_tokenizer`. Safe to share between threads."""

    def __init__(self, plain: Tokenizer, control_ids: dict[str, int], tokenizer_hash: str) -> None:
        """`plain` matches no control token; `control_ids` are those that only we may write, by their spelling."""
        self.plain, self.control_ids, self.tokenizer_hash = plain, control_ids, tokenizer_hash
        self.control_id_set = frozenset(control_ids.values())
        longest_first = sorted(control_ids, key=len, reverse=True)
        self.control_pattern = re.compile("(" + "|".join(map(re.escape, longest_first)) + ")")

    def encode(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """The prompt up to where the answer begins.

        `<|im_start|>role\\n ... <|im_end|>\\n` per message, then `<|im_start|>assistant\\n`; a last message of the assistant is
        left open instead, as the beginning of the answer.
        """
        parts: list[str | int] = []
        start, end = self.control_ids[TURN_START], self.control_ids[TURN_END]
        for message in messages:
            parts += [start, f"{message.role}\n", *self.split_control(message.segments), end, "\n"]
        if messages and messages[-1].role == "assistant":
            del parts[-2:]
        else:
            parts += [start, "assistant\n"]
        return tuple(self.encode_parts(parts))

    def split_control(self, segments: Iterable[Segment]) -> list[str | int]:
        """Segments as texts and control ids; only our own text may spell a control token."""
        parts: list[str | int] = []
        for segment in segments:
            pieces = [segment.text] if segment.is_data else self.control_pattern.split(segment.text)
            for index, piece in enumerate(pieces):
                parts.append(self.control_ids[piece] if index % 2 else piece)
        return parts

    def encode_parts(self, parts: Iterable[str | int]) -> list[int]:
        """Neighboring texts are joined and encoded as one; control ids stand as they are."""
        ids: list[int] = []
        text = ""
        for part in chain(parts, [None]):
            if isinstance(part, str):
                text += part
                continue
            if text:
                ids += self.encode_data(text)
                text = ""
            if part is not None:
                ids.append(part)
        return ids

    def encode_data(self, text: str) -> tuple[int, ...]:
        """The ids of a text without any control id, whatever it spells."""
        ids: list[int] = self.plain.encode(sound_text(text), add_special_tokens=False).ids
        if not self.control_id_set.isdisjoint(ids):
            raise ConfigError("tokenizer", [f"plain text {text[:80]!r} was encoded to a control id; this tokenizer cannot keep data apart"])
        return tuple(ids)

    def count(self, text: str) -> int:
        """Number of tokens of a text by itself."""
        return len(self.encode_data(text))

    def count_batch(self, texts: Sequence[str]) -> list[int]:
        """Number of tokens of each text, many at once (all cores)."""
        encoded = self.plain.encode_batch_fast([sound_text(text) for text in texts], add_special_tokens=False)
        return [len(encoding) for encoding in encoded]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; control tokens are left out."""
        return str(self.plain.decode([id_ for id_ in ids if id_ not in self.control_id_set], skip_special_tokens=False))


def sound_text(text: str) -> str:
    """The text with lone surrogates (which no UTF-8 can hold) as question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def load_tokenizer(model_dir: Path) -> PromptTokenizer:
    """The tokenizer of a model folder, from its tokenizer.json alone. ConfigError when it is not ChatML."""
    path = Path(model_dir) / "tokenizer.json"
    if not path.is_file():
        raise ConfigError(str(path), ["no such file; the model folder must hold a tokenizer.json"])
    raw = path.read_bytes()
    spec = json.loads(raw)
    control_ids = {token["content"]: int(token["id"]) for token in spec.get("added_tokens", [])}
    if missing := [token for token in (TURN_START, TURN_END) if token not in control_ids]:
        raise ConfigError(str(path), [f"has no token {token}; expected a ChatML model" for token in missing])
    plain = Tokenizer.from_str(json.dumps({**spec, "added_tokens": [], "post_processor": None, "truncation": None, "padding": None}))
    return PromptTokenizer(plain, control_ids, hashlib.sha256(raw).hexdigest())
