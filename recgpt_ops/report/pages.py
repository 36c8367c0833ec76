"""The pages of a report: an index of the night and one file a user, each of which stands alone and loads nothing.

Texts of items and of models are foreign: every one is escaped, steering characters are spelled out, and the page's own policy lets no
script run but ours.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from recgpt_ops.contexts.words import date_words
from recgpt_ops.report.evidence import NAMED, Evidence
from recgpt_ops.report.people import Neighbor, Person
from recgpt_ops.report.texts import number, shown_text


@cache
def environment() -> Environment:
    """The templates, with escaping on for every one of them."""
    made = Environment(
        loader=PackageLoader("recgpt_ops.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        finalize=shown,
    )  # fmt: skip
    made.filters |= {"number": number, "anchors": anchors, "told": told, "groupby_runs": runs}
    made.globals["named"] = NAMED
    for name, file in (("style", "report.css"), ("script", "report.js")):
        text = read_part(made, file)
        made.globals |= {name: Markup(text), f"{name}_hash": base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}  # ours
    return made


def read_part(made: Environment, file: str) -> str:
    """A file that goes into every page as it is."""
    assert made.loader is not None
    return made.loader.get_source(made, file)[0]


def shown(value: Any) -> Any:
    """What a template writes: plain text with steering characters spelled out; markup of our own as it is."""
    return shown_text(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def anchors(line_ids: Iterable[int], history: str) -> list[str]:
    """Where the lines of a history stand in the page.

    >>> anchors([3, 8], "line")
    ['line-3', 'line-8']
    """
    return [f"{history}-{line_id}" for line_id in line_ids]


def told(evidence: Sequence[Evidence]) -> str:
    """How many lines, and who named them.

    >>> told([Evidence(3, ("set by the program",), ("Soup",)), Evidence(9, ("in context",), ())])
    '2 lines: 1 set by the program, 1 in context'
    """
    ways = [way for line in evidence for way in line.how]
    parts = ", ".join(f"{ways.count(way)} {way}" for way in (*NAMED.values(), "in context") if way in ways)
    return f"{len(evidence)} line{'' if len(evidence) == 1 else 's'}: {parts}"


def runs(values: Iterable[Any], name: str) -> Iterator[tuple[Any, list[Any]]]:
    """Neighbors with the same value of an attribute, together."""
    return ((key, list(group)) for key, group in groupby(values, key=lambda value: getattr(value, name)))


def index_page(content: dict[str, Any]) -> str:
    """The night's page."""
    return environment().get_template("index.html").render(content, ds_words=date_words(content["ds"], "en-US"))


def user_page(person: Person, *, ds: str, methods: Sequence[str], previous: Neighbor | None, following: Neighbor | None) -> str:
    """A user's page, with links to the users beside."""
    return (
        environment()
        .get_template("user.html")
        .render(
            person=person,
            context=person.context,
            ds=ds,
            only_method=methods[0] if len(methods) == 1 else None,
            previous=previous,
            following=following,
        )
    )
