from __future__ import annotations

import pytest

from recgpt_ops.report.texts import change, number, one_line, percent, shown_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Red wine", "Red wine"),
        ("a\x1b[31mb", "a⟨U+001B⟩[31mb"),
        ("\x00", "⟨U+0000⟩"),
        ("cod\u202eexe.", "cod⟨U+202E⟩exe."),
        ("a\u2066b\u2069", "a⟨U+2066⟩b⟨U+2069⟩"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("family 👨‍👩‍👧", "family 👨‍👩‍👧"),  # held together by zero-width joiners
        ("نبيذ", "نبيذ"),
        ("南瓜灯", "南瓜灯"),
    ],
)
def test_characters_that_steer_are_spelled_out_and_all_others_stay(text, shown):
    assert shown_text(text) == shown


def test_a_message_of_several_lines_becomes_one():
    assert one_line("a:\n  - b\x07") == "a: - b⟨U+0007⟩"


@pytest.mark.parametrize(
    ("value", "told"), [(1234567, "1,234,567"), (3.0, "3"), (0.51234, "0.512"), (12.34, "12.3"), (-0.5, "-0.500"), (None, "–")]
)
def test_figures_are_told_as_people_read_them(value, told):
    assert number(value) == told


def test_shares_and_changes():
    assert (percent(1, 3), percent(0, 4), percent(0, 0)) == ("33 %", "0 %", "–")
    assert (change(5, 3), change(3, 5), change(4, 4), change(4, None)) == ("+2", "−2", "±0", "")
