"""`recgpt judges`: where a model's scores become levels."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from recgpt_ops.commands.options import WarehouseOption, settings_for
from recgpt_ops.errors import ConfigError

if TYPE_CHECKING:
    from recgpt_ops.judges.cutoffs import Cutoffs
    from recgpt_ops.llm.requests import Engine
    from recgpt_ops.settings import Settings

app = typer.Typer(help="Calibrate the judges to the model that judges.", rich_markup_mode=None)


@app.callback()
def judges() -> None:
    """Keeps `calibrate` a word of its own while it is the only command."""


@app.command(epilog="Example: recgpt judges calibrate")
def calibrate(
    into: Annotated[
        str | None, typer.Option("--into", metavar="FILE", help="Where the cut-offs go.  [default: _models/judges in the warehouse]")
    ] = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Finds the judges' cut-offs for the configured model on the labeled pairs, and writes them. Two minutes on two cores."""
    from recgpt_ops.judges.cutoffs import cutoffs_file, warehouse_directory, write_cutoffs

    settings = settings_for(warehouse)
    cutoffs, build = calibrate_engine(settings)
    folder = warehouse_directory(settings.warehouse)
    path = Path(into) if into else cutoffs_file(folder, model=cutoffs.model, model_hash=cutoffs.model_hash)
    write_cutoffs(path, cutoffs, build=build)
    cuts = [cut for by_name in cutoffs.cuts.values() for cut in by_name.values()]
    mean = sum(cut.left_out_ratio for cut in cuts) / len(cuts)
    sys.stdout.write(f"{path}: {len(cuts)} pairs of cut-offs for {cutoffs.model}; balanced agreement, left out: {mean:.2f} (chance 0.33)\n")


def calibrate_engine(settings: Settings) -> tuple[Cutoffs, str]:
    """The cut-offs of the judges' engine, loaded in this process, and its build. Nothing is recorded."""
    from recgpt_ops.judges.calibration import calibrate as calibrate_judge
    from recgpt_ops.judges.cutoffs import basis_digest
    from recgpt_ops.judges.judge import Judge
    from recgpt_ops.judges.rules import judge_settings
    from recgpt_ops.ledger import SHARED
    from recgpt_ops.ledger.summaries import call_limits, open_recorder
    from recgpt_ops.llm.engine import engine_tokenizer

    settings = judge_settings(settings)
    if settings.engine.kind == "openai":
        raise ConfigError("judging", ["the judges' engine.kind is 'openai': an address gives no log-probabilities to calibrate"])
    engine = load_engine(settings)
    with TemporaryDirectory() as ledger:
        calls = open_recorder(
            engine,
            root=Path(ledger),
            ds="calibration",
            scenario="default",
            method="calibration",
            stage="calibration",
            shard=SHARED,
            attempt=1,
            limits=call_limits(settings),
        )
        try:
            judge = Judge(engine_tokenizer(settings, settings.warehouse), calls, basis=basis_digest())
            return asyncio.run(calibrate_judge(judge, engine.identity)), engine.identity.build
        finally:
            calls.close()


def load_engine(settings: Settings) -> Engine:
    """The engine of the settings without Ray: the model is loaded where the command was called."""
    from recgpt_ops.llm.engine import connect_engine
    from recgpt_ops.llm.engine_actor import engine_environment
    from recgpt_ops.llm.models import model_directory, models_root

    if settings.engine.kind != "vllm":
        return connect_engine(settings, settings.warehouse)
    folder = model_directory(settings.engine.model, models_root=models_root(settings.warehouse))
    os.environ.update(engine_environment(settings.engine))  # read by vLLM when it is imported
    from recgpt_ops.llm.vllm_engine import VllmEngine

    return VllmEngine(settings.engine, name=settings.engine.model, folder=folder)
