"""Rows of `evaluations` as people read them: a table per question, arms as columns, each figure with its interval."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from recgpt_ops.commands.output import render_table

Row = Mapping[str, Any]
# What is asked -> which metrics answer it (whole names, as patterns), in this order. Levels of single dimensions stand in the rows only.
SECTIONS: tuple[tuple[str, str], ...] = (
    ("What a user costs until the list of tags", r"(prompt_tokens_\w+|completion_tokens|calls|call_seconds|busy_seconds)( / .+)?"),
    ("Hit rate: the next item's category (hr_next1), any category of the weeks after (hr_any)", r"(hr_\w+|tags|distinct_categories)@\d+"),
    ("Tag-to-Cate: how often the map from tags to categories is right, which bounds every hit rate", r"tag_to_cate_\w+"),
    ("Differences of hit rates, user by user", r"hr_\w+@\d+ - .+"),
    ("What an arm finds, and finds alone", r"(exclusive_)?recall@\d+|exclusive_recall_routes|duplication_\w+"),
    ("Explanations and judges", r"explanation_diversity\w*|(tags|explanations)\.\w+\.(S|A|B|failed)"),
    ("What explanations and verdicts cost, per user", r"(explanations|judging)\.(?!panel|one_shot)\w+"),
)  # fmt: skip


class Section(NamedTuple):
    """One table for people: heading, arms, rows of cells, and sentences below."""

    heading: str
    columns: tuple[str, ...]
    rows: list[dict[str, str]]
    notes: list[str]


def sections(rows: Sequence[Row]) -> list[Section]:
    """The tables of one evaluation; a question that nothing answers is left out."""
    found = []
    for heading, pattern in SECTIONS:
        answers = [row for row in rows if re.fullmatch(pattern, row["metric"])]
        if answers:
            found.append(pivot(heading, answers, credits(rows) if heading.startswith("Hit rate") else []))
    return found


def pivot(heading: str, rows: Sequence[Row], notes: list[str]) -> Section:
    """Metrics as rows and arms as columns, both in the order in which they come."""
    arms = tuple(dict.fromkeys(str(row["arm"]) for row in rows))
    lines: dict[str, dict[str, str]] = {}
    for row in rows:
        line = lines.setdefault(row["metric"], {"metric": row["metric"], **dict.fromkeys(arms, "")})
        line[row["arm"]] = cell(row)
    return Section(heading, ("metric", *arms), list(lines.values()), notes)


def cell(row: Row) -> str:
    """`0.120 [0.060, 0.190]`; without an interval the figure alone, `-` where it cannot be told."""
    if row["value"] is None:
        return "-"
    told = number(row["value"])
    return told if row["lo"] is None else f"{told} [{number(row['lo'])}, {number(row['hi'])}]"


def number(value: float) -> str:
    """Three digits after the point for shares, none for thousands.

    >>> number(0.12345), number(12.345), number(12345.6)
    ('0.123', '12.3', '12,346')
    """
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}" if abs(value) < 1000 else f"{value:,.0f}"


def credits(rows: Sequence[Row]) -> list[str]:
    """Per method and hit rate: only what lies above the best list without a model, with its interval, is the method's own."""
    values = {(row["metric"], row["arm"]): row for row in rows}
    told = []
    for metric in sorted({row["metric"] for row in rows if re.fullmatch(r"hr_\w+@\d+", row["metric"])}):
        for method in dict.fromkeys(row["arm"] for row in rows if row["metric"] == "prompt_tokens_computed"):
            others = [
                (values[metric, name.removeprefix(f"{metric} - ")], row)
                for (name, arm), row in values.items()
                if arm == method and name.startswith(f"{metric} - ") and is_free(name.removeprefix(f"{metric} - "), rows)
            ]
            if others:
                best, gap = max(others, key=lambda pair: (pair[0]["value"], pair[0]["arm"]))
                told.append(f"{metric}, {method}: {cell(gap)} against {best['arm']}, the best list without a model: {credit(gap)}")
    return told


def is_free(arm: str, rows: Sequence[Row]) -> bool:
    """Whether an arm cost no call."""
    return not any(row["arm"] == arm and row["metric"] == "prompt_tokens_computed" for row in rows)


def credit(gap: Row) -> str:
    """What a difference to the best list without a model allows to say."""
    if gap["lo"] is None or gap["lo"] <= 0 <= gap["hi"]:
        return "no difference that these users show"
    return "credited to the method" if gap["lo"] > 0 else "worse, no credit"


def heading_lines(rows: Sequence[Row]) -> list[str]:
    """What was evaluated, on whom and how."""
    first = rows[0]
    users = next((row for row in rows if row["metric"] == "labelled_users"), None)
    told = [] if users is None else [f"{users['value']:.0f} of {users['n']} users have labels; costs are per user of all {users['n']}."]
    return [
        f"{first['data_set']}, ds {first['ds']}: {first['split']}.",
        *told,
        f"In brackets 95 % intervals (bootstrap over users, seed {first['seed']}). Evaluation {first['evaluation_id'][:12]}.",
    ]


def as_text(rows: Sequence[Row]) -> str:
    """The evaluation for a terminal."""
    return assemble(rows, title=lambda heading: heading, table=lambda one: render_table(one.rows, one.columns), note=lambda told: told)


def as_markdown(rows: Sequence[Row]) -> str:
    """The evaluation as a part of a page."""
    return assemble(rows, title=lambda heading: f"### {heading}", table=markdown_table, note=lambda told: f"- {told}")


def assemble(rows: Sequence[Row], *, title: Callable[[str], str], table: Callable[[Section], str], note: Callable[[str], str]) -> str:
    """Heading lines, then every section."""
    parts = ["\n".join(heading_lines(rows)) + "\n"]
    for one in sections(rows):
        notes = "".join(f"{note(told)}\n" for told in one.notes)
        parts.append("\n".join(filter(None, [f"{title(one.heading)}\n", table(one), notes])))
    return "\n".join(parts)


def markdown_table(section: Section) -> str:
    """One section as a table of Markdown."""
    lines = [section.columns, ["---"] + ["---:"] * (len(section.columns) - 1)]
    lines += [[row[name] for name in section.columns] for row in section.rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
