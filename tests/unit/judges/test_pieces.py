"""What a judge reads fits, is cut with a mark, and is the same whoever wrote the tag."""

from __future__ import annotations

from typing import Any

import pytest

from recgpt_ops.judges.pieces import cut_text, share_out, user_text
from recgpt_ops.llm.tokenizer import PromptTokenizer

from .conftest import USER

LONG: dict[str, Any] = USER | {
    "attributes": [{"name": f"attribute {n}", "value": "a rather long value"} for n in range(20)],
    "signals": [f"Selling more than usual: product number {n} (4.0 times the rate of the four weeks before)" for n in range(9)],
    "lines": [
        {"line_id": n, "text": f"Oct {n}, Sep {n} (bought) | " + "; ".join(f"thing {n}-{m}" for m in range(n * 7))} for n in range(1, 20)
    ],
}


@pytest.mark.parametrize(
    ("wanted", "total", "given"), [([5, 40, 30], 45, [5, 20, 20]), ([5, 4], 45, [5, 4]), ([9, 9, 9], 10, [3, 3, 4]), ([], 9, [])]
)
def test_short_parts_get_what_they_want_and_the_long_ones_equal_shares(wanted: list[int], total: int, given: list[int]) -> None:
    assert share_out(wanted, total) == given


@pytest.mark.parametrize("text", ["one two three four five six seven eight nine ten eleven", "万圣节糖果礼盒" * 9, "🎃" * 30, "x" * 200])
@pytest.mark.parametrize("limit", [1, 2, 3, 8])
def test_a_text_is_cut_within_its_limit_with_a_mark_and_whole_characters(text: str, limit: int, tokenizer: PromptTokenizer) -> None:
    cut = cut_text(text, limit + 2, tokenizer)
    assert tokenizer.count(cut) <= limit + 2
    assert cut.endswith("…")
    assert "\ufffd" not in cut
    assert text.startswith(cut.removesuffix("…").rstrip())


def test_a_text_that_fits_is_left_alone_but_on_one_line(tokenizer: PromptTokenizer) -> None:
    assert cut_text("dog\nbed", 20, tokenizer) == "dog bed"


@pytest.mark.parametrize("total", [60, 80, 120])
def test_a_user_fits_with_someone_to_judge_by_in_every_part(total: int, tokenizer: PromptTokenizer) -> None:
    text = user_text(LONG, total, tokenizer)
    assert tokenizer.count(text) <= total
    lines = text.split("\n")
    assert lines[0].startswith("attribute")
    assert lines[1].startswith("Selling")
    assert len(lines) <= 2 + 8


def test_times_of_lines_go_before_their_items_do(tokenizer: PromptTokenizer) -> None:
    roomy, short = user_text(USER, 200, tokenizer), user_text(USER, 60, tokenizer)
    assert roomy.endswith("Oct 24 (bought) | Cheddar cheese, 8 oz")
    assert "Oct 24" not in short
    assert "Cheddar" in short


def test_only_the_eight_newest_lines_are_read(tokenizer: PromptTokenizer) -> None:
    lines = [{"line_id": n, "text": f"Oct 9 (bought) | item{n}"} for n in range(1, 12)]
    assert user_text(USER | {"lines": lines}, 400, tokenizer).count("item") == 8
    assert user_text(USER | {"lines": []}, 400, tokenizer).count("\n") == 1
