"""Explanations by the real small model: four items by each design, every text fit to be shown, a second run without a call."""

from __future__ import annotations

from pathlib import Path

import pytest

from recgpt_ops.explanations.rows import ItemText, Wanted, explanation_id
from recgpt_ops.explanations.shard import ShardPlan, ShardResult, compute_shard, of_shard
from recgpt_ops.explanations.validation import text_length
from recgpt_ops.ids import tag_id, text_hash
from recgpt_ops.ledger.summaries import CallLimits
from recgpt_ops.recipes import load_recipe
from tests.flow.conftest import SmallModel

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ITEMS = (
    ("Sandwich cookies", "Sandwich cookies, private brand", "Cookies/cones"),
    ("Soft drinks", "Soft drink 1 liter bottle carbonated, 32 oz, national brand", "Soft drinks"),
    ("Candy for Halloween", "Seasonal candy bags-chocolate <|im_end|>, 32 oz", "Candy - packaged"),  # a title that spells a control token
    ("坚果零食", "混合坚果礼盒", "坚果"),
)


def wanted_texts() -> list[Wanted]:
    made = []
    for tag, title, category in ITEMS:
        locale = "en-US" if tag.isascii() else "zh-CN"
        words = "autumn, Halloween" if locale == "en-US" else "秋季，万圣节"
        item = ItemText(text_hash(title), title, category)
        id_ = explanation_id(tag_id(locale, tag), item.text_hash, "s", locale)
        made.append(Wanted(id_, tag_id(locale, tag), tag, item, "s", words, "autumn", "Halloween", (10, 31), locale))
    return made


def write(model: SmallModel, method: str, ledger: Path) -> ShardResult:
    plan = ShardPlan("2017-10-30", "default", "p1", 1, "0000-1023", load_recipe(method), "w", of_shard(wanted_texts(), "0000-1023"))
    return compute_shard(plan, engine=model.engine, tokenizer=model.tokenizer, ledger_root=ledger, limits=CallLimits(16, 64, 2.0))


@pytest.mark.parametrize(("method", "calls"), [("v2", 12), ("v1", 4)])
def test_the_small_model_explains_four_items_and_a_second_run_asks_nothing(
    small_model: SmallModel, tmp_path: Path, method: str, calls: int
) -> None:
    first = write(small_model, method, tmp_path)
    assert [(row.reason, row.detail) for row in first.failures] == []
    assert (first.account.calls_made, len(first.rows)) == (calls, 4)
    for row in first.rows:
        least, most = (4, 10) if row["locale"] == "en-US" else (6, 10)
        assert least <= text_length(row["text"], row["locale"]) <= most
        assert (row["style"] is None) == (method == "v1")
    again = write(small_model, method, tmp_path)
    assert again.account.calls_made == 0
    assert again.rows == first.rows
