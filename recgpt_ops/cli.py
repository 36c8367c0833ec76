"""The command line `recgpt`: what it can do, and what its exit codes mean.

Exit codes: 0 ok (also with quarantined rows below the threshold), 1 a fault in data or night, 2 could not run. An error is one
line on stderr; a stack trace means a fault in this program.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer
from typer.exceptions import Abort, TyperException

from recgpt_ops.commands import (
    airflow,
    engine,
    evaluate,
    importing,
    judges,
    maintenance,
    night,
    plan,
    quarantine,
    query,
    report,
    status,
    verify,
)
from recgpt_ops.doctor import run_doctor
from recgpt_ops.errors import UsageError

INTERRUPTED = 130

app = typer.Typer(
    name="recgpt",
    help="Nightly recommendations made by language models, as a batch pipeline.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain text, so that an example can be copied whole
)
app.add_typer(importing.app, name="import")
app.command(name="night", epilog=night.EXAMPLE)(night.night)
app.command(name="plan", epilog=plan.EXAMPLE)(plan.plan)
app.command(name="status", epilog=status.EXAMPLE)(status.status)
app.add_typer(quarantine.app, name="quarantine")
app.command(name="query", epilog=query.EXAMPLE)(query.query)
app.command(name="report", epilog=report.EXAMPLE)(report.report)
app.command(name="verify", epilog=verify.EXAMPLE)(verify.verify)
app.command(name="maintenance", epilog=maintenance.EXAMPLE)(maintenance.maintenance)
app.add_typer(evaluate.app, name="evaluate")
app.add_typer(judges.app, name="judges")
app.add_typer(engine.app, name="engine")
app.command(name="airflow", epilog=airflow.EXAMPLE)(airflow.airflow)
app.command(name="doctor", epilog="Example: recgpt doctor")(run_doctor)


def main(argv: Sequence[str] | None = None) -> None:
    """Runs one command and ends the process with its exit code."""
    sys.exit(run(list(sys.argv[1:] if argv is None else argv)))


def run(arguments: list[str]) -> int:
    """Runs one command and returns its exit code; every expected error is one line on stderr."""
    from recgpt_ops.runs import with_exit_code

    codes: list[int] = []

    def invoke() -> None:
        try:
            codes.append(app(args=arguments or ["--help"], standalone_mode=False) or 0)
        except TyperException as error:
            raise UsageError(f"{error.format_message().rstrip('.')}. See --help.") from error

    try:
        code = with_exit_code("recgpt", invoke) or codes[0]
    except (KeyboardInterrupt, Abort):
        code = INTERRUPTED
    except BrokenPipeError:  # `recgpt query ... | head`
        sys.stderr.close()
        return 0
    if code == INTERRUPTED:  # typer itself turns Ctrl-C inside a command into this code
        sys.stderr.write("recgpt: stopped; what had been published before stays as it was\n")
    return code


if __name__ == "__main__":
    main()
