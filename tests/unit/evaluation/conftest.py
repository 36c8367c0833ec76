"""A shop of five items and three users, with a past up to DS and a future after it, and nights of v1 and v2 in its tables.

         bought up to DS                        bought after it        v1's tags     v2's tags
u1       cheese on three days, tea once         beef, then cheese      tea           beef, tea
u2       tea twice (and beef, told later)       tea                    beef          socks
u3       socks                                  nothing in 28 days     tea           tea
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import duckdb
import numpy as np
import pytest

from recgpt_ops.delta.pointer import move_pointer
from recgpt_ops.delta.sql import connect
from recgpt_ops.delta.warehouse import Warehouse, fix_identity, open_warehouse
from recgpt_ops.ids import tag_id, text_hash
from tests.unit.cli.conftest import write

DS = "2021-10-31"
ITEMS = {
    "i1": ("cheese", "cheese brie"),
    "i2": ("cheese", "cheese gouda"),
    "i3": ("beef", "beef steak"),
    "i4": ("tea", "tea green"),
    "i5": ("socks", "socks wool"),
}
PAST = (
    ("u1", "i1", "2021-08-10"), ("u1", "i2", "2021-09-01"), ("u1", "i1", "2021-10-31"), ("u1", "i4", "2021-09-02"),
    ("u2", "i4", "2021-09-03"), ("u2", "i4", "2021-10-04"), ("u3", "i5", "2021-10-05"),
)  # fmt: skip
FUTURE = (
    ("u1", "i3", "2021-11-02"), ("u1", "i1", "2021-11-05"), ("u2", "i4", "2021-11-28"), ("u3", "i3", "2021-11-29"),
)  # fmt: skip
TAGS = {"v1": {"u1": ["tea"], "u2": ["beef"], "u3": ["tea"]}, "v2": {"u1": ["beef", "tea"], "u2": ["socks"], "u3": ["tea"]}}


class AxisEmbedder:
    """A direction for each first word: texts that begin alike are the same, all others have nothing in common."""

    WORDS = ("cheese", "beef", "tea", "socks")

    def encode(self, texts: Sequence[str], *, progress: Callable[[int, int], None] | None = None) -> np.ndarray:
        return self.embed(texts)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([[float(text.split()[0].rstrip(":") == word) for word in self.WORDS] for text in texts], np.float32)


def event(number: int, user_id: str, item_id: str, day: str, **more: Any) -> dict[str, Any]:
    """A purchase at noon."""
    return {
        "event_id": f"e{number:03}", "source": "shop", "user_id": user_id, "action": "purchase", "item_id": item_id,
        "event_at": datetime.fromisoformat(f"{day}T12:00:00+00:00"), "event_at_precision": "second", "event_ds": day, "arrived_ds": day,
        "arrived_month": day[:7], **more,
    }  # fmt: skip


def make_shop(root: str, future: Sequence[tuple[str, str, str]] = FUTURE, *, more: Sequence[dict[str, Any]] = ()) -> Warehouse:
    """The feeds alone."""
    warehouse = open_warehouse(root, create=True)
    fix_identity(warehouse, zone="America/New_York", locale="en-US")
    late = event(900, "u2", "i3", "2021-10-30", arrived_ds="2021-11-02", arrived_month="2021-11")
    mailing = event(901, "u3", "i3", "2021-11-04", action="campaign")
    happened = [event(number, *one) for number, one in enumerate([*PAST, *future])]
    write(warehouse, "behavior_events", [*happened, late, mailing, *more])
    write(
        warehouse,
        "items",
        [
            {
                "item_id": item_id, "valid_from_ds": "0001-01-01", "source": "shop", "locale": "en-US", "title": title, "item_type": type_,
                "text_hash": text_hash(title),
            }
            for item_id, (type_, title) in ITEMS.items()
        ],
    )  # fmt: skip
    write(warehouse, "user_profiles", [{"user_id": user_id, "valid_from_ds": "0001-01-01"} for user_id in ("u1", "u2", "u3")])
    return warehouse


def add_night(warehouse: Warehouse, method: str, *, publish_id: str = "p1", attempt: int = 1) -> None:
    """A visible night: every user's tags by one route, then the same again by a second route."""
    base = {"ds": DS, "publish_id": publish_id, "scenario": "default", "method": method}
    tags = TAGS[method]
    audience = {"status": "computed", "reason": "forced", "made_by": publish_id, "computed_ds": DS, "attempt": attempt}
    write(warehouse, "night_users", [{**base, **audience, "user_id": user_id} for user_id in tags])
    groups = [{"name": "cheese", "event_count": 3, "item_types": [{"name": "cheese", "event_count": 3}], "line_ids": [1]}]
    write(warehouse, "user_contexts", [{**base, "user_id": user_id, "locale": "en-US", "groups": groups} for user_id in tags])
    write(
        warehouse,
        "intent_tags",
        [
            {**base, "user_id": user_id, "tag": tag, "tag_id": tag_id("en-US", tag), "rank": rank, "call_id": f"{method}-{user_id}"}
            for user_id, one in tags.items()
            for rank, tag in enumerate(one, start=1)
        ],
    )
    write(
        warehouse,
        "tag_proposals",
        [
            {
                **base, "user_id": user_id, "persona_index": route, "tag": tag, "tag_id": tag_id("en-US", tag), "proposal_index": place,
                "call_id": f"{method}-{user_id}",
            }
            for user_id, one in tags.items()
            for route in (1, 2)
            for place, tag in enumerate(one, start=1)
        ],
    )  # fmt: skip
    move_pointer(
        warehouse, ds=DS, scenario="default", method=method, fence=attempt, publish_id=publish_id, input_digest="i",
        certificate_sha256="c", why="night", published_by="run",
    )  # fmt: skip


def call(call_id: str, user_id: str | None, *, prompt: int, cached: int | None = 0, **more: Any) -> dict[str, Any]:
    """A call of v1's intents that took two seconds up to noon."""
    return {
        "call_id": call_id, "attempt": 1, "ds": DS, "scenario": "default", "method": "v1", "stage": "intents", "role": "expert",
        "user_id": user_id, "try_index": 0, "prompt_tokens": prompt, "cached_tokens": cached, "completion_tokens": 5, "seconds": 2.0,
        "called_at": datetime(2021, 11, 1, 12, tzinfo=UTC), **more,
    }  # fmt: skip


@pytest.fixture(scope="session")
def sold(tmp_path_factory) -> duckdb.DuckDBPyConnection:
    """The shop's tables for tests that only read; opening them takes longer than a query."""
    return connect(make_shop(str(tmp_path_factory.mktemp("sold") / "shop")))


@pytest.fixture
def shop(tmp_path) -> Warehouse:
    return make_shop(str(tmp_path / "shop"))


@pytest.fixture
def nights(shop: Warehouse) -> Warehouse:
    """The shop with a night of v1, in which each user cost 100 computed tokens, and one of v2, in which each cost 40."""
    for method, tokens in (("v1", 100), ("v2", 40)):
        add_night(shop, method)
        write(shop, "llm_calls", [call(f"{method}-{user_id}", user_id, prompt=tokens, method=method) for user_id in ("u1", "u2", "u3")])
    return shop
