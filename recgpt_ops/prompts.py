"""Prompt templates: files of prose, rendered into messages in which the text of the data stays apart from our own.

    {# planner_v1.en.jinja - variables: context #}
    === system ===
    You read a shopper's history.
    === user ===
    {{ context }}
    Name one interest.

`render(template, context="1. milk")` gives

    Message("system", (Segment("You read a shopper's history.", is_data=False),))
    Message("user",   (Segment("1. milk", is_data=True), Segment("\\nName one interest.", is_data=False)))

Values never enter the rendered text: jinja writes a numbered mark in their place and the values are put back as segments
afterwards. So no value can forge a section line, a mark or (encoded by `llm.tokenizer`) a control token.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import jinja2
from jinja2 import meta, nodes

from recgpt_ops.errors import ConfigError

Role = Literal["system", "user", "assistant"]
MARK = re.compile("\x00(\\d+)\x00")  # no template may hold a NUL, so only finalize writes marks
SECTION = re.compile(r"^=== (\w+) ===[ \t]*(?:\n|$)", re.MULTILINE)
FALLBACK_LANGUAGE = "en"
# Of these, output would pass through finalize twice (a block kept in a variable) or come from another file.
REFUSED_TAGS = (
    nodes.AssignBlock,
    nodes.Macro,
    nodes.CallBlock,
    nodes.FilterBlock,
    nodes.Block,
    nodes.Extends,
    nodes.Include,
    nodes.Import,
    nodes.FromImport,
)


class Segment(NamedTuple):
    """A piece of a message. `is_data`: it came from a value, so it is encoded as plain text whatever it spells."""

    text: str
    is_data: bool


class Message(NamedTuple):
    """One turn of the conversation. A last message of the assistant is the beginning of the answer, left open."""

    role: Role
    segments: tuple[Segment, ...]

    @property
    def text(self) -> str:
        """The whole turn as one string, for people and for chat addresses."""
        return "".join(segment.text for segment in self.segments)


@dataclass(frozen=True)
class Template:
    """One template file. `prompt_id` is the sha256 of its text, `locale` the language it is written in."""

    prompt_id: str
    name: str
    version: str
    locale: str
    text: str


def language_of(locale: str) -> str:
    """The language part of a BCP 47 locale.

    >>> language_of("zh-CN")
    'zh'
    """
    return locale.replace("_", "-").partition("-")[0].lower()


def load_template(directory: Path, name: str, locale: str, *, variables: Collection[str] | None = None) -> Template:
    """The newest `<name>_v<N>.<language>.jinja` for the locale's language, else the English one.

    `variables` are the names that `render` will be given: a placeholder outside them is a fault of the file, told here
    and not in the middle of a night. None: not checked now.
    """
    language = language_of(locale)
    found: dict[tuple[str, int], Path] = {}
    for path in directory.glob(f"{name}_v*.jinja"):
        if match := re.fullmatch(rf"{re.escape(name)}_v(\d+)\.(\w+)\.jinja", path.name):
            found[match[2], int(match[1])] = path
    for wanted in (language, FALLBACK_LANGUAGE):
        if versions := [version for known, version in found if known == wanted]:
            path = found[wanted, max(versions)]
            break
    else:
        there = ", ".join(sorted(path.name for path in directory.glob("*.jinja"))) or "no template at all"
        raise ConfigError(str(directory), [f"no {name}_v<N>.{language}.jinja and none in {FALLBACK_LANGUAGE}; there is {there}"])
    text = path.read_text(encoding="utf-8")
    template = Template(hashlib.sha256(text.encode()).hexdigest(), name, f"v{max(versions)}", wanted, text)
    if faults := template_faults(template, variables):
        raise ConfigError(path.name, faults)
    return template


def template_faults(template: Template, variables: Collection[str] | None) -> list[str]:
    """What is wrong with a template's text; empty when it can be rendered from `variables`."""
    if "\x00" in template.text:
        return ["holds a NUL character; remove it"]
    try:
        tree = environment().parse(template.text)
    except jinja2.TemplateSyntaxError as error:
        return [f"line {error.lineno}: {error.message}"]
    faults = [f"line {node.lineno}: {type(node).__name__} is not allowed in a prompt; write it out" for node in tree.find_all(REFUSED_TAGS)]
    roles = SECTION.findall(template.text)
    if not roles:
        faults.append("has no section line; start with === system === or === user ===")
    faults += [f"section {role!r} is unknown; expected one of {', '.join(get_args(Role))}" for role in roles if role not in get_args(Role)]
    if variables is not None:
        unknown = sorted(meta.find_undeclared_variables(tree) - set(variables))
        faults += [f"uses {{{{ {name} }}}}, which is not given; there are {', '.join(sorted(variables))}" for name in unknown]
    return faults


def render(template: Template, **variables: object) -> tuple[Message, ...]:
    """The template's messages; every `{{ value }}` becomes a data segment by itself. A missing or None value is an error."""
    values: list[str] = []
    try:
        text = compiled(template.text).render(variables, _values=values)
    except jinja2.UndefinedError as error:
        raise ConfigError(f"prompt {template.name}_{template.version}.{template.locale}", [f"{error}; give it to render()"]) from error
    before, *sections = SECTION.split(text)
    if before.strip():
        raise ConfigError(
            f"prompt {template.name}_{template.version}.{template.locale}", [f"text before the first section: {before.strip()!r}"]
        )
    return tuple(
        Message(role, split_segments(body.strip("\n"), values))  # type: ignore[arg-type]  # roles were checked when the template was loaded
        for role, body in zip(sections[::2], sections[1::2], strict=True)
    )


def split_segments(body: str, values: list[str]) -> tuple[Segment, ...]:
    """Our text and the values it names, in order; empty pieces are left out."""
    pieces = MARK.split(body)
    segments = [Segment(values[int(piece)] if index % 2 else piece, bool(index % 2)) for index, piece in enumerate(pieces)]
    return tuple(segment for segment in segments if segment.text)


@jinja2.pass_context
def keep_value(context: jinja2.runtime.Context, value: Any) -> str:
    """Jinja's `finalize`: puts the value aside and writes its mark."""
    if value is None:
        raise jinja2.UndefinedError("a value is None")
    values: list[str] = context["_values"]
    values.append(str(value))  # an undefined value raises here
    return f"\x00{len(values) - 1}\x00"


@cache
def environment() -> jinja2.Environment:
    """The one jinja environment: strict about names, no files, no escaping (encoding is what keeps data harmless)."""
    return jinja2.Environment(undefined=jinja2.StrictUndefined, finalize=keep_value, trim_blocks=True, lstrip_blocks=True, autoescape=False)


@cache
def compiled(text: str) -> jinja2.Template:
    """A template's code, compiled once per text."""
    return environment().from_string(text)
