"""The report as people use it: opened from a file, clicked, searched, on a phone, in the dark, by keyboard."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

PHONE = {"width": 390, "height": 844}
IS_IN_VIEW = """node => { const box = node.getBoundingClientRect();
  return box.top >= 0 && box.bottom <= document.getElementById('litbar').getBoundingClientRect().top; }"""
WIDE_NODES = """() => [...document.querySelectorAll('body *')].filter(node => node.getBoundingClientRect().right > innerWidth + 1
  && !node.closest('.wide, .skip')).map(node => node.tagName + '.' + node.className)"""
CONTRAST = """selector => { const light = color => { const [r, g, b] = color.match(/[\\d.]+/g).slice(0, 3).map(v => { v /= 255;
    return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = node => { const color = getComputedStyle(node).backgroundColor;
    return color === 'rgba(0, 0, 0, 0)' && node.parentElement ? behind(node.parentElement) : color; };
  return [...document.querySelectorAll(selector)].map(node => { const style = getComputedStyle(node);
    const [a, b] = [light(node instanceof SVGElement ? style.fill : style.color), light(behind(node))].sort((x, y) => y - x);
    return [(a + 0.05) / (b + 0.05), node.textContent.trim().slice(0, 40)]; }); }"""


def lit(page) -> list[str]:
    """The ids of the lines that are lit."""
    return [node.get_attribute("id") for node in page.locator(".line.lit").all()]


def comes_into_view(page, selector: str) -> bool:
    """Whether the node stands in the window, above the bar, within two seconds: scrolling is smooth."""
    for _ in range(20):
        if page.locator(selector).evaluate(IS_IN_VIEW):
            return True
        page.wait_for_timeout(100)
    return False


def last_side(page):
    """The column of v2."""
    return page.locator(".sides > section").last


@pytest.mark.parametrize("user_id", [None, "886", "zh-1", "hostile", "failed"])
def test_a_page_opens_from_a_file_asks_for_nothing_else_and_complains_of_nothing(watch, user_id):
    watched = watch()
    watched.open_index()
    if user_id is not None:
        watched.open_user(user_id)
    assert watched.complaints == []
    assert all(url.startswith("file://") and url.endswith(".html") for url in watched.asked)
    assert watched.page.evaluate("window.stolen") is None


def test_one_click_on_a_tag_leads_to_the_lines_and_items_it_rests_on(watch):
    watched = watch()
    watched.open_user("886")
    tag = last_side(watched.page).get_by_role("link", name="Pumpkin", exact=True)
    tag.click()
    assert lit(watched.page) == ["line-2", "line-3"]
    first = watched.page.locator("#line-2")
    assert comes_into_view(watched.page, "#line-2")
    assert first.evaluate("node => node === document.activeElement")
    assert watched.page.locator(".line li.lit").all_inner_texts() == ["Carving pumpkin, large Pumpkin", "Candy corn, 22 oz bag Candy corn",
                                                                      "Pie pumpkin, small Pumpkin"]  # fmt: skip
    assert watched.page.get_by_role("status").inner_text() == "Pumpkin: 2 lines: 1 set by the program, 1 in context"
    watched.page.get_by_role("button", name="Next line").click()
    assert watched.page.locator("#line-3").evaluate("node => node === document.activeElement")
    watched.page.keyboard.press("Escape")
    assert lit(watched.page) == []
    assert tag.evaluate("node => node === document.activeElement")


def test_a_tag_of_another_method_lights_its_own_lines_and_only_these(watch):
    watched = watch()
    watched.open_user("1391")  # v1 read fewer lines: each method has a history of its own
    watched.page.locator(".sides > section").first.get_by_role("link", name="Candy corn", exact=True).click()
    first = lit(watched.page)
    last_side(watched.page).get_by_role("link", name="Cheese crackers", exact=True).click()
    assert first == ["line-2"]
    assert lit(watched.page) == ["line-2-1"]


def test_a_tag_that_means_harm_is_lit_like_any_other(watch):
    watched = watch()
    watched.open_user("hostile")
    last_side(watched.page).locator(".tag h4 a").nth(1).click()
    assert len(lit(watched.page)) >= 1
    assert "⟨U+202E⟩" in watched.page.get_by_role("status").inner_text()
    assert watched.page.evaluate("window.stolen") is None


def test_without_scripts_a_tag_still_leads_to_its_first_line(watch):
    watched = watch(java_script_enabled=False)
    watched.open_user("886")
    last_side(watched.page).locator(".tag h4 a").first.click()
    assert watched.page.url.endswith("#line-2")
    assert watched.page.locator(".line:target").count() == 1
    assert watched.page.locator(".find").count() == 0


@pytest.mark.parametrize(
    ("wanted", "found", "told"),
    [("139", ["1391"], "1 of 5 users"), ("garden HOSE", ["886", "1391", "hostile"], "3 of 5 users"), ("nobody", [], "0 of 5 users"),
     ("南瓜", ["zh-1"], "1 of 5 users")],
)  # fmt: skip
def test_a_user_is_found_by_id_or_tag(watch, wanted, found, told):
    watched = watch()
    watched.open_index()
    watched.page.get_by_label("Find a user by id or by a tag").fill(wanted)
    assert watched.page.locator("#people > li:visible a.who").all_inner_texts() == found
    assert watched.page.locator("#found").inner_text() == told


@pytest.mark.parametrize("user_id", [None, "886", "1391", "hostile", "zh-1"])
def test_on_a_phone_nothing_stands_out_to_the_side(watch, user_id):
    watched = watch(viewport=PHONE)
    watched.open_index()
    if user_id is not None:
        watched.open_user(user_id)
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    watched.page.evaluate("document.querySelectorAll('details').forEach(node => node.open = true)")
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert watched.page.evaluate(WIDE_NODES) == []


def test_methods_stand_side_by_side_on_a_wide_screen_and_below_each_other_on_a_phone(watch):
    tops = {}
    for name, viewport in (("wide", {"width": 1400, "height": 900}), ("phone", PHONE)):
        watched = watch(viewport=viewport)
        watched.open_user("886")
        tops[name] = [section.bounding_box()["y"] for section in watched.page.locator(".sides > section").all()]
    assert tops["wide"][0] == tops["wide"][1]
    assert tops["phone"][0] < tops["phone"][1]


def test_on_a_phone_a_click_leads_down_to_the_line_and_a_button_back_to_the_tag(watch):
    watched = watch(viewport=PHONE)
    watched.open_user("886")
    tag = last_side(watched.page).locator(".tag h4 a").first
    tag.click()
    assert comes_into_view(watched.page, "#line-2")
    watched.page.get_by_role("button", name="Back to the tag").click()
    assert tag.evaluate("node => node === document.activeElement")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("user_id", [None, "886"])
def test_every_text_stands_out_from_what_is_behind_it(watch, scheme, user_id):
    """4.5 to 1, the level AA of WCAG, for all texts, those of drawings and lit lines too."""
    watched = watch(color_scheme=scheme)
    watched.open_index()
    selector = "p, a, h1, h2, h3, h4, th, td, caption, figcaption, summary, label, li, svg text"
    if user_id is not None:
        watched.open_user(user_id)
        last_side(watched.page).locator(".tag h4 a").first.click()
        selector += ", .badge, .how, .quiet, .line bdi, .line .head, button"
    measured = watched.page.evaluate(CONTRAST, selector)
    assert len(measured) > 50
    assert [text for ratio, text in measured if ratio < 4.5] == []


def test_the_dark_scheme_is_dark_and_drawings_follow_it(watch):
    colors = {}
    for scheme in ("light", "dark"):
        watched = watch(color_scheme=scheme)
        watched.open_index()
        colors[scheme] = watched.page.evaluate(
            "() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.querySelector('svg text')).fill]"
        )
    assert colors["light"] == ["rgb(246, 245, 242)", "rgb(29, 33, 38)"]
    assert colors["dark"] == ["rgb(20, 23, 26)", "rgb(232, 230, 225)"]


@pytest.mark.parametrize("user_id", [None, "886"])
def test_the_first_key_reaches_a_link_past_the_navigation_and_focus_is_seen(watch, user_id):
    watched = watch()
    watched.open_index()
    if user_id is not None:
        watched.open_user(user_id)
    watched.page.keyboard.press("Tab")
    focused = watched.page.locator(":focus")
    assert focused.inner_text() == "Skip to the content"
    assert focused.bounding_box()["x"] >= 0
    assert focused.evaluate("node => getComputedStyle(node).outlineStyle") == "solid"
    watched.page.keyboard.press("Enter")
    assert watched.page.locator(":focus").get_attribute("id") == "main"


def test_a_tag_is_reached_and_lit_by_keyboard_alone(watch):
    watched = watch()
    watched.open_user("886")
    for _ in range(60):
        watched.page.keyboard.press("Tab")
        if watched.page.locator(":focus").evaluate("node => node.matches('.tag h4 a')"):
            break
    watched.page.keyboard.press("Enter")
    assert lit(watched.page)


@pytest.mark.parametrize("user_id", [None, "886"])
def test_a_screen_reader_finds_landmarks_and_names(watch, user_id):
    watched = watch()
    watched.open_index()
    if user_id is not None:
        watched.open_user(user_id)
    page = watched.page
    assert [page.get_by_role(role).count() for role in ("banner", "main", "contentinfo")] == [1, 1, 1]
    assert page.get_by_role("navigation").first.get_attribute("aria-label")
    assert page.evaluate("[...document.querySelectorAll('table')].every(table => table.caption && table.caption.textContent)")
    assert page.evaluate("[...document.querySelectorAll('svg')].every(svg => svg.closest('[role=img][aria-label]'))")
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(node => +node.tagName[1])")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert re.fullmatch("[a-z]{2}", page.evaluate("document.documentElement.lang"))
