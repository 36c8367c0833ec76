"""The closed lists: every sentence they can make passes our own check."""

from __future__ import annotations

from itertools import product

import pytest

from recgpt_ops.errors import RowError
from recgpt_ops.explanations.desk import source_of
from recgpt_ops.explanations.phrases import CHINESE, ENGLISH, nouns, phrases_of, reader_options, sentences, voice_options
from recgpt_ops.explanations.rows import Wanted
from recgpt_ops.explanations.styles import Style
from recgpt_ops.explanations.validation import check_explanation
from recgpt_ops.explanations.writing import fitting, fixed_options, guided_options

from .conftest import make_chinese, make_item, make_wanted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Frozen boxed vegetables - plain", ("frozen boxed vegetables", "plain")),
        ("Soft drink 1 liter bottle carbonated", ("soft drink",)),  # what follows a number is a measure
        ("24 hanging Easter eggs", ("hanging easter eggs",)),  # unless nothing else is there
        ("Ss economy entrees/dinners all", ("ss economy entrees", "dinners")),
        ("Set of three USB chargers for cars", ("set of three", "for cars")),
        ("123", ()),
        ("", ()),
    ],
)
def test_an_item_is_called_by_runs_of_its_own_words(text: str, expected: tuple[str, ...]) -> None:
    assert nouns("en-US", text) == expected


def test_a_chinese_item_is_called_by_the_end_of_its_name() -> None:
    assert nouns("zh-CN", "纯棉儿童袜子") == ("袜子", "童袜子", "儿童袜子")
    assert nouns("zh-CN", "USB-C", "数据线") == ("据线", "数据线")


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_every_guideline_has_sentences_for_every_situation(locale: str) -> None:
    phrases = phrases_of(locale)
    make = make_chinese if locale == "zh-CN" else make_wanted
    longest = max(phrases.holidays, key=lambda name: len(phrases.holidays[name].split()) + len(phrases.holidays[name]) / 100)
    seen = 0
    for (voice, reader), (season, holiday) in product(
        zip(phrases.voices * 5, sorted(phrases.readers * 5), strict=True), [(None, None), ("autumn", None), (None, longest)]
    ):
        wanted = make(season=season, holiday=holiday, situation=f"{season}, {holiday} {phrases.holidays.get(holiday or '', '')}")
        options = fitting(guided_options(wanted, Style("", "", voice, reader))(), wanted)
        assert options
        seen += len(options)
    assert seen > 150


def test_a_day_of_remembrance_is_not_named_in_a_line() -> None:
    wanted = make_wanted(holiday="Veterans Day", situation="autumn, Veterans Day")
    style = Style("", "", ENGLISH.voices[0], ENGLISH.readers[0])
    assert all("Veterans" not in text and "autumn" in text for text in guided_options(wanted, style)())


def test_v1_has_one_sentence_that_tells_the_month_and_no_situation() -> None:
    options = fitting(fixed_options(make_wanted())(), make_wanted())
    assert "Candy bars for an easy October day" in options
    assert all("October" in option and "Halloween" not in option for option in options)
    assert all("十月" in option for option in fitting(fixed_options(make_chinese())(), make_chinese()))


def test_the_options_of_a_guideline_are_short_and_differ() -> None:
    for phrases in (ENGLISH, CHINESE):
        assert len(voice_options(phrases)) == len(phrases.voices) == 5
        assert len(reader_options(phrases)) == len(phrases.readers) == 5
    assert next(iter(voice_options(ENGLISH))) == "playful, as a question"


def test_sentences_are_whole_and_begin_with_a_capital() -> None:
    made = list(sentences(ENGLISH.voices[1].frames, locale="en-US", items=("oats",), feels=("easy",), times=("day",), whens=("winter",)))
    assert made == ["Oats on an easy winter day"]


@pytest.mark.parametrize("title", ["🎃🎃🎃", "12 345", "混合坚果"])
def test_an_item_without_words_of_its_language_fails_alone_and_says_why(title: str) -> None:
    wanted: Wanted = make_wanted(item=make_item(title, category="", item_type=""))
    with pytest.raises(RowError, match="no sentence of the closed lists fits") as error:
        fitting(fixed_options(wanted)(), wanted)
    assert error.value.reason == "no_sentence"


def test_no_word_of_ours_is_a_claim() -> None:
    wanted = make_wanted(item=make_item("Plain thing", category="", item_type=""))
    for phrases_voice, reader in product(ENGLISH.voices, ENGLISH.readers):
        for text in guided_options(wanted, Style("", "", phrases_voice, reader))():
            check_explanation(text, source_of(wanted))
