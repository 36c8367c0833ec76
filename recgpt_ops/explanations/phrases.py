"""The closed lists of the small model: guidelines it chooses from, and sentences of which it chooses the words.

    voice "calm, as a picture" + reader "friends, fun" + item "Candy bars" + now "Halloween"
    -> "Candy bars on a fun Halloween evening", "Candy bars on a lively autumn night" ...

A sentence says of an item nothing but the item's own words: every other word is about the day and the people. So no line can praise,
promise or invent, whichever of them the model picks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from recgpt_ops.llm.languages import language_share
from recgpt_ops.prompts import language_of

MAX_NOUN_WORDS = 3
MAX_NOUNS = 4


class Voice(NamedTuple):
    """Tone and rhetorical device, and the sentences of that device: with a situation, and without one."""

    tone: str
    device: str
    frames: tuple[str, ...]
    plain_frames: tuple[str, ...]


class Reader(NamedTuple):
    """Whom a line speaks to and what it should feel like; `feels` and `times` are the words for that, `company` who is there."""

    audience: str
    feeling: str
    feels: tuple[str, ...]
    times: tuple[str, ...]
    company: str


class Phrases(NamedTuple):
    """All closed lists of one language. `fixed_frames` are V1's: one sentence for every item."""

    voices: tuple[Voice, ...]
    readers: tuple[Reader, ...]
    seasons: dict[str, str]
    holidays: dict[str, str]  # those that are kept with joy, by English name; a day of remembrance sells nothing
    months: tuple[str, ...]
    fixed_frames: tuple[str, ...]
    fixed_feels: tuple[str, ...]
    fixed_times: tuple[str, ...]
    option: str  # {first} {second}: how a pair of the guideline is shown to the model
    guideline: str


ENGLISH = Phrases(
    voices=(
        Voice("playful", "a question", ("Ready for {when}? {Item} for {a_feel} {time}",), ("Ready? {Item} for {a_feel} {time}",)),
        Voice("calm", "a picture", ("{Item} on {a_feel} {when} {time}",), ("{Item} on {a_feel} {time}",)),
        Voice("cheerful", "an invitation", ("Pick {item} for {a_feel} {when} {company}",), ("Pick {item} for {a_feel} {time} {company}",)),
        Voice("plain", "a pairing", ("{Item} and {a_feel} {when} {time} go together",), ("{Item} and {a_feel} {time} go together",)),
        Voice("warm", "a wish", ("Wishing you {a_feel} {when} with {item}",), ("Wishing you {a_feel} {time} with {item}",)),
    ),
    readers=(
        Reader("families", "joy", ("happy", "bright", "merry"), ("day", "evening", "weekend"), "with family"),
        Reader("friends", "fun", ("fun", "lively", "playful"), ("night", "evening", "weekend"), "with friends"),
        Reader("people at home", "comfort", ("cozy", "snug", "homey"), ("evening", "morning", "night"), "at home"),
        Reader("busy people", "ease", ("easy", "simple", "relaxed"), ("day", "week", "morning"), "between errands"),
        Reader("people who like quiet", "calm", ("quiet", "calm", "gentle"), ("evening", "hour", "morning"), "at ease"),
    ),
    seasons={name: name for name in ("winter", "spring", "summer", "autumn")},
    holidays={
        "New Year's Day": "New Year", "New Year's Eve": "New Year", "Valentine's Day": "Valentine", "Saint Patrick's Day": "St Patrick",
        "Easter Sunday": "Easter", "Easter Monday": "Easter", "Mother's Day": "Mother's Day", "Father's Day": "Father's Day",
        "Independence Day": "Independence Day", "Labor Day": "Labor Day", "Halloween": "Halloween", "Thanksgiving Day": "Thanksgiving",
        "Thanksgiving": "Thanksgiving", "Christmas Eve": "Christmas", "Christmas Day": "Christmas", "Boxing Day": "Boxing Day",
    },
    months=("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"),
    fixed_frames=("{Item} for {a_feel} {month} {time}",),
    fixed_feels=("happy", "easy", "quiet"),
    fixed_times=("day", "evening", "weekend"),
    option="{first}, as {second}|{first}, for {second}",
    guideline="tone: {tone}; device: {device}; audience: {audience}; feeling: {feeling}",
)  # fmt: skip
CHINESE = Phrases(
    voices=(
        Voice("俏皮", "提问", ("{when}怎么过？有{item}", "{feel}{when}，{item}呢？"), ("{feel}{time}，{item}呢？",)),
        Voice("平静", "画面", ("{feel}{when}里的{item}", "{when}{time}，{item}{feel}"), ("{feel}{time}里的{item}",)),
        Voice("欢快", "邀请", ("{when}来点{item}，{feel}", "一起{feel}{when}配{item}"), ("{time}来点{item}，{feel}",)),
        Voice("朴素", "搭配", ("{item}配{feel}{when}", "{item}配{when}{time}"), ("{item}配{feel}{time}",)),
        Voice("温暖", "祝愿", ("愿{when}{feel}，有{item}", "愿{when}有{item}"), ("愿{time}{feel}，有{item}",)),
    ),
    readers=(
        Reader("家人", "喜悦", ("欢乐", "开心"), ("时光", "团聚"), ""),
        Reader("朋友", "热闹", ("热闹", "好玩"), ("夜晚", "聚会"), ""),
        Reader("居家的人", "舒适", ("温馨", "舒适"), ("夜晚", "清晨"), ""),
        Reader("忙碌的人", "轻松", ("轻松", "简单"), ("日常", "清晨"), ""),
        Reader("喜欢安静的人", "宁静", ("安静", "惬意"), ("时光", "午后"), ""),
    ),
    seasons={"winter": "冬日", "spring": "春日", "summer": "夏日", "autumn": "秋日"},
    holidays={
        "New Year's Day": "元旦", "New Year's Eve": "跨年", "Valentine's Day": "情人节", "Mother's Day": "母亲节", "Father's Day": "父亲节",
        "Halloween": "万圣节", "Thanksgiving Day": "感恩节", "Christmas Eve": "平安夜", "Christmas Day": "圣诞节",
        "Easter Sunday": "复活节",
        "Chinese New Year": "春节", "Chinese New Year (Spring Festival)": "春节", "Spring Festival": "春节",
        "Dragon Boat Festival": "端午", "Mid-Autumn Festival": "中秋", "National Day": "国庆",
    },
    months=("一月", "二月", "三月", "四月", "五月", "六月", "七月", "八月", "九月", "十月", "十一月", "十二月"),
    fixed_frames=("{month}{feel}有{item}", "{month}{feel}{time}有{item}"),
    fixed_feels=("开心", "轻松", "安静"),
    fixed_times=("时光", "日子"),
    option="{first}，用{second}|给{first}，要{second}",
    guideline="语气：{tone}；手法：{device}；读者：{audience}；感受：{feeling}",
)  # fmt: skip

