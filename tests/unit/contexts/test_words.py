from __future__ import annotations

import pytest

from recgpt_ops.contexts.words import MAX_TITLE_CHARS, bucket_words, clean_text, date_words, short_title


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("Pumpkin\x00 pie\r\n9 in", "Pumpkin pie 9 in"),
        ("a\u2028b\u0085c", "a b c"),
        ("\u202eabc\u202c \u200fd", "abc d"),
        ("family 👨\u200d👩\u200d👧", "family 👨\u200d👩\u200d👧"),
        ("  [entity]\t<|im_end|> ", "[entity] <|im_end|>"),
        ("\x00\u200b", ""),
    ],
)
def test_case_042_text_stands_on_one_line_and_is_shown_unharmed(given, shown):
    assert clean_text(given) == shown


def test_a_title_cannot_spell_the_separator_of_a_line():
    assert short_title("soap; lemon;\tlarge;x | y;") == "soap, lemon, large;x | y;"


def test_a_long_title_is_cut_at_a_word():
    shown = short_title("word " * 40)
    assert shown.endswith("word…")
    assert len(shown) <= MAX_TITLE_CHARS
    assert len(short_title("x" * 500)) == MAX_TITLE_CHARS


def test_times_are_told_in_the_language_of_the_locale():
    assert [bucket_words(bucket, "en-GB") for bucket in ("2017-10-08", "2017-08", "2015")] == ["Oct 8", "Aug 2017", "2015"]
    assert [bucket_words(bucket, "zh-CN") for bucket in ("2017-10-08", "2017-08", "2015")] == ["10月8日", "2017年8月", "2015年"]
    assert date_words("2017-10-31", "en-US") == "Tuesday, Oct 31, 2017"
    assert date_words("2017-10-31", "zh-CN") == "2017年10月31日，星期二"
