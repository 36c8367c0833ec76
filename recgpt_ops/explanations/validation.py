"""Our own check of an explanation: what it may not be, whoever wrote it.

Every refusal is a RowError whose reason is counted:

    too_short  too_long  cut_character  unfinished  control_token  leaked_prompt  leaked_thinking  copied_example  near_copy
    unknown_number  unknown_brand  unknown_name  claim  hard_sell  wrong_language  and those of `llm.structured` (empty, truncated ...)

A word of a claim is refused only where the item's text does not hold it: organic apples may be called organic.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable
from difflib import SequenceMatcher
from typing import NamedTuple

from recgpt_ops.errors import RowError
from recgpt_ops.explanations.claims import CHINESE_CLAIMS, CLAIMS
from recgpt_ops.llm.languages import WITHOUT_SPACES, check_language, scripts_of
from recgpt_ops.llm.structured import check_text
from recgpt_ops.prompts import language_of

WORD_LIMITS = (4, 10)  # ours, where words have spaces between them
CHARACTER_LIMITS = (6, 10)  # V1, 2.4: punctuation and spaces not counted
MAX_CHARS = 200
MIN_LANGUAGE_SHARE = 0.5
COPY_RATIO = 0.8  # as alike to the title as this is a copy of it
LEAK_WORDS = 5  # so many words in a row that our own prompt holds are a leak

WORD = re.compile(r"[^\W_]+(?:['’.&-][^\W_]+)*")
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
CURRENCY = re.compile(r"[%％‰$€£¥￥₩₹]")
CONTROL = re.compile(r"<\s*[|｜/]|[|｜]\s*>|\[/?(?:INST|SYS|entity)\]|</?[a-z][^>]*>|https?://|www\.|[{}]|```|^#+ |\\[nu\"]", re.IGNORECASE)
THINKING = re.compile(
    r"\b(?:let me|let's think|the (?:user|shopper) (?:wants|asks|likes)|as an ai|i (?:will|need to|should|am|can(?:not|'t))|i'm sorry|"
    r"here (?:is|are)|sure[,!]|okay[,!]|step \d|first,|final answer|thinking)\b|^(?:sure|okay|certainly)\b|"
    r"(?:好的，|作为(?:一个)?(?:AI|人工智能)|我(?:需要|应该|将会)|让我|用户(?:喜欢|想要)|抱歉，|以下是|思考)",
    re.IGNORECASE,
)
LABEL = re.compile(
    r"\b(?:style|item|now|shopper likes|interest|situation|explanation|tone|audience|date)\s*:|(?:风格|商品|现在|兴趣|语气|日期)：", re.I
)
HARD_SELL = re.compile(
    r"\b(?:buy|order|click|act|shop) (?:it |now|here|today)|\b(?:last chance|limited time|hurry|don't miss|must[- ]have)\b|"
    r"立即|马上抢|抢购|点击|赶快|错过|下单|必买",
    re.IGNORECASE,
)
UNFINISHED = re.compile(
    r"(?:\b(?:a|an|the|and|or|with|for|of|to|in|on|at|by|from|your|this|is)|[,;:、，；：—–(\[“‘《-]|…|\.\.\.|[的和与在把跟或及])$", re.I
)


class Source(NamedTuple):
    """What a text may lean on: the item, the interest, and the moment (situation and date). Of the item only its own text counts."""

    title: str
    item_text: str
    interest: str
    moment: str
    locale: str


def check_explanation(text: object, source: Source, *, brands: Collection[str] = (), prompt: str = "", examples: Iterable[str] = ()) -> str:
    """The text, stripped, or RowError with what is wrong. `prompt` and `examples` are our own words, which must not come back.

    `brands` are brands of the catalog, casefolded. At most one reason is told: the first of the order above that holds.
    """
    found = check_text(text, what="explanation", max_chars=MAX_CHARS)
    found = found.strip("\"'“”「」 ").rstrip("。 ")
    for check in (check_whole, check_own_words, check_claims):
        check(found, source)
    check_leak(found, prompt=prompt, examples=examples)
    check_names(found, source, brands=brands)
    check_copy(found, source)
    check_language([found], source.locale, what="explanation", min_share=MIN_LANGUAGE_SHARE)
    check_length(found, source.locale)
    return found


def refuse(reason: str, text: str, detail: str) -> RowError:
    """A refusal that shows the text."""
    return RowError(reason, f"explanation: {detail}: {text[:80]!r}")


def counts_characters(locale: str) -> bool:
    """Whether a locale's language writes without spaces, so that characters are counted instead of words."""
    return language_of(locale) in {"zh", "ja", "th"} or scripts_of(locale)[0] in WITHOUT_SPACES


def text_length(text: str, locale: str) -> int:
    """Words, or characters without punctuation, spaces, marks and emoji.

    >>> text_length("Mint tea, for a snowy evening!", "en-US"), text_length("暖暖羊毛 治愈日常！", "zh-CN")
    (6, 8)
    """
    if counts_characters(locale):
        return sum(unicodedata.category(char)[0] in "LN" for char in text)
    return len(WORD.findall(text))


def length_limits(locale: str) -> tuple[int, int]:
    """The least and the most that `text_length` may be."""
    return CHARACTER_LIMITS if counts_characters(locale) else WORD_LIMITS


def check_length(text: str, locale: str) -> None:
    """too_short, too_long."""
    least, most = length_limits(locale)
    length, unit = text_length(text, locale), "characters" if counts_characters(locale) else "words"
    if not least <= length <= most:
        raise refuse("too_short" if length < least else "too_long", text, f"{length} {unit}, expected {least} to {most}")


