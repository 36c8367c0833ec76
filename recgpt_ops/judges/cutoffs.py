"""Where a score becomes a level: two cut-offs per judge and dimension, found for one model on the labeled pairs, kept in a file.

    recgpt_ops/judges/calibration/cutoffs/<model>-<hash>.yaml     shipped, for the models that `make demo` and the tests use
    <warehouse>/_models/judges/<model>-<hash>.yaml                written by `recgpt judges calibrate`; stands before a shipped one

A file holds for the model, the labeled pairs, the templates and the rubrics that it was made with. No others: `load_cutoffs` refuses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from recgpt_ops.errors import ConfigError
from recgpt_ops.ids import row_id
from recgpt_ops.judges.dimensions import DIMENSIONS, KINDS, Kind
from recgpt_ops.judges.judge import PROMPTS

CALIBRATION = Path(__file__).parent / "calibration"
SHIPPED = CALIBRATION / "cutoffs"
NEXT_STEP = "run `recgpt judges calibrate`, or set judging.level_from: generation"


class Cut(NamedTuple):
    """Below `low` negative, from `high` on positive, neutral between. The rest is what was measured on the labeled pairs.

    `agreement_ratio`: pairs whose level is the label; `balanced_ratio`: the mean of that over the levels, so that always saying
    the commonest earns nothing; `left_out_ratio`: the balanced ratio where each pair is cut by cut-offs found without it.
    """

    low: float
    high: float
    agreement_ratio: float
    balanced_ratio: float
    left_out_ratio: float

    def place(self, score: float) -> int:
        """0, 1 or 2: the place of the score's level, worst first."""
        return 0 if score < self.low else 1 if score < self.high else 2


@dataclass(frozen=True)
class Cutoffs:
    """All cut-offs of one model: kind -> dimension (or `overall`, for one_shot) -> cut."""

    model: str
    model_hash: str
    basis: str
    cuts: Mapping[str, Mapping[str, Cut]]

    def of(self, kind: Kind, dimension: str) -> Cut:
        """The cut of one dimension."""
        return self.cuts[kind][dimension]

    @property
    def digest(self) -> str:
        """sha256 over what levels are cut by."""
        return row_id(
            (
                self.model_hash,
                self.basis,
                *(f"{kind} {name} {cut}" for kind, cuts in sorted(self.cuts.items()) for name, cut in sorted(cuts.items())),
            )
        )


@cache
def basis_digest() -> str:
    """sha256 over the labeled pairs, the templates and the rubrics: what cut-offs were found with."""
    digest = hashlib.sha256()
    for path in [*sorted(CALIBRATION.glob("*.yaml")), *sorted(PROMPTS.glob("*.jinja"))]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    digest.update(repr([DIMENSIONS[kind] for kind in KINDS]).encode())
    return digest.hexdigest()


def cutoffs_file(directory: Path, *, model: str, model_hash: str) -> Path:
    """The file of one model below a folder."""
    return directory / f"{Path(model).name}-{model_hash[:12]}.yaml"


def warehouse_directory(warehouse_root: str) -> Path:
    """Where `recgpt judges calibrate` writes: beside the warehouse's models, since it holds for one of them."""
    return Path(warehouse_root) / "_models" / "judges"


def load_cutoffs(*, model: str, model_hash: str, directories: tuple[Path, ...]) -> Cutoffs:
    """The cut-offs of a model, from the first folder that has some made with today's pairs, templates and rubrics.

    ConfigError where there are none: a level without a cut-off found for this very model would be a guess.
    """
    faults = []
    for directory in directories:
        for path in sorted(directory.glob("*.yaml")):
            found = read_cutoffs(path)
            if found.model_hash != model_hash:
                continue
            if found.basis == basis_digest():
                return found
            faults.append(f"{path.name} was made with other labeled pairs, templates or rubrics; {NEXT_STEP}")
    raise ConfigError(
        "judging.level_from", faults or [f"is 'label_logprobs', but model {model} ({model_hash[:12]}) has no cut-offs; {NEXT_STEP}"]
    )


def read_cutoffs(path: Path) -> Cutoffs:
    """One file; ConfigError that names it where it is not what `write_cutoffs` writes."""
    try:
        told: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
        cuts: dict[str, dict[str, Cut]] = {kind: {name: Cut(**cut) for name, cut in told["cuts"][kind].items()} for kind in KINDS}
        return Cutoffs(str(told["model"]), str(told["model_hash"]), str(told["basis"]), cuts)
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            path.name, [f"holds no cut-offs ({type(error).__name__}: {error}); write it anew: recgpt judges calibrate"]
        ) from error


def write_cutoffs(path: Path, cutoffs: Cutoffs, *, build: str) -> None:
    """Writes the file, with what the figures mean on top."""
    cuts = {kind: {name: cut._asdict() for name, cut in by_name.items()} for kind, by_name in cutoffs.cuts.items()}
    body = {"model": cutoffs.model, "model_hash": cutoffs.model_hash, "build": build, "basis": cutoffs.basis, "cuts": cuts}
    head = (
        "# Where a judge's score becomes a level on this model; made by `recgpt judges calibrate`, not by hand.\n"
        "# agreement_ratio: pairs whose level is the label; balanced_ratio: the mean of that over the levels (a third is chance);\n"
        "# left_out_ratio: the balanced ratio where each pair is cut by cut-offs found without it, the honest figure.\n"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(head + yaml.safe_dump(body, sort_keys=False, width=140), encoding="utf-8")
