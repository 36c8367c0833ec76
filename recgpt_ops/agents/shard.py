"""One shard of a night's intents: contexts in, rows of three tables and the account of its calls out. Knows no Ray.

compute_shard(contexts, engine=..., embedder=..., ...) -> ShardResult(plans, proposals, tags, failures, calls, prompts, account)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from recgpt_ops.agents.crew import Crew
from recgpt_ops.agents.graph import ShardIntents, compute_users
from recgpt_ops.agents.rows import Context, Signal, plan_row, proposal_row, read_context, tag_row
from recgpt_ops.agents.vocabulary import build_vocabulary
from recgpt_ops.delta.quarantine import QuarantineRow
from recgpt_ops.errors import RowError
from recgpt_ops.ledger.account import TokenAccount
from recgpt_ops.ledger.summaries import CallLimits, ShardRecord, open_recorder, run_recorded
from recgpt_ops.llm.encoder import TextEncoder
from recgpt_ops.llm.requests import Engine
from recgpt_ops.llm.tokenizer import PromptTokenizer
from recgpt_ops.recipes import Recipe

Row = dict[str, Any]
STAGE = "intents"


class ShardPlan(NamedTuple):
    """What to compute: the users of one recipe whose bucket lies in `shard`, such as 0000-0511."""

    ds: str
    scenario: str
    publish_id: str
    attempt: int
    shard: str
    recipe: Recipe
    ask_again: bool = False  # what an earlier attempt had refused is asked again: a replay


@dataclass
class ShardResult(ShardRecord):
    """Rows to publish and to record. `user_count` users went in; those not in `plans` are in `failures`."""

    user_count: int = 0
    plans: list[Row] = field(default_factory=list)
    proposals: list[Row] = field(default_factory=list)
    tags: list[Row] = field(default_factory=list)


def compute_shard(
    plan: ShardPlan,
    context_rows: Iterable[Mapping[str, Any]],
    *,
    words: Iterable[str],
    signal_rows: Iterable[Mapping[str, Any]] = (),
    engine: Engine,
    embedder: TextEncoder,
    tokenizer: PromptTokenizer,
    ledger_root: Path,
    limits: CallLimits,
    on_progress: Callable[[int, TokenAccount], None] = lambda users, account: None,
) -> ShardResult:
    """Runs every user of the shard.

    `words`: the catalog's item types (read for a closed vocabulary only). `signal_rows`: this generation's rows of
    environment_signals, from which the contexts' signal lines come.
    `on_progress` is told users finished and the account so far. EngineError comes out; what was answered is in the ledger.
    """
    recorder = open_recorder(
        engine,
        root=ledger_root,
        ds=plan.ds,
        scenario=plan.scenario,
        method=plan.recipe.name,
        stage=STAGE,
        shard=plan.shard,
        attempt=plan.attempt,
        limits=limits,
        ask_again=plan.ask_again,
    )
    vocabulary = build_vocabulary(words, embedder) if plan.recipe.vocabulary == "closed" else None
    signals = {(row["locale"], row["text"]): Signal(row["kind"], row["name"], row["text"]) for row in signal_rows}
    crew = Crew(plan.recipe, tokenizer, embedder, recorder, vocabulary, signals=signals)
    # A user keeps about one call per persona in flight, so this many users fill the engine and no more contexts than that are held.
    users_in_flight = max(1, limits.max_in_flight // plan.recipe.persona_count)

    finished = 0

    def count(users: int) -> None:
        nonlocal finished
        finished = users

    work = compute_users(map(read_context, context_rows), crew, users_in_flight=users_in_flight, on_user=count)
    intents = run_recorded(work, recorder, tell=lambda: on_progress(finished, recorder.account))
    return as_result(plan, intents, crew)


def as_result(plan: ShardPlan, intents: ShardIntents, crew: Crew) -> ShardResult:
    """The shard's rows, users in order of id, so that a rerun writes the same bytes."""
    result = ShardResult(user_count=len(intents.done) + len(intents.failed))
    result.keep(crew.calls, crew.prompt_rows())
    for user in sorted(intents.done, key=lambda user: user.context.user_id):
        result.plans += [plan_row(user.context, persona, plan.publish_id) for persona in user.personas]
        result.proposals += [proposal_row(user.context, proposal, plan.publish_id) for proposal in user.proposals]
        result.tags += [tag_row(user.context, tag, plan.publish_id) for tag in user.tags]
    result.failures = [failure_row(plan, context, error) for context, error in sorted(intents.failed, key=lambda pair: pair[0].user_id)]
    return result


def failure_row(plan: ShardPlan, context: Context, error: RowError) -> QuarantineRow:
    """A user that could not be computed, with every try's reason and how to try just this one again (022)."""
    again = f"try again: recgpt quarantine replay --ds {plan.ds} --user {context.user_id}"
    return QuarantineRow(
        table_name="intent_tags",
        row_key=context.user_id,
        stage=STAGE,
        reason=error.reason,
        detail=f"{error.detail}; {again}",
        raw=context.text,
        ds=plan.ds,
        scenario=plan.scenario,
        method=plan.recipe.name,
        user_id=context.user_id,
        attempt=plan.attempt,
    )
