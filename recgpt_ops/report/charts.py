"""Charts as still SVG, drawn by Vega-Lite while the page is made: nothing is drawn, and nothing loaded, when it is read.

Colors are variables of the page's style sheet, so one drawing serves light and dark. Each is as wide as a phone and is never scaled
down; a wide screen shows several side by side. The table beside each holds the same figures.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from recgpt_ops.report.texts import shown_text

WIDTH = 325  # of the whole drawing, labels included: a phone's 390 less the page's edges
STEP = 22  # height of one bar
LABEL, CHAR = 160, 6.9  # widest label, and one letter of it: room is kept by the widest usual font, whatever the reader's may be
INK, QUIET, GRID = "var(--ink)", "var(--quiet)", "var(--grid)"
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
VEGA_LITE = "6.4"
CONFIG = {
    "background": "transparent",
    "aria": False,  # the figure around it has a name and a table; marks without either would be read out one by one
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK, "titleColor": QUIET, "gridColor": GRID, "domainColor": GRID, "tickColor": GRID, "labelFontSize": 11,
        "titleFontSize": 11, "titleFontWeight": "normal", "labelLimit": LABEL, "labelSeparation": 10, "labelOverlap": "greedy",
    },
    "legend": {"labelColor": INK, "titleColor": QUIET, "labelFontSize": 11, "symbolType": "square"},
    "header": {"labelColor": INK, "titleColor": QUIET, "labelFontSize": 12, "labelFontWeight": "bold"},
}  # fmt: skip


class Chart(NamedTuple):
    """One drawing and the figures it shows. `id` names its caption within the page."""

    id: str
    title: str
    svg: Markup
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Point(NamedTuple):
    """A part of a stacked bar: `group` is its block of bars, `name` its bar."""

    group: str
    name: str
    part: str
    value: float


class Dot(NamedTuple):
    """One figure, and its interval where it has one. `group` as above, empty where there are none."""

    group: str
    name: str
    value: float
    lo: float | None
    hi: float | None


def parts_chart(points: Sequence[Point], *, parts: Mapping[str, str], unit: str, is_share: bool = False) -> Markup:
    """Stacked bars. `parts` gives each part its color, in the order they are stacked; with `is_share` every bar is as long as the whole."""
    order = {part: place for place, part in enumerate(parts)}
    values = [{**point._asdict(), "place": order[point.part]} for point in points]
    legend = {"title": None, "orient": "bottom", "columns": 3}
    return draw(
        {
            "mark": {"type": "bar", "height": {"band": 0.8}},
            "encoding": {
                "x": {
                    "field": "value", "type": "quantitative", "title": unit, "stack": "normalize" if is_share else "zero",
                    "axis": {"format": "%", "values": [0, 0.5, 1]} if is_share else {"format": "~s", "tickCount": 3, "tickMinStep": 1},
                },
                "y": {"field": "name", "type": "nominal", "title": None, "sort": names(points)},
                "color": {
                    "field": "part", "type": "nominal", "legend": legend,
                    "scale": {"domain": list(parts), "range": [f"var({color})" for color in parts.values()]},
                },
                "order": {"field": "place", "type": "quantitative"},
            },
        },
        values,
    )  # fmt: skip


def bars_chart(dots: Sequence[Dot], *, unit: str, color: str = "--bar") -> Markup:
    """Plain bars; intervals are not drawn."""
    return draw(
        {
            "mark": {"type": "bar", "height": {"band": 0.8}, "color": f"var({color})"},
            "encoding": {
                "x": {"field": "value", "type": "quantitative", "title": unit, "axis": {"format": "~s", "tickCount": 3}},
                "y": {"field": "name", "type": "nominal", "title": None, "sort": names(dots)},
            },
        },
        [dot._asdict() for dot in dots],
    )


def intervals_chart(dots: Sequence[Dot], *, unit: str) -> Markup:
    """A dot and its interval on a line."""
    x = {
        "field": "value",
        "type": "quantitative",
        "title": unit,
        "scale": {"zero": True},
        "axis": {"format": "~s" if unit == "tokens" else "~g", "tickCount": 3},
    }
    y = {"field": "name", "type": "nominal", "title": None, "sort": names(dots)}
    return draw(
        {
            "layer": [
                {
                    "mark": {"type": "rule", "strokeWidth": 2, "color": "var(--bar)"},
                    "encoding": {"x": {**x, "field": "lo"}, "x2": {"field": "hi"}, "y": y},
                },
                {"mark": {"type": "point", "filled": True, "size": 70, "color": "var(--bar)", "opacity": 1}, "encoding": {"x": x, "y": y}},
            ]
        },
        [dot._asdict() for dot in dots],
    )


def names(points: Sequence[Point] | Sequence[Dot]) -> list[str]:
    """The bars' names in the order they come."""
    return list(dict.fromkeys(shown_text(point.name) for point in points))


def draw(mark: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> Markup:
    """The drawing; points of several groups stand in blocks below each other, each under its group's name."""
    import vl_convert  # starts a JavaScript engine, which `--help` does not need

    values = [{key: shown_text(value) if isinstance(value, str) else value for key, value in point.items()} for point in points]
    groups = list(dict.fromkeys(value["group"] for value in values))
    room = min(LABEL, round(CHAR * max((len(str(value["name"])) for value in values), default=0))) + 10
    inner: dict[str, Any] = {**mark, "width": WIDTH - room - 20, "height": {"step": STEP}}
    config = {**CONFIG, "axisY": {"minExtent": room}}
    if len(groups) > 1:
        row = {"field": "group", "type": "nominal", "title": None, "sort": groups, "spacing": 14}
        header = {"labelAngle": 0, "labelOrient": "top", "labelAnchor": "start", "labelPadding": 4}
        inner = {"facet": {"row": {**row, "header": header}}, "spec": inner, "resolve": {"scale": {"y": "independent"}}}
    spec = {"$schema": SCHEMA, "config": config, "data": {"values": values}, **inner}
    return Markup(vl_convert.vegalite_to_svg(json.dumps(spec), vl_version=VEGA_LITE, allowed_base_urls=[]))  # Vega escapes its texts
