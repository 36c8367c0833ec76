"""One page a user: who, what they did, and what each method makes of it, every tag beside the lines it rests on.

Rows of many users are read together and then taken apart, so that a thousand pages are ten reads of each table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from recgpt_ops.contexts.words import HEAD_SEPARATOR, MONTHS
from recgpt_ops.ids import user_order
from recgpt_ops.report.evidence import Evidence, evidence_of, telling_types, type_of
from recgpt_ops.report.reading import EXPLANATION_VERDICTS, EXPLANATIONS, ITEMS, OF_USERS, Night, Row, Rows, night_rows, rows

USERS_READ = 100  # at a time
TABLES = (
    "night_users",
    "user_contexts",
    "intent_plans",
    "intent_tags",
    "tag_verdicts",
    "candidate_items",
    "explanation_assignments",
    "quarantine",
)


class Item(NamedTuple):
    """An item of a line. `type_number` numbers the page's item types, so that a tag can name those that speak for it; None: unknown."""

    item_id: str
    row: Row | None
    type_number: int | None


class Line(NamedTuple):
    """One line of the context. `head` are its times and actions, `body` what was acted on; `month` the newest of its times."""

    line_id: int
    head: str
    body: str
    month: str
    items: tuple[Item, ...]


@dataclass(frozen=True)
class History:
    """The lines of one context. Methods that read the same lines share one history; `anchor` tells histories of one page apart."""

    anchor: str
    methods: tuple[str, ...]
    locale: str
    lines: tuple[Line, ...]
    cut_line_count: int
    context_tokens: int
    plain_tokens: int


@dataclass(frozen=True)
class Explained:
    """A candidate that got an explanation, or should have. `text` None: none came (status failed)."""

    assignment: Row
    item: Row | None
    explanation: Row | None
    verdicts: Rows


@dataclass(frozen=True)
class Tag:
    """One tag with all that stands behind it and follows from it. `types` are numbers of the item types that speak for it."""

    row: Row
    evidence: tuple[Evidence, ...]
    personas: tuple[str, ...]
    types: tuple[int, ...]
    verdicts: Rows
    explained: tuple[Explained, ...]
    candidates: tuple[tuple[Row, Row | None], ...]


@dataclass(frozen=True)
class Side:
    """What one method makes of the user. `history` None: the method wrote no context for the user."""

    method: str
    user: Row
    history: History | None
    plans: Rows
    tags: tuple[Tag, ...]


@dataclass(frozen=True)
class Person:
    """A user's page. `context` is the newest context row of any method, None when nobody wrote one."""

    user_id: str
    context: Row | None
    histories: tuple[History, ...]
    sides: tuple[Side, ...]
    absent: tuple[str, ...]  # methods of the night that this user is not in
    quarantined: Rows


class Neighbor(NamedTuple):
    """A user and the file of the user's page."""

    user_id: str
    page: str


def page_name(user_id: str) -> str:
    """The file of a user's page; ids may hold anything, so they name no files.

    >>> page_name("886")
    '000f21ac06aceb9cdd0575e8.html'
    """
    return f"{user_order(user_id)[:24]}.html"


def read_people(night: Night, user_ids: Sequence[str]) -> Iterator[Person]:
    """The pages of these users, in their order."""
    for start in range(0, len(user_ids), USERS_READ):
        yield from read_some(night, list(user_ids[start : start + USERS_READ]))


def read_some(night: Night, user_ids: list[str]) -> Iterator[Person]:
    """The pages of so many users as are read at a time."""
    tables = {table: by_user(night_rows(night, OF_USERS.format(table=table), users=user_ids)) for table in TABLES}
    texts = {(row["method"], row["explanation_id"]): row for row in night_rows(night, EXPLANATIONS, users=user_ids)}
    judged: dict[tuple[str, str], Rows] = {}
    for row in night_rows(night, EXPLANATION_VERDICTS, users=user_ids):
        judged.setdefault((row["method"], row["explanation_id"]), []).append(row)
    items = read_items(night, tables)
    for user_id in user_ids:
        mine = {table: found.get(user_id, []) for table, found in tables.items()}
        yield person(user_id, mine, methods=night.methods, items=items, texts=texts, judged=judged)


def by_user(found: Rows) -> dict[str, Rows]:
    """The rows of each user."""
    grouped: dict[str, Rows] = {}
    for row in found:
        grouped.setdefault(row["user_id"], []).append(row)
    return grouped


def read_items(night: Night, tables: Mapping[str, Mapping[str, Rows]]) -> dict[str, Row]:
    """Every item that a line, a candidate or an explanation names, as of the night."""
    wanted = {
        row["item_id"] for table in ("candidate_items", "explanation_assignments") for found in tables[table].values() for row in found
    }
    for found in tables["user_contexts"].values():
        wanted |= {item_id for row in found for line in row["lines"] for item_id in line["item_ids"]}
    return {row["item_id"]: row for row in rows(night.connection, ITEMS, ds=night.ds, items=sorted(wanted))}


