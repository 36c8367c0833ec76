"""One shard of a night's explanations: wanted texts in, rows and the account of their calls out. Knows no Ray.

A shard holds the interests whose bucket (the first bits of sha256(tag_id), cut like user buckets) lies in it, so explanations that
share a guideline are in one shard and the guideline is asked for once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from recgpt_ops.delta.quarantine import QuarantineRow
from recgpt_ops.errors import NightError, RowError
from recgpt_ops.explanations.desk import Desk
from recgpt_ops.explanations.rows import Row, Wanted, Written, explanation_row
from recgpt_ops.explanations.writing import write_explanation
from recgpt_ops.ids import user_bucket
from recgpt_ops.ledger.account import TokenAccount
from recgpt_ops.ledger.asking import side_by_side
from recgpt_ops.ledger.segments import shard_range
from recgpt_ops.ledger.summaries import CallLimits, ShardRecord, open_recorder, run_recorded
from recgpt_ops.llm.requests import Engine
from recgpt_ops.llm.tokenizer import PromptTokenizer
from recgpt_ops.recipes import Recipe

STAGE = "explanations"


class ShardPlan(NamedTuple):
    """What to write: the wanted explanations of one recipe whose interest lies in `shard`, such as 0000-0511."""

    ds: str
    scenario: str
    publish_id: str
    attempt: int
    shard: str
    recipe: Recipe
    writer_hash: str
    wanted: tuple[Wanted, ...]
    brands: frozenset[str] = frozenset()
    ask_again: bool = False  # what an earlier attempt had refused is asked again: a replay


@dataclass
class ShardResult(ShardRecord):
    """Rows to publish and to record; every wanted explanation is in exactly one of `rows` and `failures`."""

    rows: list[Row] = field(default_factory=list)


def of_shard(wanted: Collection[Wanted], shard: str) -> tuple[Wanted, ...]:
    """The explanations of a shard, in order of id."""
    buckets = shard_range(shard)
    return tuple(sorted((one for one in wanted if user_bucket(one.tag_id) in buckets), key=lambda one: one.explanation_id))


def compute_shard(
    plan: ShardPlan,
    *,
    engine: Engine,
    tokenizer: PromptTokenizer,
    ledger_root: Path,
    limits: CallLimits,
    on_progress: Callable[[int, TokenAccount], None] = lambda texts, account: None,
) -> ShardResult:
    """Writes every text of the shard. EngineError comes out; what was answered is in the ledger.

    `on_progress` is told texts finished, failed ones too, and the account so far.
    """
    recorder = open_recorder(
        engine, root=ledger_root, ds=plan.ds, scenario=plan.scenario, method=plan.recipe.name, stage=STAGE, shard=plan.shard,
        attempt=plan.attempt, limits=limits, ask_again=plan.ask_again,
    )  # fmt: skip
    desk = Desk(plan.recipe, tokenizer, recorder, brands=plan.brands)
    done: list[Written] = []
    failed: list[tuple[Wanted, RowError]] = []

    work = write_all(plan.wanted, desk, done=done, failed=failed, in_flight=limits.max_in_flight)
    run_recorded(work, recorder, tell=lambda: on_progress(len(done) + len(failed), recorder.account))
    if len(done) + len(failed) != len(plan.wanted):
        raise NightError(f"{STAGE}: {len(plan.wanted)} texts were wanted, {len(done) + len(failed)} came out; nothing of the shard is kept")
    names = {"ds": plan.ds, "publish_id": plan.publish_id, "scenario": plan.scenario, "method": plan.recipe.name}
    result = ShardResult(
        rows=[
            explanation_row(written, writer_hash=plan.writer_hash, **names)
            for written in sorted(done, key=lambda written: written.wanted.explanation_id)
        ],
        failures=[failure_row(plan, wanted, error) for wanted, error in sorted(failed, key=lambda pair: pair[0].explanation_id)],
    )
    result.keep(recorder, desk.prompt_rows())
    return result


async def write_all(
    wanted: Sequence[Wanted], desk: Desk, *, done: list[Written], failed: list[tuple[Wanted, RowError]], in_flight: int
) -> None:
    """All texts, at most `in_flight` at the same time. A text that cannot be made fails alone; EngineError ends the others."""

    async def work(one: Wanted) -> None:
        try:
            done.append(await write_explanation(one, desk))
        except RowError as error:
            failed.append((one, error))

    await side_by_side(work, wanted, at_once=min(in_flight, len(wanted)))


def failure_row(plan: ShardPlan, wanted: Wanted, error: RowError) -> QuarantineRow:
    """A text that could not be written, with every try's reason (022). Nothing of a user is in it."""
    return QuarantineRow(
        table_name="explanations",
        row_key=wanted.explanation_id,
        stage=STAGE,
        reason=error.reason,
        detail=f"{error.detail}; try again: recgpt quarantine replay --ds {plan.ds} --stage {STAGE}",
        raw="\n".join((wanted.tag, wanted.item.told, wanted.situation)),
        ds=plan.ds,
        scenario=plan.scenario,
        method=plan.recipe.name,
        attempt=plan.attempt,
    )
