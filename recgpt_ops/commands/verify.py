"""`recgpt verify`: everything that certificates, pointer and ledger say, recomputed from the tables."""

from __future__ import annotations

import sys
from typing import Annotated, TextIO

import typer

from recgpt_ops.commands.options import WarehouseOption, checked_ds, existing_warehouse, settings_for
from recgpt_ops.commands.output import visible

EXAMPLE = "Example: recgpt verify --ds 2017-10-30"


def verify(
    ds: Annotated[str | None, typer.Option("--ds", metavar="DATE", help="One night and what it names, without the feeds.")] = None,
    warehouse: WarehouseOption = None,
) -> int:
    """Recomputes what certificates, pointer, quarantine and ledger say and names every difference; exit code 1 when there is one."""
    settings = settings_for(warehouse)
    opened = existing_warehouse(settings)
    ds = None if ds is None else checked_ds(ds)
    from recgpt_ops.ledger.summaries import ledger_root
    from recgpt_ops.verification.findings import Findings
    from recgpt_ops.verification.verify import verify_warehouse

    found = verify_warehouse(
        opened,
        Findings(say=lambda line: tell(sys.stdout, line), tell=lambda line: tell(sys.stderr, line)),
        ds=ds,
        ledger=ledger_root(settings, opened.root),
        ledger_days=settings.ledger.keep_days,
    )
    tell(sys.stdout, found.summary)
    return 1 if found.differences else 0


def tell(stream: TextIO, line: str) -> None:
    """One line, seen at once; control characters of a key spelled out."""
    stream.write(visible(line) + "\n")
    stream.flush()
