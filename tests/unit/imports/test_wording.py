"""Words as people read them."""

from __future__ import annotations

import doctest

import pytest

from recgpt_ops.imports import complete_journey, online_retail, open_ecommerce, wording
from recgpt_ops.imports.wording import product_title, readable, sentence_case


@pytest.mark.parametrize("module", [wording, complete_journey, open_ecommerce, online_retail])
def test_the_examples_in_the_docstrings_hold(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]  # a module, parametrized


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FROZEN PIZZA", "Frozen pizza"),
        ("FRZN VEGETABLE/VEG DSH", "Frozen vegetable/vegetable dish"),
        ("SFT DRNK SNGL SRV BTL CARB (EX", "Soft drink single serve bottle carbonated"),
        ("CHEESE: NATURAL BULK", "Cheese: natural bulk"),
        ("SANDWICHES&HANDHELDS", "Sandwiches & handhelds"),
        ("CHRISTMAS  SEASONAL", "Christmas seasonal"),
        ("", ""),
    ],
)
def test_a_tills_text_becomes_readable(text: str, expected: str) -> None:
    assert readable(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BREAD:ITALIAN/FRENCH\u241f20 OZ\u241fNational", "Bread: Italian/French, 20 oz, national brand"),
        ("BREAD:ITALIAN/FRENCH\u241f\u241fPrivate", "Bread: Italian/French, private brand"),
        ("\u241f20 OZ\u241fNational", ""),  # without a type there is no title
    ],
)
def test_a_title_is_type_size_and_brand_class(text: str, expected: str) -> None:
    assert product_title(text) == expected


def test_a_name_in_capitals_is_set_in_sentence_case() -> None:
    assert sentence_case("SET/3 CHRISTMAS DECOUPAGE CANDLES") == "Set/3 Christmas decoupage candles"
