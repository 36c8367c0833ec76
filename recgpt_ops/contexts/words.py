"""The words of a context, by language. English where a locale's language has no words of its own."""

from __future__ import annotations

import re
import unicodedata
from datetime import date
from typing import NamedTuple

from recgpt_ops.prompts import language_of

MAX_TITLE_CHARS = 80  # 20 to 30 tokens: the short form of an item (RecGPT V1, section 2.2 gives no length)
ITEM_SEPARATOR = "; "
HEAD_SEPARATOR = " | "
JOINERS = {"\u200c", "\u200d"}  # zero-width, but emoji and Persian words fall apart without them
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Words(NamedTuple):
    """How one language says the fixed parts of a context."""

    actions: dict[str, str]
    today: str  # {date}
    attributes: str
    history: str
    attribute_separator: str
    pair: str  # {name} {value}
    campaign: str  # {campaign_id}: how a coupon or mailing without an item is called


ENGLISH = Words(
    actions={
        "purchase": "bought",
        "cart": "put in cart",
        "favorite": "saved",
        "review_read": "read reviews",
        "detail_view": "viewed",
        "search": "searched for",
        "coupon": "used coupon",
        "campaign": "got mailing",
    },
    today="Today: {date}",
    attributes="About the user - ",
    history="History, newest first:",
    attribute_separator="; ",
    pair="{name}: {value}",
    campaign="campaign {campaign_id}",
)
CHINESE = Words(
    actions={
        "purchase": "购买",
        "cart": "加入购物车",
        "favorite": "收藏",
        "review_read": "看评价",
        "detail_view": "浏览",
        "search": "搜索",
        "coupon": "用优惠券",
        "campaign": "收到活动邮件",
    },
    today="今天：{date}",
    attributes="用户信息：",
    history="历史行为（由近到远）：",
    attribute_separator="；",
    pair="{name}：{value}",
    campaign="活动 {campaign_id}",
)


def words_of(locale: str) -> Words:
    """The words for a locale."""
    return CHINESE if language_of(locale) == "zh" else ENGLISH


def bucket_words(bucket: str, locale: str) -> str:
    """A time bucket as people write it. A day goes without its year: day buckets span two months, so none is meant twice.

    >>> bucket_words("2017-10-28", "en-US"), bucket_words("2017-08", "en-US"), bucket_words("2015", "en-US")
    ('Oct 28', 'Aug 2017', '2015')
    """
    year, *rest = bucket.split("-")
    numbers = [int(part) for part in rest]
    if language_of(locale) == "zh":
        return {0: f"{year}年", 1: "{}年{}月", 2: "{}月{}日"}[len(numbers)].format(*([year, *numbers] if len(numbers) == 1 else numbers))
    if not numbers:
        return year
    return f"{MONTHS[numbers[0] - 1]} {numbers[1] if len(numbers) == 2 else year}"


def date_words(ds: str, locale: str) -> str:
    """A date in full, with its weekday."""
    day = date.fromisoformat(ds)
    if language_of(locale) == "zh":
        return f"{day.year}年{day.month}月{day.day}日，星期{'一二三四五六日'[day.weekday()]}"
    return f"{WEEKDAYS[day.weekday()]}, {MONTHS[day.month - 1]} {day.day}, {day.year}"


def clean_text(text: str) -> str:
    """A source's text on one line: control characters and line ends become spaces, invisible marks go, white space collapses.

    >>> clean_text("Pumpkin\\x00 pie\\n\\u200f 9 in")
    'Pumpkin pie 9 in'
    """
    if text.isprintable():  # none of these characters, as with nearly every title
        return " ".join(text.split())
    kept = []
    for char in text:
        category = unicodedata.category(char)
        if category in {"Cc", "Zl", "Zp", "Cs"}:
            kept.append(" ")
        elif category != "Cf" or char in JOINERS:
            kept.append(char)
    return " ".join("".join(kept).split())


def short_title(title: str) -> str:
    """The form of a title that lines show: cleaned, cut at a word to MAX_TITLE_CHARS, without the separator of a line's items.

    >>> short_title("Soap; lemon | 2 pack")
    'Soap, lemon | 2 pack'
    """
    text = re.sub(r";\s", ", ", clean_text(title))
    if len(text) <= MAX_TITLE_CHARS:
        return text
    head = text[: MAX_TITLE_CHARS - 1]
    at_word = head.rsplit(" ", 1)[0] if " " in head[MAX_TITLE_CHARS // 2 :] else head
    return at_word.rstrip(" ,;:-") + "…"
