"""The list of durable effects and the calls that declare them are one."""

from __future__ import annotations

import ast

import pytest

from recgpt_ops.effects import POINTS, Effect, effect, watched
from recgpt_ops.tables import ROOT


def declared_points() -> set[str]:
    """The first argument of every `effect(...)` in the library and its jobs."""
    files = [path for room in ("recgpt_ops", "jobs") for path in (ROOT / room).rglob("*.py")]
    calls = [node for path in files for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    return {str(ast.literal_eval(call.args[0])) for call in calls if isinstance(call.func, ast.Name) and call.func.id == "effect"}


def test_every_point_of_the_list_is_declared_somewhere_and_no_other_is() -> None:
    assert declared_points() == set(POINTS)
    assert len(POINTS) == len(set(POINTS))


def test_a_watch_stands_around_the_call_and_may_refuse_it() -> None:
    told: list[str] = []

    class Full:
        def __init__(self, what: Effect) -> None:
            told.append(str(what))

        def __enter__(self) -> None:
            raise OSError(28, "No space left on device")

        def __exit__(self, *_: object) -> None: ...

    with watched(Full), pytest.raises(OSError, match="No space left"), effect("ledger.append", "v2/intents"):
        told.append("written")
    assert told == ["ledger.append/v2/intents"]

    with effect("ledger.append", "v2/intents"):  # the watch is gone
        told.append("written")
    assert told[1:] == ["written"]
