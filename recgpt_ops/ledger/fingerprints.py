"""What makes two calls the same call (014): everything that the answer depends on, and nothing else.

    fingerprint = sha256(prompt ids, constraint, template, model, tokenizer, adaptor, sampling, engine build, basis)
    call_id     = sha256(fingerprint, try)            try 0, or 1 after an answer that was refused

Who asked, when and in which shard is left out, so the same question is never paid for twice in one stage of a night.
"""

from __future__ import annotations

import hashlib
import json

from recgpt_ops.ids import row_id
from recgpt_ops.llm.requests import EngineIdentity, Request, sampling_dict


def fingerprint(request: Request, identity: EngineIdentity, *, adaptor: str | None = None) -> str:
    """sha256 hex over the request and what answers it. Without token ids (chat addresses) the messages stand in."""
    inputs: list[object] = list(request.token_ids) or [[message.role, message.text] for message in request.messages]
    parts: dict[str, object] = {
        "inputs": inputs,
        "choice": request.choice,
        "json_schema": request.json_schema,
        "forced_ids": request.forced_ids,
        "prompt_id": request.prompt_id,
        "model_hash": identity.model_hash,
        "tokenizer_hash": identity.tokenizer_hash,
        "adaptor": adaptor,
        "sampling": sampling_dict(request.sampling),
        "build": identity.build,
    }
    # Left out where unset, so that the prints of requests without them stay what they were.
    parts |= {name: value for name, value in (("label_ids", request.label_ids), ("basis", request.basis)) if value is not None}
    return hashlib.sha256(json.dumps(parts, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def call_id(fingerprint_: str, try_index: int) -> str:
    """The id of one try of a call."""
    return row_id((fingerprint_, try_index))
