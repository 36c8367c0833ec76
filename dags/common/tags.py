"""The closed set of tags that a DAG may carry; a test refuses any other."""

from __future__ import annotations

from enum import StrEnum


class Tag(StrEnum):
    """How often, with which engine, and for whom."""

    DAILY = "daily"
    SPARK = "spark"  # runs Spark jobs
    RAY = "ray"  # runs Ray jobs, makes model calls
    CONTEXTS = "contexts"
    INTENTS = "intents"
    EXPLANATIONS = "explanations"
    JUDGING = "judging"
    UPKEEP = "upkeep"  # belongs to no night
    PUBLISHES = "publishes"  # moves the pointer: readers see another generation afterwards


def tags(*chosen: Tag) -> list[str]:
    """The chosen tags as Airflow takes them, sorted."""
    return sorted(str(tag) for tag in chosen)
