"""Compiles every schema of a recipe before anything is loaded (025): one that the engine's grammar cannot take stops the run.

The compiler is the engine's own (xgrammar, the pinned back end), asked as the engine asks it: compact, over the model's
vocabulary. Keywords that it would take and silently not enforce are refused too, as vLLM refuses them request by request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xgrammar

from recgpt_ops.errors import ConfigError
from recgpt_ops.llm.structured import constraint_faults

UNENFORCED = {
    "array": ("uniqueItems", "contains", "minContains", "maxContains"),
    "integer": ("multipleOf",),
    "number": ("multipleOf",),
    "object": ("propertyNames", "patternProperties"),
}


def check_schemas(schemas: Mapping[str, str], *, model_dir: Path) -> None:
    """ConfigError with every fault of every schema. `schemas`: path of the setting -> JSON schema, as requests carry it."""
    faults = [fault for where, schema in schemas.items() for fault in constraint_faults(where, schema)]
    if not faults:
        for where, schema in schemas.items():
            faults += [f"{where}: {fault}" for fault in unenforced(json.loads(schema), "$")]
    if not faults:
        compiler = grammar_compiler(model_dir)
        for where, schema in schemas.items():
            faults += compile_faults(compiler, where, schema)
    if faults:
        raise ConfigError("schemas of the recipe", faults)


def unenforced(schema: Any, at: str) -> list[str]:
    """Keywords of a schema that would not hold, with their place and what to do instead."""
    if isinstance(schema, list):
        return [fault for index, item in enumerate(schema) for fault in unenforced(item, f"{at}[{index}]")]
    if not isinstance(schema, dict):
        return []
    faults = [
        f"{at}.{keyword} is not enforced by the engine's grammar; leave it out, our own check after the answer does it"
        for keyword in UNENFORCED.get(str(schema.get("type")), ())
        if keyword in schema
    ]
    if ("pattern" in schema or "format" in schema) and ("minLength" in schema or "maxLength" in schema):
        faults.append(
            f"{at}: a pattern together with minLength or maxLength is not enforced; write the length into the pattern, such as {{1,12}}"
        )
    if "(?" in str(schema.get("pattern", "")).replace("(?:", ""):
        faults.append(f"{at}.pattern: look-around is silently ignored; write the pattern without it")
    if len(schema.get("allOf", ())) > 1:
        faults.append(f"{at}.allOf: only one branch is enforced; write them as one schema")
    return faults + [fault for key, value in schema.items() for fault in unenforced(value, f"{at}.{key}")]


def compile_faults(compiler: xgrammar.GrammarCompiler, where: str, schema: str) -> list[str]:
    """Why a schema does not compile; empty when it does."""
    try:
        compiler.compile_json_schema(schema, any_whitespace=False, separators=(",", ":"))
    except (RuntimeError, ValueError) as error:
        return [f"{where}: does not compile: {str(error).strip().splitlines()[0]}"]
    return []


def grammar_compiler(model_dir: Path) -> xgrammar.GrammarCompiler:
    """A compiler over the vocabulary of a model folder."""
    spec = json.loads((model_dir / "tokenizer.json").read_text(encoding="utf-8"))
    ids: dict[str, int] = dict(spec["model"]["vocab"])
    ids |= {token["content"]: int(token["id"]) for token in spec.get("added_tokens", [])}
    vocabulary = [""] * (max(ids.values()) + 1)
    for token, id_ in ids.items():
        vocabulary[id_] = token
    is_byte_level = '"ByteLevel"' in json.dumps(spec.get("decoder"))
    kind = xgrammar.VocabType.BYTE_LEVEL if is_byte_level else xgrammar.VocabType.BYTE_FALLBACK
    return xgrammar.GrammarCompiler(xgrammar.TokenizerInfo(vocabulary, vocab_type=kind), max_threads=1)
