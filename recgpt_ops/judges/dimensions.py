"""What is judged: the dimensions of tags and of explanations, the levels, the grades.

    levels   negative < neutral < positive      of one dimension
    grades   B < A < S                          of the whole: bad, average, superior

The paper names the dimensions (four for tags, seven for explanations) and leaves the judges' words open: the sentences are ours.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from recgpt_ops.prompts import language_of

Kind = Literal["tag", "explanation"]
KINDS: tuple[Kind, ...] = ("tag", "explanation")
LEVELS = ("negative", "neutral", "positive")
GRADES = ("B", "A", "S")
OVERALL = "overall"  # the one entry of a one_shot verdict's levels


class Dimension(NamedTuple):
    """One point of view. `english` and `chinese` are its rubric, a sentence each, short because every prompt carries one."""

    name: str
    english: str
    chinese: str
    source: str

    def rubric(self, locale: str) -> str:
        """The rubric in a locale's language; English where it has none."""
        return self.chinese if language_of(locale) == "zh" else self.english


V1_TAGS = "RecGPT V1, Table 3 (criteria of item tags); RecGPT-V2, 4.1"
V1_TEXTS = "RecGPT V1, 2.4 (criteria of explanations); RecGPT-V2, 4.1"
V2_TEXTS = "RecGPT-V2, 4.1 (new in V2)"

TAG_DIMENSIONS = (
    Dimension("relevance", "The product is what this shopper's history speaks for.", "商品符合顾客的历史兴趣。", V1_TAGS),
    Dimension("consistency", "The product agrees with the shopper's age, home and habits.", "商品与顾客的特征不矛盾。", V1_TAGS),
    Dimension("specificity", "The name is concrete, not a whole department of a shop.", "名称具体，不笼统。", V1_TAGS),
    Dimension("validity", "Such a product really exists and can be bought.", "商品真实存在。", V1_TAGS),
)
EXPLANATION_DIMENSIONS = (
    Dimension("relevance", "The text fits the item and the interest.", "文字贴合商品和兴趣。", V1_TEXTS),
    Dimension("factuality", "The text claims nothing that the item is not.", "文字不虚构商品特点。", V1_TEXTS),
    Dimension("clarity", "The text is fluent, correct and easy to read.", "文字通顺易读。", V1_TEXTS),
    Dimension("safety", "The text holds nothing private, offensive or pushy.", "文字无隐私或冒犯。", V1_TEXTS),
    Dimension("timeliness", "The text suits the season, holiday or trend of the day.", "文字符合时节。", V2_TEXTS),
    Dimension("informativeness", "The text says something concrete, no empty praise.", "文字言之有物。", V2_TEXTS),
    Dimension("attractiveness", "The text is appealing and makes one want the item.", "文字有吸引力。", V2_TEXTS),
)
DIMENSIONS: dict[Kind, tuple[Dimension, ...]] = {"tag": TAG_DIMENSIONS, "explanation": EXPLANATION_DIMENSIONS}
