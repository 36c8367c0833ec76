"""What an explanation may not be, row by row, in both languages."""

from __future__ import annotations

import pytest

from recgpt_ops.errors import RowError
from recgpt_ops.explanations.validation import Source, check_explanation, text_length

CANDY = Source(
    "Candy bars (multi pack), national brand", "Candy bars (multi pack), national brand; Candy - packaged", "Candy bars",
    "autumn, Halloween October 31", "en-US",
)  # fmt: skip
OATS = Source(
    "Acme organic oats, 100% whole grain, 16 oz", "Acme organic oats, 100% whole grain, 16 oz; Acme", "Breakfast", "winter", "en-US"
)
NUTS = Source("混合坚果礼盒 500克", "混合坚果礼盒 500克; 零食", "坚果零食", "秋季，万圣节 十月31日", "zh-CN")
BRANDS = frozenset({"acme", "golden lion", "crisp", "national brand", "三只松鼠"})
PROMPT = "You write one short line that is shown below an item in a shop."


def verdict(text: object, source: Source, **changes: object) -> str:
    """The text as it is kept, or the reason of its refusal."""
    try:
        given = {"brands": BRANDS, "prompt": PROMPT, "examples": ("Herbal tea on a restful winter afternoon",)} | changes
        return check_explanation(text, source, **given)  # type: ignore[arg-type]  # a test's own keywords
    except RowError as error:
        return error.reason


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Candy bars for a lively Halloween night", "Candy bars for a lively Halloween night"),
        ("  “Sweet bars for trick-or-treat friends.” ", "Sweet bars for trick-or-treat friends."),
        ("Candy bars 🎃 for a Halloween evening", "Candy bars 🎃 for a Halloween evening"),
        ("Candy for crisp October evenings", "Candy for crisp October evenings"),  # a brand's name, meant as an ordinary word
        ("", "text_empty"),
        ("   ", "text_empty"),
        (None, "wrong_shape"),
        ("x" * 201, "text_too_long"),
        ("Sweet bars tonight", "too_short"),
        ("Sweet bars for you and me and all the friends tonight", "too_long"),  # 11 words
        ("Candy for a Halloween night 🎃\u200d", "cut_character"),
        ("Candy for a Halloween night \ufffd", "cut_character"),
        ("Candy bars for a night in \U0001f1fa", "cut_character"),  # half a flag
        ("Candy bars for \ud83c Halloween night", "bad_text"),  # a lone surrogate
        ("Candy bars for a lively Halloween with", "unfinished"),
        ("Candy bars, sweets and more sweets,", "unfinished"),
        ("Candy bars for a lively <|im_end|> night", "control_token"),
        ("Candy bars for you: see www.example.com", "control_token"),
        ("Okay, candy bars suit this shopper well", "leaked_thinking"),
        ("<think>candy bars</think> suit a Halloween night", "bad_text"),
        ("Style: candy bars for a lively night", "leaked_prompt"),
        ("Candy is shown below an item in a shop", "leaked_prompt"),
        ("Herbal tea on a restful winter afternoon!", "copied_example"),
        ("Candy bars (multi pack), national brand", "near_copy"),
        ("The candy bars multi pack national brand", "near_copy"),
        ("Candy bars with 30 pieces for Halloween", "unknown_number"),
        ("Candy bars cut by half for $ Halloween", "unknown_number"),
        ("Candy bars from Acme for Halloween night", "unknown_brand"),
        ("Candy bars by golden lion for Halloween", "unknown_brand"),
        ("Candy bars loved all over Switzerland tonight", "unknown_name"),
        ("The best candy bars for Halloween", "claim"),
        ("Sugar-free candy bars for Halloween night", "claim"),
        ("Healthy candy bars for Halloween night", "claim"),
        ("Candy bars on sale for Halloween", "claim"),
        ("Hurry, candy bars for Halloween night", "hard_sell"),
        ("Сладкие батончики для вечера", "wrong_language"),
    ],
)
def test_english_lines_are_kept_or_refused_each_for_its_own_reason(text: object, expected: str) -> None:
    assert verdict(text, CANDY) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("温馨秋日配坚果", "温馨秋日配坚果"),
        ("万圣节，来点坚果吧。", "万圣节，来点坚果吧"),
        ("坚果真香", "too_short"),  # 4 characters
        ("秋天的夜晚和朋友们一起吃坚果", "too_long"),  # 14
        ("温馨秋日里的坚果和", "unfinished"),
        ("温馨秋日配坚\ufffd", "cut_character"),
        ("秋日坚果只要9元", "unknown_number"),
        ("最好的坚果在秋日", "claim"),
        ("秋日坚果特价来袭", "claim"),
        ("有机坚果配秋日", "claim"),
        ("秋日坚果立即下单", "hard_sell"),
        ("好的，秋日配坚果", "leaked_thinking"),
        ("风格：秋日配坚果", "leaked_prompt"),
        ("秋日的三只松鼠坚果", "unknown_brand"),
        ("混合坚果礼盒", "near_copy"),
        ("Nuts for quiet autumn nights", "wrong_language"),
    ],
)
def test_chinese_lines_are_kept_or_refused_each_for_its_own_reason(text: str, expected: str) -> None:
    assert verdict(text, NUTS) == expected


@pytest.mark.parametrize("text", ["Organic oats by Acme for winter mornings", "Whole grain, 100% of it, for breakfast"])
def test_what_the_items_own_text_holds_may_be_said(text: str) -> None:
    assert verdict(text, OATS) == text


def test_a_claim_of_the_interest_is_not_one_of_the_item() -> None:
    source = CANDY._replace(interest="Organic sweets")
    assert verdict("Organic candy bars for Halloween night", source) == "claim"
    assert (
        verdict("Candy bars for a New Year evening", CANDY._replace(moment="winter, New Year's Day")) == "Candy bars for a New Year evening"
    )


@pytest.mark.parametrize(
    ("text", "locale", "length"),
    [
        ("Ready for Halloween? Candy bars!", "en-US", 5),
        ("Trick-or-treat, and it's sweet 🎃", "en-US", 4),
        ("暖暖羊毛 治愈日常", "zh-CN", 8),
        ("甜蜜小食，快乐续航！", "zh-CN", 8),
        ("T恤 百搭", "zh-CN", 4),
    ],
)
def test_length_is_words_or_characters_without_marks(text: str, locale: str, length: int) -> None:
    assert text_length(text, locale) == length