def check_whole(text: str, source: Source) -> None:
    """cut_character, unfinished: the token limit may fall inside an emoji, a Chinese character or a sentence."""
    regional = sum("\U0001f1e6" <= char <= "\U0001f1ff" for char in text)
    if "\ufffd" in text or text.endswith(("\u200d", "\ufe0f\u200d")) or regional % 2:
        raise refuse("cut_character", text, "a character is cut in half")
    if not text or UNFINISHED.search(text):
        raise refuse("unfinished", text, "ends in the middle of a sentence")


def check_own_words(text: str, source: Source) -> None:
    """control_token, leaked_thinking, leaked_prompt, hard_sell: words that belong to the machinery or to no shop of ours."""
    for reason, pattern, detail in (
        ("control_token", CONTROL, "control marks, markup or an address"),
        ("leaked_thinking", THINKING, "speaks of its own task"),
        ("leaked_prompt", LABEL, "repeats a label of the prompt"),
        ("hard_sell", HARD_SELL, "presses to buy"),
    ):
        held = pattern.search(text)
        if held and held[0].casefold() not in source.item_text.casefold():
            raise refuse(reason, text, f"{detail} ({held[0].strip()!r})")


def check_claims(text: str, source: Source) -> None:
    """unknown_number, claim: what the item's text does not hold."""
    known = set(NUMBER.findall(f"{source.item_text} {source.moment}"))
    for number in NUMBER.findall(text):
        if number not in known:
            raise refuse("unknown_number", text, f"the number {number}, which the item's text does not hold")
    if (sign := CURRENCY.search(text)) and sign[0] not in source.item_text:
        raise refuse("unknown_number", text, f"{sign[0]!r}, which the item's text does not hold")
    held = words_of(f"{source.item_text} {source.moment}")
    for word in sorted(words_of(text)):
        if word in CLAIMS and word not in held:
            raise refuse("claim", text, f"{word!r}, which the item's text does not hold")
    for claim in CHINESE_CLAIMS:
        if claim in text and claim not in source.item_text:
            raise refuse("claim", text, f"{claim!r}, which the item's text does not hold")


def words_of(text: str) -> frozenset[str]:
    """The words, casefolded, and the parts of those with a hyphen or an apostrophe: `year's` holds `year`."""
    words = [word.casefold() for word in WORD.findall(text)]
    return frozenset(words) | frozenset(part for word in words for part in re.split(r"[-'’]", word))


def check_names(text: str, source: Source, *, brands: Collection[str]) -> None:
    """unknown_brand, unknown_name: a brand of the catalog, or any capitalized word, that nobody told."""
    told = f"{source.item_text} {source.interest} {source.moment}"
    held, shown = words_of(told), told.casefold()
    words = [word.casefold() for word in WORD.findall(text)]
    for length in range(1, 5):
        for start in range(len(words) - length + 1):
            name = " ".join(words[start : start + length])
            is_name = length > 1 or is_capitalized_inside(text, name)
            if name in brands and name not in shown and is_name:
                raise refuse("unknown_brand", text, f"the brand {name!r}, which the item's text does not hold")
    if scripts_of(source.locale)[0] in WITHOUT_SPACES:
        named = next(
            (brand for brand in brands if len(brand) > 1 and not brand.isascii() and brand in text.casefold() and brand not in shown), None
        )
        if named is not None:
            raise refuse("unknown_brand", text, f"the brand {named!r}, which the item's text does not hold")
    for match in WORD.finditer(text):
        if match[0][0].isupper() and not starts_sentence(text, match.start()) and match[0] != "I" and words_of(match[0]).isdisjoint(held):
            raise refuse("unknown_name", text, f"the name {match[0]!r}, which nobody told")


def is_capitalized_inside(text: str, word: str) -> bool:
    """Whether a word stands in a text with a capital; one that is a brand and also an ordinary word is meant as the latter otherwise."""
    return any(match[0].casefold() == word and match[0][0].isupper() for match in WORD.finditer(text))


def starts_sentence(text: str, place: int) -> bool:
    """Whether a word begins the text or follows the end of a sentence."""
    before = text[:place].rstrip(" \"'“”‘’")
    return not before or before[-1] in ".!?:;。！？"


def check_leak(text: str, *, prompt: str, examples: Iterable[str]) -> None:
    """leaked_prompt, copied_example: our own words come back."""
    shown = bare(text)
    if shown in {bare(example) for example in examples}:
        raise refuse("copied_example", text, "is the example of the prompt")
    words = shown.split()
    ours = f" {bare(prompt)} "
    for start in range(len(words) - LEAK_WORDS + 1):
        run = " ".join(words[start : start + LEAK_WORDS])
        if f" {run} " in ours:
            raise refuse("leaked_prompt", text, f"repeats the prompt ({run!r})")


def bare(text: str) -> str:
    """Words alone, casefolded, one space between them."""
    return " ".join(word.casefold() for word in WORD.findall(text))


def check_copy(text: str, source: Source) -> None:
    """near_copy: the title again (V1, 2.4)."""
    shown, title = bare(text), bare(source.title)
    if not shown or shown in title or SequenceMatcher(None, shown, title, autojunk=False).ratio() >= COPY_RATIO:
        raise refuse("near_copy", text, f"hardly more than the title {source.title[:60]!r}")
