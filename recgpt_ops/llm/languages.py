"""Is a text written in the language it was asked for? Told by script, which needs no model and is wrong in one direction only.

language_share("iPhone 手机壳", "zh-CN")  ->  0.75      three characters of Chinese, one foreign word
language_share("warme Socken", "en-US")   ->  1.0       another language of the same script is not told apart
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from recgpt_ops.errors import RowError
from recgpt_ops.prompts import language_of

# Language -> how the Unicode names of its letters begin. All others are written in Latin letters.
SCRIPTS: dict[str, tuple[str, ...]] = {
    "zh": ("CJK",),
    "ja": ("CJK", "HIRAGANA", "KATAKANA"),
    "ko": ("HANGUL", "CJK"),
    "ru": ("CYRILLIC",),
    "uk": ("CYRILLIC",),
    "bg": ("CYRILLIC",),
    "el": ("GREEK",),
    "ar": ("ARABIC",),
    "fa": ("ARABIC",),
    "he": ("HEBREW",),
    "th": ("THAI",),
    "hi": ("DEVANAGARI",),
}
LATIN = ("LATIN", "FULLWIDTH LATIN")
# Scripts without spaces: each character counts as a word. Everywhere else a run of letters does.
WITHOUT_SPACES = ("CJK", "HIRAGANA", "KATAKANA", "THAI")


def scripts_of(locale: str) -> tuple[str, ...]:
    """How the names of a locale's letters begin."""
    return SCRIPTS.get(language_of(locale), LATIN)


def letter_names(text: str) -> list[str]:
    """The Unicode names of a text's words: one per character where a script has no spaces, else of each run's first letter."""
    names: list[str] = []
    inside = ""  # the script of the run we are in
    for char in text:
        name = unicodedata.name(char, "") if char.isalpha() else ""
        if name.startswith(WITHOUT_SPACES):
            names.append(name)
            inside = ""
            continue
        script = name.split(" ")[0]
        if script and script != inside:
            names.append(name)
        inside = script
    return names


def language_share(text: str, locale: str) -> float:
    """Share (0-1) of the words that are in the locale's script; 1.0 for a text without letters."""
    names = letter_names(text)
    return sum(name.startswith(scripts_of(locale)) for name in names) / len(names) if names else 1.0


def check_language(texts: Iterable[str], locale: str, *, what: str, min_share: float) -> None:
    """RowError when the texts together hold too few words of the locale's script (046)."""
    joined = " ".join(texts)
    share = language_share(joined, locale)
    if share < min_share:
        raise RowError(
            "wrong_language",
            f"{what}: {share:.2f} of the words are in the script of {locale}, expected {min_share:.2f} or more: {joined[:80]!r}",
        )