def person(
    user_id: str,
    mine: Mapping[str, Rows],
    *,
    methods: Sequence[str],
    items: Mapping[str, Row],
    texts: Mapping[tuple[str, str], Row],
    judged: Mapping[tuple[str, str], Rows],
) -> Person:
    """One user's page from the user's rows."""
    numbers: dict[str, int] = {}  # item type -> its number on this page
    contexts = {row["method"]: row for row in mine["user_contexts"]}
    histories = histories_of(contexts, items=items, numbers=numbers)
    sides = []
    for user in mine["night_users"]:
        method = user["method"]
        history = next((history for history in histories if method in history.methods), None)
        own = {table: [row for row in mine[table] if row["method"] == method] for table in TABLES if table != "night_users"}
        tags = [
            tag_of(
                row,
                own,
                lines=contexts[method]["lines"] if method in contexts else [],
                items=items,
                texts=texts,
                judged=judged,
                numbers=numbers,
            )
            for row in sorted(own["intent_tags"], key=lambda row: row["rank"])
        ]
        plans = sorted(own["intent_plans"], key=lambda row: row["persona_index"])
        sides.append(Side(method, user, history, plans, tuple(tags)))
    there = {side.method for side in sides}
    context = next((contexts[side.method] for side in reversed(sides) if side.method in contexts), None)
    absent = tuple(method for method in methods if method not in there)
    return Person(user_id, context, histories, tuple(sides), absent, mine["quarantine"])


def panel_first(verdicts: Iterable[Row]) -> Rows:
    """Verdicts in the order they are shown."""
    return sorted(verdicts, key=lambda row: (row["judge_method"] != "panel", row["judge_method"]))


def histories_of(contexts: Mapping[str, Row], *, items: Mapping[str, Row], numbers: dict[str, int]) -> tuple[History, ...]:
    """The distinct histories of a user, each with the methods that read it."""
    readers: dict[str, list[str]] = {}
    for method, row in contexts.items():
        readers.setdefault(repr(row["lines"]), []).append(method)
    made = []
    for place, methods in enumerate(readers.values()):
        row = contexts[methods[0]]
        lines = tuple(line_of(line, items=items, numbers=numbers) for line in row["lines"])
        anchor = "line" if place == 0 else f"line-{place + 1}"
        made.append(
            History(anchor, tuple(methods), row["locale"], lines, row["cut_line_count"], row["context_tokens"], row["plain_tokens"])
        )
    return tuple(made)


def line_of(line: Row, *, items: Mapping[str, Row], numbers: dict[str, int]) -> Line:
    """One line with its items."""
    head, _, body = line["text"].partition(HEAD_SEPARATOR)
    newest = max((fact["bucket"] for fact in line["facts"]), default="")
    shown = []
    for item_id in line["item_ids"]:
        kind = type_of(items.get(item_id))
        shown.append(Item(item_id, items.get(item_id), None if kind is None else numbers.setdefault(kind, len(numbers) + 1)))
    return Line(line["line_id"], head, body, month_words(newest), tuple(shown))


def month_words(bucket: str) -> str:
    """The month of a time bucket as a heading.

    >>> month_words("2017-10-28"), month_words("2017-08"), month_words("2015")
    ('Oct 2017', 'Aug 2017', '2015')
    """
    year, _, rest = bucket.partition("-")
    return f"{MONTHS[int(rest[:2]) - 1]} {year}" if rest else year


def tag_of(
    tag: Row,
    own: Mapping[str, Rows],
    *,
    lines: Sequence[Row],
    items: Mapping[str, Row],
    texts: Mapping[tuple[str, str], Row],
    judged: Mapping[tuple[str, str], Rows],
    numbers: Mapping[str, int],
) -> Tag:
    """One tag of one method with its evidence, verdicts, candidates and explanations."""
    plans = own["intent_plans"]
    explained = []
    for row in sorted(own["explanation_assignments"], key=lambda row: row["rank"]):
        if row["tag_id"] == tag["tag_id"]:
            key = (row["method"], row["explanation_id"])
            is_there = row["status"] != "failed"  # another user may have the text that this one did not get
            text, verdicts = (texts.get(key), judged.get(key, ())) if is_there else (None, ())
            explained.append(Explained(row, items.get(row["item_id"]), text, panel_first(verdicts)))
    candidates = sorted((row for row in own["candidate_items"] if row["tag_id"] == tag["tag_id"]), key=lambda row: row["rank"])
    return Tag(
        tag,
        tuple(evidence_of(tag, plans=plans, lines=lines, items=items)),
        tuple(plan["name"] for plan in plans if plan["persona_index"] in set(tag["persona_indexes"])),
        tuple(sorted(numbers[kind] for kind in telling_types(tag, plans) if kind in numbers)),
        panel_first(row for row in own["tag_verdicts"] if row["tag_id"] == tag["tag_id"]),
        tuple(explained),
        tuple((row, items.get(row["item_id"])) for row in candidates),
    )
