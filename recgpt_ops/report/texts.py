"""Texts as a page may show them: foreign text cannot steer the page, nor the reader's eyes.

Escaping of markup is the template engine's. Here go the characters that escaping leaves alone: controls, and the marks that turn
the direction of what follows them. Each is shown as what it is, because an operator has to see it.
"""

from __future__ import annotations

import re

# C0 and C1 controls but tab and line end; separators of lines; marks, embeddings, overrides and isolates of writing direction
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")


def shown_text(text: str) -> str:
    """The text with each steering character spelled out.

    >>> shown_text("a\\x1b[31mb")
    'a⟨U+001B⟩[31mb'
    """
    return STEERING.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text)


def one_line(text: str) -> str:
    """The text on one line, for messages.

    >>> one_line("a:\\n  - b")
    'a: - b'
    """
    return " ".join(shown_text(text).split())


def number(value: float | None) -> str:
    """A figure as people read it; an en dash where there is none.

    >>> number(1234567), number(0.51234), number(12.34), number(None)
    ('1,234,567', '0.512', '12.3', '–')
    """
    if value is None:
        return "–"
    if float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 10 else f"{value:.3f}"


def percent(part: float, whole: float) -> str:
    """A share; an en dash of nothing.

    >>> percent(1, 3), percent(0, 0)
    ('33 %', '–')
    """
    return f"{100 * part / whole:.0f} %" if whole else "–"


def change(now: float | None, before: float | None) -> str:
    """By how much a figure moved since the night before; nothing where there is no figure to compare with.

    >>> change(5, 3), change(3, 5), change(4, 4), change(4, None)
    ('+2', '−2', '±0', '')
    """
    if now is None or before is None:
        return ""
    difference = now - before
    if difference == 0:
        return "±0"
    return ("+" if difference > 0 else "−") + number(abs(difference))
