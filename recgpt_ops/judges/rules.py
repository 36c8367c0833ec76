"""What of the settings decides verdicts: which engine judges, whom, and the digest of it all that a night's inputs carry."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from recgpt_ops.errors import ConfigError
from recgpt_ops.ids import row_id
from recgpt_ops.judges.cutoffs import SHIPPED, Cutoffs, basis_digest, load_cutoffs, warehouse_directory
from recgpt_ops.judges.dimensions import DIMENSIONS, Kind
from recgpt_ops.judges.reviewer import SUPERIOR_COUNT
from recgpt_ops.llm.requests import EngineIdentity
from recgpt_ops.settings import Settings

JUDGE_METHODS = ("panel", "one_shot")


def judge_settings(settings: Settings) -> Settings:
    """The settings as the judges' jobs see them: `engine` is the judges' own where they have one."""
    return settings if settings.judging.engine is None else replace(settings, engine=settings.judging.engine)


def is_self_judged(settings: Settings) -> bool:
    """Whether the judges are the model whose output they judge (052)."""
    judge = settings.judging.engine
    return judge is None or (judge.kind, judge.model, judge.base_url) == (
        settings.engine.kind,
        settings.engine.model,
        settings.engine.base_url,
    )


def check_judging(settings: Settings) -> None:
    """ConfigError for judges that cannot judge, before anything is computed; all faults at once."""
    judging, engine = settings.judging, judge_settings(settings).engine
    faults = [
        f"judging.judge_methods holds {name!r}; expected {' or '.join(JUDGE_METHODS)}, each once"
        for name in judging.judge_methods
        if name not in JUDGE_METHODS or judging.judge_methods.count(name) > 1
    ]
    if judging.level_from == "label_logprobs" and engine.kind == "openai":
        faults.append(
            "judging.level_from is 'label_logprobs', but the judges' engine.kind is 'openai': an address gives no log-probability of a "
            "given label; set judging.level_from: generation, or a judging.engine of kind vllm"
        )
    if is_self_judged(settings) and not judging.allow_self_judging:
        faults.append(
            f"the judges' model {engine.model!r} is the writers' model {settings.engine.model!r}: it would grade itself; set another "
            "judging.engine, or judging.allow_self_judging: true, which every verdict then says"
        )
    if faults:
        raise ConfigError("judging", faults)


def is_in_share(key: str, ratio: float) -> bool:
    """Whether a user or an explanation is judged: the first 48 bits of its hash, as a share of 1, lie below `ratio`.

    Stable: the same ones every night, and a greater ratio only adds to them.
    """
    return int.from_bytes(hashlib.sha256(f"judged\x1f{key}".encode()).digest()[:6], "big") < ratio * 2**48


def find_cutoffs(warehouse_root: str, identity: EngineIdentity) -> Cutoffs:
    """The cut-offs of the judges' model, the warehouse's own before the shipped ones. ConfigError where there are none."""
    directories = (warehouse_directory(warehouse_root), SHIPPED)
    return load_cutoffs(model=identity.model, model_hash=identity.model_hash, directories=directories)


def judge_hash(kind: Kind, judge_method: str, *, settings: Settings, identity: EngineIdentity, cutoffs: Cutoffs | None) -> str:
    """Digest of one judge: pairs, templates and rubrics, the rule, the model, the cut-offs. Equal hashes judge alike."""
    judging = settings.judging
    rule = (judging.level_from, judging.reviewer, SUPERIOR_COUNT[kind]) if judge_method == "panel" else (judging.level_from,)
    cut_by = cutoffs.digest if cutoffs else None
    return row_id((kind, judge_method, *rule, basis_digest(), identity.model_hash, identity.tokenizer_hash, identity.build, cut_by))


def judging_digest(settings: Settings) -> str:
    """Digest of everything that decides a night's verdicts besides what is judged; part of the night's input version.

    Refuses (ConfigError) judges that cannot judge, so that a night does not find out at its end.
    """
    check_judging(settings)
    judging = settings.judging
    if judging.engine is not None:  # what it costs decides no verdict
        unpriced = replace(judging.engine, price_per_million_prompt_tokens=None, price_per_million_completion_tokens=None, currency=None)
        judging = replace(judging, engine=unpriced)
    digest = hashlib.sha256(repr((basis_digest(), judging, sorted(SUPERIOR_COUNT.items()))).encode())
    if settings.judging.level_from == "label_logprobs":
        for directory in (warehouse_directory(settings.warehouse), SHIPPED):
            for path in sorted(directory.glob("*.yaml")):
                digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def planned_calls(kind: Kind, subjects: int, *, settings: Settings) -> int:
    """The most calls that so many subjects take when every first answer is good; twins of one language included."""
    judging = settings.judging
    each = sum(len(DIMENSIONS[kind]) + (judging.reviewer == "model") if method == "panel" else 1 for method in judging.judge_methods)
    asked = sum(len(DIMENSIONS[kind]) if method == "panel" else 1 for method in judging.judge_methods)
    twins = asked if subjects and judging.level_from == "label_logprobs" else 0
    return subjects * each + twins
