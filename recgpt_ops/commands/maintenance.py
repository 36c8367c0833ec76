"""`recgpt maintenance`: what nothing names any more goes; the same as maintenance_daily does."""

from __future__ import annotations

from typing import Annotated

import typer

from recgpt_ops.commands.options import WarehouseOption, existing_warehouse, settings_for
from recgpt_ops.commands.output import visible

EXAMPLE = "Example: recgpt maintenance --dry-run"


def maintenance(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell what would go, and remove nothing.")] = False,
    warehouse: WarehouseOption = None,
) -> int:
    """Drops generations that nothing has shown for night.keep_days, sweeps what dead attempts left, vacuums, writes checkpoints.

    Then tells the newest night of each recipe; exit code 1 when one is late.
    """
    root = existing_warehouse(settings_for(warehouse)).root
    from recgpt_ops.maintenance.freshness import tell_freshness
    from recgpt_ops.maintenance.maintain import maintain_warehouse

    maintain_warehouse(root, say=tell, is_dry_run=dry_run)
    tell_freshness(root, say=tell)
    return 0


def tell(line: str) -> None:
    """One line, seen at once."""
    typer.echo(visible(line))
