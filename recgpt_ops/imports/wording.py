"""Words as people read them, from the capitals and abbreviations of a till.

"FRZN VEGETABLE/VEG DSH" -> "Frozen vegetable/vegetable dish"     "PET_FOOD" -> "pet food"
"""

from __future__ import annotations

import html
import re

# Till abbreviations of The Complete Journey; only those whose meaning its own longer names confirm.
ABBREVIATIONS = {
    "bkd": "baked", "bn": "bean", "brkfst": "breakfast", "bscts": "biscuits", "btl": "bottle", "carb": "carbonated", "cckies": "cookies",
    "ckys": "cookies", "cleang": "cleaning", "cnd": "canned", "cndy": "candy", "cntrl": "control", "conc": "concentrate",
    "crkr": "crackers", "crystl": "crystal", "dnr": "dinner", "drnk": "drink", "drnks": "drinks", "dsh": "dish", "fd": "food",
    "flvrd": "flavored", "fre": "fresh", "frz": "frozen", "frzn": "frozen", "grnd": "ground", "hbc": "health and beauty care",
    "jce": "juice", "liqs": "liquids", "misc": "miscellaneous", "mx": "mix", "mxs": "mixes", "natl": "natural",
    "ndairy": "non-dairy", "pk": "pack", "pkg": "packaged", "pkgd": "packaged", "pkld": "pickled", "pnt": "peanut", "prpck": "prepacked",
    "pwdr": "powder", "refrgratd": "refrigerated", "rtd": "ready to drink", "rts": "ready to serve", "rw": "raw", "sal": "salad",
    "sald": "salad", "sft": "soft", "sgl": "single", "snd": "sandwich", "sndwch": "sandwich", "snks": "snacks", "sngl": "single",
    "sprd": "spread", "srv": "serve", "stk": "stick", "supp": "supplement", "sv": "serve", "swt": "sweet", "tiss": "tissue",
    "trsh": "trash", "bg": "bag", "veg": "vegetable", "whlsm": "wholesome", "wtr": "water", "btr": "butter",
    "dps": "dips", "sply": "supplies",
}  # fmt: skip
# Written with a capital in running text, or as they stand.
PROPER_WORDS = """
    American Asian Australian Austrian British California Canadian Caribbean Chilean Chinese Christmas Cuban Easter English European
    French German Greek Halloween Hawaiian Hispanic Indian Irish Italian Jamaican Japanese Jewish Kosher Korean Mexican Moroccan
    Oriental Polish Spanish Swiss Thai Thanksgiving Turkish Valentine
    Adidas Almay Covergirl Leggs Loreal Maybelline Revlon BBQ CD DVD LED TV USB NZ PC UHT
"""
PROPER = {word.lower(): word for word in PROPER_WORDS.split()}
WORD = re.compile(r"[a-z]+(?:['’][a-z]+)?")


def readable(text: str) -> str:
    """A till's text in sentence case, abbreviations written out; an opened parenthesis that a length limit cut off is left out.

    >>> readable("BREAD:ITALIAN/FRENCH"), readable("CANDY BARS (SINGLES)(INCLUDING")
    ('Bread: Italian/French', 'Candy bars (singles)')
    """
    text = re.sub(r"\s*\([^()]*$", "", text.lower())
    text = re.sub(r"\s*:\s*", ": ", text)
    text = re.sub(r"\s*&\s*", " & ", text)
    text = " ".join(text.split()).strip(" :&-")
    text = WORD.sub(lambda match: PROPER.get(word := ABBREVIATIONS.get(match[0], match[0]), word), text)
    return capitalized(text)


def sentence_case(text: str) -> str:
    """A name in capitals in sentence case; a name in mixed case as it is.

    >>> sentence_case("WHITE HANGING HEART T-LIGHT HOLDER"), sentence_case("BAG 250g SWIRLY MARBLES")
    ('White hanging heart t-light holder', 'BAG 250g SWIRLY MARBLES')
    """
    if text != text.upper():
        return text
    return capitalized(WORD.sub(lambda match: PROPER.get(match[0], match[0]), text.lower()))


def capitalized(text: str) -> str:
    """The first letter as a capital, the others as they are."""
    return text[:1].upper() + text[1:]


def product_title(text: str) -> str:
    """Type, package size and brand class, joined by U+241F, as one title; "" without a type.

    >>> product_title("BREAD:ITALIAN/FRENCH\\u241f20  OZ\\u241fNational")
    'Bread: Italian/French, 20 oz, national brand'
    """
    kind, size, brand = text.split("\u241f")
    parts = [readable(kind), " ".join(size.lower().split()), brand_class(brand)]
    return ", ".join(part for part in parts if part) if parts[0] else ""


def brand_class(text: str) -> str:
    """National or Private as words; names of brands are withheld.

    >>> brand_class("Private")
    'private brand'
    """
    return f"{text.lower()} brand" if text else ""


def words(text: str) -> str:
    """A constant's name as words; books carry a trade prefix.

    >>> words("PET_FOOD"), words("ABIS_BOOK")
    ('pet food', 'book')
    """
    return text.removeprefix("ABIS_").replace("_", " ").lower()


def plain_text(text: str) -> str:
    """A title from a web page, its entities decoded.

    >>> plain_text("Window &amp; Door Sealant")
    'Window & Door Sealant'
    """
    return html.unescape(text)
