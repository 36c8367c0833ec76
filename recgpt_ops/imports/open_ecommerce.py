"""Open e-commerce 1.0: Amazon.com purchases of US customers with titles, product types and a survey.

Only the day of a purchase is known; it is a day of the business time zone. There is no order number, so rows are told apart by
their content and their place among equal rows. A code with several titles gets a validity period for each, from the day on which
it was first sold under that title.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from recgpt_ops.imports.landing import SourceFile
from recgpt_ops.imports.mapping import FieldRule
from recgpt_ops.imports.regions import US_STATES
from recgpt_ops.imports.sources import META, Feed, FileSet, Frames, Source, feed_mapping, field_rules, folder_files
from recgpt_ops.imports.wording import plain_text, words

NAME, ZONE, LOCALE = "open-ecommerce", "America/New_York", "en-US"
FILES = {"purchases": ("purchases_29_states",), "survey": ("survey_demographics",)}
FILE_SETS = (
    FileSet(
        "purchases",
        {
            "Order Date": "order_date",
            "Purchase Price Per Unit": "unit_price",
            "Quantity": "quantity",
            "Shipping Address State": "state",
            "Title": "title",
            "ASIN/ISBN (Product Code)": "code",
            "Category": "category",
            "Survey ResponseID": "user_id",
        },
        has_natural_key=False,
    ),
    FileSet(
        "survey",
        {
            "Survey ResponseID": "user_id",
            "Q-demos-age": "age",
            "Q-demos-gender": "gender",
            "Q-demos-education": "education",
            "Q-demos-income": "income",
            "Q-demos-state": "state",
            "Q-amazon-use-howmany": "account_users",
            "Q-amazon-use-hh-size": "household_size",
        },
    ),
)
UNSAID = "Prefer not to say"


def find(path: Path | None) -> dict[str, list[SourceFile]]:
    """The files below `path`."""
    return folder_files(path, source=NAME, names=FILES)


def shape_events(frames: Frames) -> DataFrame:
    """One purchase a row; what was paid is the price of one piece times the pieces."""
    lines = frames["purchases"]
    paid = F.round(F.col("unit_price").try_cast("double") * F.col("quantity").try_cast("double"), 2).cast("string")
    return lines.select(
        *META,
        "identity",
        F.lit(None).cast("string").alias("dropped"),
        "user_id",
        F.lit("purchase").alias("action"),
        F.col("code").alias("item_id"),
        "quantity",
        F.coalesce(paid, F.col("unit_price")).alias("amount"),  # a price that is no number is told by the reading
        F.col("order_date").alias("event_at"),
    )


def shape_items(frames: Frames) -> DataFrame:
    """Codes with the titles and types they were sold under."""
    return frames["purchases"].select(
        *META,
        F.lit(None).cast("string").alias("dropped"),
        F.col("code").alias("item_id"),
        "title",
        F.col("category").alias("item_type"),
        F.col("unit_price").alias("price"),
        F.col("order_date").alias("valid_from_ds"),
    )


def shape_profiles(frames: Frames) -> DataFrame:
    """What people told in the survey, at the time they joined the study; unsaid answers are left out."""
    told = frames["survey"]
    answers = [
        F.when(F.col(c) != UNSAID, F.col(c)).alias(c) for c in ("age", "gender", "education", "income", "account_users", "household_size")
    ]
    return told.select("file", "line", "raw", "fault", "detail", F.lit(None).cast("string").alias("dropped"), "user_id", "state", *answers)


def state_region(text: str) -> str:
    """ISO region of a US state by name. Who lives elsewhere had parcels sent to the US all the same, and counts as `US`.

    >>> state_region("New York"), state_region("I did not reside in the United States")
    ('US-NY', 'US')
    """
    return f"US-{US_STATES[text]}" if text in US_STATES else "US"


def lowered(text: str) -> str:
    """A value without capitals; `(just me!)` and lists of degrees are left out.

    >>> lowered("1 (just me!)"), lowered("Bachelor's degree")
    ('1', "bachelor's degree")
    """
    return text.split(" (")[0].lower()


EVENTS = feed_mapping(
    NAME,
    "behavior_events",
    field_rules("user_id", "action", "item_id", "quantity", "amount", FieldRule("currency", None, default="USD"), "event_at"),
    time_zone=ZONE,
    source_zone=ZONE,
)
ITEMS = feed_mapping(
    NAME,
    "items",
    field_rules(
        "item_id",
        FieldRule("title", "title", tidy=plain_text),
        FieldRule("item_type", "item_type", tidy=words),
        "price",
        FieldRule("currency", None, default="USD"),
        "valid_from_ds",
        FieldRule("locale", None, default=LOCALE),
    ),
    time_zone=ZONE,
    source_zone=ZONE,
)
PROFILES = feed_mapping(
    NAME,
    "user_profiles",
    field_rules(
        "user_id",
        FieldRule("locale", None, default=LOCALE),
        FieldRule("region", "state", tidy=state_region, default="US"),
        FieldRule("attributes.age", "age"),
        FieldRule("attributes.gender", "gender", tidy=lowered),
        FieldRule("attributes.education", "education", tidy=lowered),
        FieldRule("attributes.household income", "income"),
        FieldRule("attributes.household size", "household_size", tidy=lowered),
        FieldRule("attributes.people sharing the account", "account_users", tidy=lowered),
    ),
    time_zone=ZONE,
    source_zone=ZONE,
)
SOURCE = Source(
    NAME,
    LOCALE,
    ZONE,
    FILE_SETS,
    find,
    (
        Feed(ITEMS, ("purchases",), shape_items),
        Feed(PROFILES, ("survey",), shape_profiles),
        Feed(EVENTS, ("purchases",), shape_events),
    ),
)
