"""PAPERS.md names functions and tests that are there."""

from __future__ import annotations

import re

import pytest

from recgpt_ops.tables import ROOT

PAPERS = (ROOT / "recgpt_ops" / "PAPERS.md").read_text()
ROWS = re.findall(r"^\|.*\| `([^`]+)` \| `([^`]+)` \|$", PAPERS, re.MULTILINE)


def test_every_idea_has_a_row() -> None:
    table = [line for line in PAPERS.splitlines() if line.startswith("| ")]
    assert len(ROWS) == len(table) - 2 >= 28  # without the heading and its rule


def test_code_stands_in_the_package_and_tests_are_tests() -> None:
    for code, test in ROWS:
        assert code.startswith("recgpt_ops/"), code
        assert re.fullmatch(r"tests/.*/test_\w+\.py:test_\w+", test), test


@pytest.mark.parametrize("place", [place for row in ROWS for place in row])
def test_a_named_function_or_test_is_there(place: str) -> None:
    path, _, name = place.partition(":")
    assert re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text(), re.MULTILINE), f"{place}: no such function; mend PAPERS.md"
