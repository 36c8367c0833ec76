"""The audience of nights on a warehouse of their own: first night, more users, the next night, a rebuild."""

from __future__ import annotations

import pytest

from recgpt_ops.contexts.audience import NightKey
from recgpt_ops.contexts.night_audience import Wanted, night_audience
from recgpt_ops.contexts.signals import load_weather
from recgpt_ops.delta.generations import publish_arrow
from recgpt_ops.delta.pointer import claim_attempt, move_pointer
from recgpt_ops.delta.warehouse import fix_identity, open_warehouse
from recgpt_ops.errors import UsageError
from recgpt_ops.ids import user_order
from recgpt_ops.settings import Audience
from tests.spark.frames import event_rows, profile, table_of

pytestmark = pytest.mark.usefixtures("delta_spark")

NAMES = sorted("abcdef", key=user_order)
DS = "2017-10-30"


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory):
    """Six users; the first four bought something on the day, the fifth never did anything, the sixth long ago."""
    made = open_warehouse(str(tmp_path_factory.mktemp("night") / "warehouse"), create=True)
    fix_identity(made, zone="America/New_York", locale="en-US")
    rows = event_rows(*[(name, "purchase", "x", 1, DS) for name in NAMES[:4]], (NAMES[5], "purchase", "x", 1, "2016-01-01"))
    for table, told in (("behavior_events", rows), ("user_profiles", [profile(name) for name in NAMES])):
        full = [row | {"import_id": "i1", "source": "test", "text_hash": "t"} for row in told]
        filled = [{name: value for name, value in row.items() if table == "user_profiles" or name != "text_hash"} for row in full]
        publish_arrow(made, table, table_of(table, filled), publish_id="i1", scopes=["i1"], fence=None, input_digest="i1")
    return made


def audience(spark, warehouse, ds, publish_id, *, users=None, user_ids=(), why="night", max_users=2, method="v2"):
    rows = night_audience(
        spark, warehouse, NightKey(ds, "default", method, publish_id, 1), Wanted(users, user_ids, why),
        policy=Audience(max_users=max_users, max_age_days=14), weather=load_weather(None),
    )  # fmt: skip
    return rows.toArrow()


def show(warehouse, ds, publish_id, rows):
    """Publishes an audience and makes it the visible one."""
    publish_arrow(warehouse, "night_users", rows, publish_id=publish_id, scopes=[ds], fence=1, input_digest="d")
    fence = claim_attempt(warehouse, ds=ds, scenario="default", method="v2")
    move_pointer(
        warehouse, ds=ds, scenario="default", method="v2", fence=fence, publish_id=publish_id, input_digest="d",
        certificate_sha256="c", why="night", published_by="test",
    )  # fmt: skip


def told(rows):
    return {row["user_id"]: (row["status"], row["reason"], row["made_by"]) for row in rows.to_pylist()}


def test_nights_one_after_the_other(spark, warehouse):
    first = audience(spark, warehouse, DS, "p1")
    assert told(first) == dict.fromkeys(NAMES[:2], ("computed", "new_behavior", "p1"))
    show(warehouse, DS, "p1", first)

    more = audience(spark, warehouse, DS, "p2", users=6, why="more_users")
    assert told(more) == {
        **dict.fromkeys(NAMES[:2], ("computed", "new_behavior", "p1")),
        **dict.fromkeys([*NAMES[2:4], NAMES[5]], ("computed", "forced", "p2")),
        NAMES[4]: ("skipped", "forced", "p2"),
    }
    show(warehouse, DS, "p2", more)

    again = audience(spark, warehouse, DS, "p3", why="rebuild")
    assert {name: row[::2] for name, row in told(again).items()} == {
        name: ("skipped" if name == NAMES[4] else "computed", "p3") for name in NAMES
    }

    for why in ("night", "rebuild"):  # a method that comes later gets the audience that is there, unless users are named
        other = audience(spark, warehouse, DS, "p5", why=why, method="v1")
        assert {name: row[::2] for name, row in told(other).items()} == {
            name: ("skipped" if name == NAMES[4] else "computed", "p5") for name in NAMES
        }
    assert set(told(audience(spark, warehouse, DS, "p5", user_ids=[NAMES[3]], method="v1"))) == {NAMES[3]}

    tomorrow = audience(spark, warehouse, "2017-10-31", "p4", user_ids=[NAMES[5]])
    assert told(tomorrow)[NAMES[5]] == ("computed", "forced", "p4")
    assert {told(tomorrow)[name] for name in NAMES[:2]} == {("carried", "new_behavior", "p1")}

    # Two weeks later everybody's rows are too old; the two with the smallest hash are first.
    later = told(audience(spark, warehouse, "2017-11-13", "p5"))
    assert [later[name] for name in NAMES[:3]] == [
        ("computed", "max_age", "p5"),
        ("computed", "max_age", "p5"),
        ("carried", "forced", "p2"),
    ]


def test_a_user_without_a_profile_is_told(spark, warehouse):
    with pytest.raises(UsageError, match=r"--user: no profile for 'nobody'"):
        audience(spark, warehouse, DS, "p9", user_ids=["nobody", "a"])


def test_a_day_without_events_names_nobody(spark, warehouse):
    assert audience(spark, warehouse, "2017-10-29", "p9").num_rows == 0
