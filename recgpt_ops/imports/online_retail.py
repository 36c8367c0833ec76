"""Online Retail II: two years of order lines of a UK gift shop, local UK time.

Guests, lines that are no goods (postage, fees, vouchers, corrections) and lines without a price are dropped by name, and so are
the nine days that stand in both files. A canceled line becomes a return; netting it against the purchase is the histories' work.
A code with several names gets a validity period for each, from the day on which it was first sold under that name.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from recgpt_ops.imports.landing import SourceFile
from recgpt_ops.imports.mapping import FieldRule
from recgpt_ops.imports.regions import COUNTRIES, NO_COUNTRY
from recgpt_ops.imports.sources import META, Feed, FileSet, Frames, Source, feed_mapping, field_rules, folder_files
from recgpt_ops.imports.wording import sentence_case

NAME, ZONE, LOCALE = "online-retail", "Europe/London", "en-GB"
FIRST, SECOND = "online_retail_2009_2010", "online_retail_2010_2011"
OVERLAP_FROM = "2010-12-01"  # the second file begins on this day, the first ends eight days later
FILE_SETS = (
    FileSet(
        "lines",
        {
            "InvoiceNo": "invoice",
            "StockCode": "code",
            "Description": "description",
            "Quantity": "quantity",
            "InvoiceDate": "at",
            "UnitPrice": "unit_price",
            "CustomerID": "customer",
            "Country": "country",
        },
        has_natural_key=False,
    ),
)


def find(path: Path | None) -> dict[str, list[SourceFile]]:
    """The two files below `path`; one of them alone is fine too."""
    return folder_files(path, source=NAME, names={"lines": (FIRST, SECOND)})


def is_overlap(frames: Frames) -> Column:
    """Whether a line of the first file stands in the second as well; without the second file nothing does."""
    has_second = frames["lines"].filter(F.col("file").startswith(SECOND)).limit(1).count() > 0
    return F.lit(has_second) & F.col("file").startswith(FIRST) & (F.col("at") >= OVERLAP_FROM)


def is_no_goods() -> Column:
    """Whether the code is none of a product.

    Products have five digits and at times letters behind them; three codes of that form are a voucher, a delivery and a picture file.
    """
    return ~F.col("code").rlike("^[0-9]{5}") | F.col("code").isin("22016", "23444", "23702")


def is_unpriced() -> Column:
    """Whether nothing was charged: stock corrections, damage notes and gifts."""
    return F.col("unit_price").try_cast("double") == 0


def shape_events(frames: Frames) -> DataFrame:
    """Purchases and returns of known customers. The reasons are tried in this order; the first that holds is counted."""
    pieces, is_canceled = F.col("quantity").try_cast("double"), F.col("invoice").startswith("C")
    dropped = (
        F.when(is_overlap(frames), "overlap")
        .when(F.col("customer").isNull(), "anonymous")
        .when(is_no_goods(), "not_goods")
        .when(is_unpriced(), "no_price")
        .when(is_canceled != (pieces < 0), "stock_correction")
    )
    paid = F.round(F.col("unit_price").try_cast("double") * F.abs(pieces), 2).cast("string")
    return frames["lines"].select(
        *META,
        "identity",
        dropped.alias("dropped"),
        F.col("customer").alias("user_id"),
        F.when(is_canceled, "return").otherwise("purchase").alias("action"),
        F.col("code").alias("item_id"),
        F.when(is_canceled, F.regexp_replace("quantity", "^-", "")).otherwise(F.col("quantity")).alias("quantity"),
        F.coalesce(paid, F.col("unit_price")).alias("amount"),
        F.col("at").alias("event_at"),
    )


def shape_items(frames: Frames) -> DataFrame:
    """Codes of goods with the names they were sold under; notes such as "damaged" stand in lines without a price."""
    dropped = F.when(is_overlap(frames), "overlap").when(is_no_goods(), "not_goods").when(is_unpriced(), "no_price")
    return frames["lines"].select(
        *META,
        dropped.when(F.col("description").isNull(), "no_text").alias("dropped"),
        F.col("code").alias("item_id"),
        F.col("description").alias("title"),
        F.col("unit_price").alias("price"),
        F.col("at").alias("valid_from_ds"),
    )


def shape_profiles(frames: Frames) -> DataFrame:
    """Customers with their country; who moved has a validity period for each country."""
    dropped = (
        F.when(is_overlap(frames), "overlap")
        .when(F.col("customer").isNull(), "anonymous")
        .when(F.col("country").isin(*NO_COUNTRY), "no_single_country")
    )
    return frames["lines"].select(
        *META,
        dropped.alias("dropped"),
        F.col("customer").alias("user_id"),
        "country",
        F.col("country").alias("region"),
        F.col("at").alias("valid_from_ds"),
    )


def country_name(text: str) -> str:
    """A country as it is written elsewhere.

    >>> country_name("EIRE"), country_name("Germany")
    ('Ireland', 'Germany')
    """
    return {"EIRE": "Ireland", "RSA": "South Africa", "USA": "United States", "Korea": "South Korea"}.get(text, text)


EVENTS = feed_mapping(
    NAME,
    "behavior_events",
    field_rules("user_id", "action", "item_id", "quantity", "amount", FieldRule("currency", None, default="GBP"), "event_at"),
    time_zone=ZONE,
    source_zone=ZONE,
)
ITEMS = feed_mapping(
    NAME,
    "items",
    field_rules(
        "item_id",
        FieldRule("title", "title", tidy=sentence_case),
        "price",
        FieldRule("currency", None, default="GBP"),
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
        "valid_from_ds",
        FieldRule("locale", None, default=LOCALE),
        FieldRule("region", "region", map=COUNTRIES),
        FieldRule("attributes.country", "country", tidy=country_name),
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
    (Feed(ITEMS, ("lines",), shape_items), Feed(PROFILES, ("lines",), shape_profiles), Feed(EVENTS, ("lines",), shape_events)),
)
