"""Drawings hold the figures they are given, in colors of the page, and texts stay texts."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from recgpt_ops.report.charts import WIDTH, Dot, Point, bars_chart, intervals_chart, parts_chart

SVG = "{http://www.w3.org/2000/svg}"
COLORS = {"S": "--good", "B": "--bad"}


def texts(svg: str) -> list[str]:
    return [node.text or "" for node in ET.fromstring(svg).iter(f"{SVG}text")]


def bars(svg: str, color: str) -> list[float]:
    """The lengths of the bars of one color, without the legend's squares."""
    return [float(found) for found in re.findall(rf'd="M\d[^h"]*h([\d.]+)v[^"]*" fill="var\({color}\)"', svg)]


def test_parts_of_a_bar_are_as_long_as_their_values_and_stand_in_their_colors():
    svg = parts_chart([Point("v1", "panel", "S", 3), Point("v1", "panel", "B", 1)], parts=COLORS, unit="tags")
    [good], [bad] = bars(svg, "--good"), bars(svg, "--bad")
    assert good == pytest.approx(3 * bad, rel=0.01)
    assert {"panel", "tags", "S", "B"} <= set(texts(svg))


def test_shares_fill_the_whole_bar():
    points = [Point("v1", "a", "S", 3), Point("v1", "a", "B", 1), Point("v1", "b", "S", 1)]
    svg = parts_chart(points, parts=COLORS, unit="share", is_share=True)
    three_quarters, whole = sorted(bars(svg, "--good"))
    assert three_quarters == pytest.approx(0.75 * whole, rel=0.01)


def test_each_method_is_a_block_of_its_own():
    svg = parts_chart([Point("v1", "panel", "S", 3), Point("v2", "panel", "S", 1)], parts=COLORS, unit="tags")
    assert [text for text in texts(svg) if text in {"v1", "v2"}] == ["v1", "v2"]


@pytest.mark.parametrize("name", ["v2", "an arm whose name is far too long to be shown in full beside a bar"])
def test_a_drawing_fits_a_phone_and_knows_no_color_but_the_page_s(name):
    svg = intervals_chart([Dot("", name, 0.1, 0.05, 0.2), Dot("", "none", 0.3, None, None)], unit="ratio")
    assert float(ET.fromstring(svg).get("width", "0")) <= WIDTH + 25
    assert not re.findall(r'(?:fill|stroke)="(?!none|transparent|var\()[^"]+"', svg)


def test_texts_from_outside_stay_texts_in_a_drawing():
    svg = bars_chart([Dot("", "</script><img src=x>\x1b", 1.0, None, None)], unit="tokens")
    assert "<img" not in svg
    assert "\x1b" not in svg
    assert ET.fromstring(svg) is not None


def test_the_same_figures_make_the_same_drawing():
    dots = [Dot("", "v1", 2.0, None, None)]
    assert bars_chart(dots, unit="seconds") == bars_chart(dots, unit="seconds")
