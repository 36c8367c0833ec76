"""What the pages say, and that texts from outside stay texts."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from recgpt_ops.delta.sql import connect
from recgpt_ops.report.pages import anchors, told, user_page
from recgpt_ops.report.people import month_words, read_people
from recgpt_ops.report.standing import open_night
from tests.unit.report.nights import BEFORE, CHINESE, DS

EVERYBODY = (None, "886", "1391", "zh-1", "hostile", "failed")
VOID = {"meta", "br", "input", "img", "link", "base"}


class Reading(HTMLParser):
    """Tags in order, headings, attributes that could load something, and what stands open at the end."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open[-1] == tag, f"{tag} closes {self.open[-1]}"
        self.open.pop()


def words(text: str) -> str:
    """A page as people read it: without markup, white space collapsed."""
    body = re.sub(r"<(style|script)>.*?</\1>", "", text, flags=re.S)
    return " ".join(re.sub(r"<[^>]+>", " ", body).split())


@pytest.mark.parametrize("user_id", EVERYBODY)
def test_a_page_is_well_formed_and_texts_from_outside_add_no_tag_and_no_control_character(page, user_id):
    text = page(user_id)
    found = Reading(text)
    assert found.open == []
    assert [found.tags.count(tag) for tag in ("script", "style", "img", "iframe", "form")] == [1, 1, 0, 0, 0]
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


def test_texts_that_mean_harm_are_shown_as_they_are(page):
    text = page("hostile")
    assert "&lt;/script&gt;&lt;script&gt;window.stolen = 1&lt;/script&gt;" in text
    assert "Red⟨U+202E⟩eniw⟨U+202C⟩ wine⟨U+001B⟩[31m" in text
    assert "&lt;img src=x onerror" in page(None)  # an example of what is in quarantine


@pytest.mark.parametrize("user_id", EVERYBODY)
def test_a_page_names_nothing_that_would_be_loaded(page, user_id):
    found = Reading(page(user_id)).attributes
    assert {value.partition("#")[0] for _, name, value in found if name == "href"} <= {
        "", "../index.html", *(value for _, name, value in found if name == "href" and re.fullmatch(r"(users/)?[0-9a-f]{24}\.html", value))
    }  # fmt: skip
    assert not [attribute for attribute in found if attribute[1] in {"src", "srcset", "style", "action"} or attribute[1].startswith("on")]
    assert "url(" not in page(user_id)
    assert any("default-src 'none'" in value for _, name, value in found if name == "content")


