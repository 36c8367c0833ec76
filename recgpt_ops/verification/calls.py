"""`llm_calls` against itself and its templates: ids, counts, and the template of every call."""

from __future__ import annotations

from recgpt_ops.verification.findings import MOST_LINES, Findings
from recgpt_ops.verification.scope import Scope
from recgpt_ops.verification.tables import Tables, scalar

RESTORE = "restore llm_calls from a backup"
RULES = {  # what holds for every row -> how it is told
    "call_id = sha256(concat_ws(chr(31), fingerprint, try_index::varchar))": "the hash of its fingerprint and try as its call_id",
    "computed_tokens IS NOT DISTINCT FROM prompt_tokens - cached_tokens": "computed_tokens to be prompt_tokens minus cached_tokens",
    "prompt_id IN (SELECT prompt_id FROM prompts)": "its template in prompts",
}


def check_calls(findings: Findings, tables: Tables, scope: Scope) -> None:
    """The calls of every day in scope, and the templates."""
    check_templates(findings, tables)
    for ds in scope.days():
        connection = tables.ask(llm_calls=tables.files("llm_calls", ds=ds), prompts=tables.files("prompts"))
        findings.counts["calls"] += scalar(connection, "SELECT count(*) FROM llm_calls")
        for rule, expected in RULES.items():
            count = scalar(connection, f"SELECT count(*) FROM llm_calls WHERE NOT ({rule})")
            if count:
                query = f"SELECT call_id, attempt FROM llm_calls WHERE NOT ({rule}) ORDER BY ALL LIMIT {MOST_LINES}"
                keys = [f"call_id={call_id}, attempt {attempt}" for call_id, attempt in connection.execute(query).fetchall()]
                findings.differ_each(keys, count, where=f"llm_calls, ds={ds}", expected=expected, got="something else", next_step=RESTORE)


def check_templates(findings: Findings, tables: Tables) -> None:
    """Every template has the hash of its text as its id."""
    connection = tables.ask(prompts=tables.files("prompts"))
    found = connection.execute("SELECT prompt_id, name FROM prompts WHERE prompt_id <> sha256(text) ORDER BY ALL").fetchall()
    keys = [f"prompt_id={prompt_id}, {name}" for prompt_id, name in found]
    findings.differ_each(
        keys, len(keys), where="prompts", expected="the hash of its text", got="another", next_step="restore prompts from a backup"
    )