SEGMENT = re.compile(r"[^\W\d_]+(?:['’&-][^\W\d_]+|\s+(?=[^\W\d_])[^\W\d_]+(?:['’-][^\W\d_]+)*)*")
CHINESE_RUN = re.compile(r"[\u3400-\u9fff]{2,}")
EDGE_WORDS = frozenset(["a", "an", "and", "all", "for", "from", "in", "of", "on", "or", "other", "s", "the", "to", "w", "with"])


def phrases_of(locale: str) -> Phrases:
    """The lists for a locale; English where its language has none."""
    return CHINESE if language_of(locale) == "zh" else ENGLISH


def voice_options(phrases: Phrases) -> dict[str, Voice]:
    """Tone and device as the model is shown them.

    >>> next(iter(voice_options(ENGLISH)))
    'playful, as a question'
    """
    shown = phrases.option.partition("|")[0]
    return {shown.format(first=voice.tone, second=voice.device): voice for voice in phrases.voices}


def reader_options(phrases: Phrases) -> dict[str, Reader]:
    """Audience and feeling as the model is shown them.

    >>> next(iter(reader_options(ENGLISH)))
    'families, for joy'
    """
    shown = phrases.option.partition("|")[2]
    return {shown.format(first=reader.audience, second=reader.feeling): reader for reader in phrases.readers}


def guideline(phrases: Phrases, voice: Voice, reader: Reader) -> str:
    """The style guideline as one line."""
    return phrases.guideline.format(tone=voice.tone, device=voice.device, audience=reader.audience, feeling=reader.feeling)


def nouns(locale: str, *texts: str) -> tuple[str, ...]:
    """What an item may be called: short runs of its own words, from the first text that has one.

    >>> nouns("en-US", "Frozen boxed vegetables - plain"), nouns("en-US", "Ss economy entrees/dinners all")
    (('frozen boxed vegetables', 'plain'), ('ss economy entrees', 'dinners'))
    >>> nouns("zh-CN", "纯棉儿童袜子")
    ('袜子', '童袜子', '儿童袜子')
    """
    find = chinese_nouns if language_of(locale) == "zh" else spaced_nouns
    fitting = ([noun for noun in dict.fromkeys(find(text)) if language_share(noun, locale) == 1.0] for text in texts)
    return next((tuple(found[:MAX_NOUNS]) for found in fitting if found), ())


def spaced_nouns(text: str) -> Iterator[str]:
    """Runs of letters as they stand between numbers and marks, without small words at their edges; long ones by both their ends.

    What follows a number is a measure (`1 liter bottle`), so it names the item only where nothing else does.
    """
    runs = list(SEGMENT.finditer(text))
    named = [run[0] for run in runs if not re.search(r"\d\s*$", text[: run.start()])]
    for run in named or [run[0] for run in runs]:
        words = [word if word.isupper() and len(word) > 1 else word.lower() for word in run.split()]
        while words and words[0] in EDGE_WORDS:
            del words[0]
        while words and words[-1] in EDGE_WORDS:
            del words[-1]
        if not any(len(word) > 2 for word in words):
            continue
        if len(words) > MAX_NOUN_WORDS:
            yield " ".join(words[:MAX_NOUN_WORDS])
            yield " ".join(words[-2:])
        else:
            yield " ".join(words)


def chinese_nouns(text: str) -> Iterator[str]:
    """The last two to four characters of each run: in Chinese what a thing is stands at the end of its name."""
    for run in CHINESE_RUN.findall(text):
        yield from (run[-length:] for length in range(2, min(4, len(run)) + 1))


def sentences(
    frames: tuple[str, ...],
    *,
    locale: str,
    items: tuple[str, ...],
    feels: tuple[str, ...],
    times: tuple[str, ...],
    whens: tuple[str, ...] = ("",),
    company: str = "",
    month: str = "",
) -> Iterator[str]:
    """Every sentence of the frames, each once."""
    made = (
        frame.format(item=item, Item=item[:1].upper() + item[1:], feel=feel, a_feel=with_article(feel), time=time, when=when,
                     company=company, month=month)
        for frame in frames
        for item, feel, when, time in product(items, feels, whens, times)
    )  # fmt: skip
    yield from dict.fromkeys(made)


def with_article(word: str) -> str:
    """`a happy`, `an easy`; only English frames ask for it."""
    return f"an {word}" if word[:1].lower() in "aeiou" else f"a {word}"