@pytest.mark.parametrize("user_id", EVERYBODY)
def test_headings_go_down_one_level_at_a_time_and_ids_are_there_once(page, user_id):
    found = Reading(page(user_id))
    levels = [int(tag[1]) for tag in found.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    ids = [value for _, name, value in found.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    named = {value for _, name, value in found.attributes if name in {"aria-labelledby", "for"}}
    assert named <= set(ids)


@pytest.mark.parametrize("user_id", EVERYBODY)
def test_each_link_within_a_page_leads_somewhere(page, user_id):
    found = Reading(page(user_id)).attributes
    ids = {value for _, name, value in found if name == "id"}
    assert {value[1:] for _, name, value in found if name == "href" and value.startswith("#")} <= ids
    assert {one for _, name, value in found if name == "data-lines" for one in value.split()} <= ids


def test_the_words_for_evidence_are_those_of_who_named_the_line(page):
    told_of = words(page("886"))
    assert "1 Pumpkin panel S one_shot A score 3.500 from Halloween 2 lines: 1 set by the program, 1 in context line 2 set by" in told_of
    assert "1 line: 1 cited by the model line 1 cited by the model for Snacks" in told_of
    assert re.search(r'data-lines="line-2 line-3" data-types="[\d ]+"', page("886"))


def test_a_tag_without_a_line_says_so(page, nights):
    """Persona trends of v1 names no line; a tag of it whose type stands nowhere has nothing to show."""
    assert "names no line of the context" in words(page("886"))
    night, _ = open_night(connect(nights), ds=DS, scenario="default")
    [person] = read_people(night, ["zh-1"])
    [side] = [side for side in person.sides if side.method == "v2"]
    bare = [tag.__class__(**{**tag.__dict__, "evidence": ()}) for tag in side.tags]
    changed = person.__class__(**{**person.__dict__, "sides": (side.__class__(**{**side.__dict__, "tags": tuple(bare)}),)})
    text = user_page(changed, ds=DS, methods=night.methods, previous=None, following=None)
    assert "No line of the context speaks for it: none is named, and none holds its type." in words(text)


def test_every_judge_is_shown_with_every_dimension_status_and_reason(page):
    told_of = words(page("886"))
    for dimension in ("relevance", "consistency", "specificity", "validity", "factuality", "timeliness"):
        assert f"panel {dimension}" in told_of
    assert "panel relevance positive ok 0.250 fits the season" in told_of
    assert "panel relevance none out_of_range –" in told_of  # a failure of the judge is its status, never a level
    assert "panel: failed, grade none by rule, judged by smollm2-135m-instruct, the model that wrote it." in told_of


def test_explanations_are_told_with_style_and_failures_as_failures(page):
    assert "“" not in words(page("886"))  # the quotation marks are the browser's, in the text's own language
    assert '<q lang="en-US"><bdi lang="en-US">Carve it tonight, bake it tomorrow</bdi></q>' in page("886")
    assert "style: warm, playful, for a family" in words(page("886"))
    assert "style: a fixed template" in words(page("886"))
    assert "No explanation: no valid text came." in words(page("1391"))


def test_chinese_texts_say_that_they_are_chinese(page):
    assert f'<bdi lang="zh-CN">{CHINESE}</bdi>' in page("zh-1")
    assert f'<bdi lang="zh-CN">{CHINESE}</bdi>' in page(None)


def test_a_user_without_a_result_says_what_happened(page):
    told_of = words(page("failed"))
    assert "This user is not in the night of v1." in told_of
    assert "v2, intents, attempt 1: context_too_long ( expected at most 4,096 tokens, got 4,120 )" in told_of
    assert "No context was written for this user in this night." in told_of


def test_methods_that_read_other_lines_have_a_history_each(page):
    assert page("886").count('id="lines"') == 1
    assert "As v1 and v2 read it" in words(page("886"))
    assert [name in page("1391") for name in ('id="lines"', 'id="line-2s"', 'id="line-2-3"')] == [True] * 3
    assert "As v2 reads it" in words(page("1391"))


def test_a_night_of_one_method_says_that_there_is_nothing_beside_it(nights):
    night, before = open_night(connect(nights), ds=BEFORE, scenario="default")
    [person] = read_people(night, ["886"])
    text = words(user_page(person, ds=BEFORE, methods=night.methods, previous=None, following=None))
    assert before is None
    assert "Only v2 is visible for this night: there is nothing to set beside it." in text


def test_the_index_tells_quarantine_stages_calls_and_worth(page):
    told_of = words(page(None))
    assert "compared with the visible night of 2017-10-29" in told_of
    assert "context_too_long 1 intent_tags intents v2" in told_of
    assert "no_such_day 1 behavior_events" in told_of
    assert "1 engine load, 120 calls made and 0 answered from the ledger" in told_of
    assert "intents 24 8 24 0 30 0 4,000 3,000 1,000 90 1 300" in told_of
    assert "v2 intents expert 2 4,000 3,000 1,000 24" in told_of
    assert "prompt_tokens_computed tokens 5,200 5,100 to 5,300" in told_of
    assert "v2 − most_bought_types -0.100 to 0.020 -0.040" in told_of


def test_lines_of_evidence_are_counted_by_who_named_them():
    assert anchors([3, 8], "line-2") == ["line-2-3", "line-2-8"]
    assert told([]) == "0 lines: "
    assert [month_words(bucket) for bucket in ("2017-10-28", "2017-08", "2015", "")] == ["Oct 2017", "Aug 2017", "2015", ""]
