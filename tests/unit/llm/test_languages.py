"""Language by script: what share of a text's words is in the letters of its locale."""

from __future__ import annotations

import pytest

from recgpt_ops.errors import RowError
from recgpt_ops.llm.languages import check_language, language_share


@pytest.mark.parametrize(
    ("text", "locale", "share"),
    [
        ("wool socks", "en-US", 1.0),
        ("羊毛袜", "zh-CN", 1.0),
        ("iPhone 15 手机壳", "zh-CN", 0.75),  # one word, three characters
        ("wool socks", "zh-CN", 0.0),
        ("羊毛袜", "en-US", 0.0),
        ("шерстяные socks", "ru", 0.5),
        ("くつ下 カバー", "ja-JP", 1.0),
        ("caffè crème", "it_IT", 1.0),
        ("500 g, 2x", "en-US", 1.0),
        ("500 ★ 🎃", "zh-CN", 1.0),  # nothing to judge by
        ("", "zh-CN", 1.0),
    ],
)
def test_the_share_counts_words_and_in_scripts_without_spaces_characters(text: str, locale: str, share: float) -> None:
    assert language_share(text, locale) == share


def test_case_046_too_few_words_of_the_script_refuse_the_row_with_both_shares() -> None:
    check_language(["羊毛袜", "Nike 跑鞋"], "zh-CN", what="tags", min_share=0.5)
    with pytest.raises(RowError, match=r"wrong_language: tags: 0.25 of the words are in the script of zh-CN, expected 0.50"):
        check_language(["wool", "rain coat", "袜"], "zh-CN", what="tags", min_share=0.5)
