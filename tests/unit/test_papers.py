"""PAPERS.md names functions and tests that are there."""

from __future__ import annotations

import re

import pytest

from recgpt_ops.tables import ROOT

ROWS = re.findall(r"^\|.*\| `([^`]+)` \| `([^`]+)` \|$", (ROOT / "recgpt_ops" / "PAPERS.md").read_text(), re.MULTILINE)


def test_every_idea_has_a_row() -> None:
    assert len(ROWS) == 18


@pytest.mark.parametrize("place", [place for row in ROWS for place in row])
def test_a_named_function_or_test_is_there(place: str) -> None:
    path, _, name = place.partition(":")
    assert re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text(), re.MULTILINE), f"{place}: no such function; mend PAPERS.md"
