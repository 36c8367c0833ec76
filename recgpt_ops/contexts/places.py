"""What a stage reads of the night before it: the users to compute, where they are served, and what the surroundings say there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from recgpt_ops.delta.warehouse import Warehouse
from recgpt_ops.spark import read_delta

SIGNAL_ORDER = ("season", "holiday", "weather", "trend")

Place = tuple[str, str]  # region, locale
Surroundings = dict[Place, tuple[list[str], str]]  # the signal lines in their order, and the situation_id


def computed_users(session: SparkSession, warehouse: Warehouse, ds: str, publish_id: str) -> DataFrame:
    """The night_users rows of one generation whose users that generation computes itself."""
    rows = read_delta(session, warehouse.path("night_users"))
    return rows.filter(
        (F.col("ds") == ds) & (F.col("publish_id") == publish_id) & (F.col("made_by") == publish_id) & (F.col("status") == "computed")
    )


def night_places(session: SparkSession, warehouse: Warehouse, ds: str, publish_id: str) -> list[Place]:
    """Every (region, locale) of the users to compute, sorted."""
    rows = computed_users(session, warehouse, ds, publish_id).select("region", "locale").distinct().collect()
    return sorted((row["region"], row["locale"]) for row in rows)


def weather_class(signal_rows: Sequence[Mapping[str, object]], place: Place) -> str | None:
    """The weather that was told for a place; None when nothing was."""
    told = (row for row in signal_rows if (row["region"], row["locale"]) == place and row["kind"] == "weather")
    return next((str(row["name"]) for row in told), None)


def signal_lines(signal_rows: Sequence[Mapping[str, object]], place: Place) -> list[str]:
    """The lines of a place in the order season, holidays, weather, trends."""
    rows = [row for row in signal_rows if (row["region"], row["locale"]) == place]
    rows.sort(key=lambda row: (SIGNAL_ORDER.index(str(row["kind"])), row["rank"]))
    return [str(row["text"]) for row in rows]
