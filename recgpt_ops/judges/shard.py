"""One shard of a night's verdicts: subjects in; rows, failures and the account of their calls out. Knows no Ray.

compute_shard(plan, subjects, ...) -> ShardResult(rows, failures, tallies, call_rows, prompt_rows, account)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from recgpt_ops.delta.quarantine import QuarantineRow
from recgpt_ops.judges.cutoffs import Cutoffs
from recgpt_ops.judges.dimensions import Kind
from recgpt_ops.judges.judge import Judge, Subject
from recgpt_ops.judges.rules import judge_hash
from recgpt_ops.judges.verdicts import Verdict, judge_subject
from recgpt_ops.ledger.account import TokenAccount
from recgpt_ops.ledger.asking import side_by_side
from recgpt_ops.ledger.summaries import CallLimits, ShardRecord, open_recorder, run_recorded
from recgpt_ops.llm.requests import Engine
from recgpt_ops.llm.tokenizer import PromptTokenizer
from recgpt_ops.settings import Settings

Row = dict[str, Any]
TABLES: dict[Kind, str] = {"tag": "tag_verdicts", "explanation": "explanation_verdicts"}


class VerdictPlan(NamedTuple):
    """What to judge: outputs of one writer's recipe whose user (tags) or id (explanations) falls into `shard`."""

    kind: Kind
    ds: str
    scenario: str
    publish_id: str
    attempt: int
    shard: str
    method: str
    is_self_judged: bool
    ask_again: bool = False  # what an earlier attempt had refused is asked again: a replay


class Candidate(NamedTuple):
    """A row that may be judged: its key columns, and how it becomes a subject. `is_excluded`: it is outside of the judged share."""

    key: Mapping[str, Any]
    make: Callable[[Judge], Subject]
    is_excluded: bool


@dataclass
class ShardResult(ShardRecord):
    """Rows to publish and to record. `tallies`: ("verdicts", method, judge method, what) and ("levels", method, dimension, level)."""

    judged: int = 0  # verdicts asked for
    rows: list[Row] = field(default_factory=list)
    tallies: Counter[tuple[str, ...]] = field(default_factory=Counter)


def compute_shard(
    plan: VerdictPlan,
    candidates: Iterable[Candidate],
    *,
    settings: Settings,
    cutoffs: Cutoffs | None,
    engine: Engine,
    tokenizer: PromptTokenizer,
    ledger_root: Path,
    limits: CallLimits,
    on_progress: Callable[[int, TokenAccount], None] = lambda judged, account: None,
) -> ShardResult:
    """Every judge method on every candidate of the judged share. `settings.engine` is the judges' own.

    `on_progress` is told verdicts finished and the account so far. EngineError comes out; what was answered is in the ledger.
    """
    recorder = open_recorder(
        engine,
        root=ledger_root,
        ds=plan.ds,
        scenario=plan.scenario,
        method=plan.method,
        stage=TABLES[plan.kind],
        shard=plan.shard,
        attempt=plan.attempt,
        limits=limits,
        ask_again=plan.ask_again,
    )
    judge = Judge(tokenizer, recorder, basis=cutoffs.basis if cutoffs else None)
    result = ShardResult()
    judging = settings.judging
    hashes = {
        method: judge_hash(plan.kind, method, settings=settings, identity=engine.identity, cutoffs=cutoffs)
        for method in judging.judge_methods
    }
    source = counted(candidates, plan, judging.judge_methods, result)

    async def work(candidate: Candidate) -> None:
        subject = candidate.make(judge)
        for method in judging.judge_methods:
            verdict = await judge_subject(subject, method, judge, judging=judging, cutoffs=cutoffs)
            keep_verdict(result, plan, candidate.key, subject, verdict, judge_hash_=hashes[method], model=engine.identity.model)

    # A subject keeps about four calls in flight, so this many fill the engine and no more subjects than that are held.
    working = side_by_side(work, source, at_once=limits.max_in_flight // 4)
    run_recorded(working, recorder, tell=lambda: on_progress(result.judged, recorder.account))
    order = {method: place for place, method in enumerate(judging.judge_methods)}
    # In the order of keys, so that a rerun writes the same bytes.
    result.rows.sort(key=lambda row: (row.get("user_id", ""), row.get("tag_id") or row["explanation_id"], order[row["judge_method"]]))
    result.failures.sort(key=lambda failure: failure.row_key)
    result.keep(recorder, judge.prompt_rows())
    return result


def counted(candidates: Iterable[Candidate], plan: VerdictPlan, judge_methods: Iterable[str], result: ShardResult) -> Iterator[Candidate]:
    """The candidates of the judged share; the others are counted."""
    for candidate in candidates:
        if not candidate.is_excluded:
            yield candidate
            continue
        for method in judge_methods:
            result.tallies["verdicts", plan.method, method, "excluded"] += 1


def keep_verdict(
    result: ShardResult, plan: VerdictPlan, key: Mapping[str, Any], subject: Subject, verdict: Verdict, *, judge_hash_: str, model: str
) -> None:
    """The verdict as a row, counted; a failed one is in quarantine too, with what was said."""
    result.judged += 1
    mine = {
        "ds": plan.ds,
        "publish_id": plan.publish_id,
        "scenario": plan.scenario,
        "method": plan.method,
        **key,
        "judge_hash": judge_hash_,
        "judge_model": model,
        "is_self_judged": plan.is_self_judged,
    }
    result.rows.append(mine | verdict.columns)
    result.tallies["verdicts", plan.method, verdict.judge_method, verdict.status] += 1
    if verdict.label is not None:
        result.tallies["verdicts", plan.method, verdict.judge_method, verdict.label] += 1
    for level in verdict.levels:
        result.tallies["levels", plan.method, level.dimension, level.level or "failed"] += 1
    if error := verdict.failure:
        result.failures.append(
            QuarantineRow(
                table_name=TABLES[plan.kind],
                row_key=" ".join(str(part) for part in (*key.values(), verdict.judge_method)),
                stage=TABLES[plan.kind],
                reason=error.reason,
                detail=error.detail,
                raw=subject.text,
                ds=plan.ds,
                scenario=plan.scenario,
                method=plan.method,
                user_id=subject.user_id,
                attempt=plan.attempt,
            )
        )
