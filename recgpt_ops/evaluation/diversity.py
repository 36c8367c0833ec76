"""How much explanations differ: 1 - mean pairwise ROUGE-L (RecGPT-V2, Table 3). The variant is ours: F-measure, words, no stemming.

With the longest common subsequence LCS of two texts, P = LCS / |b|, R = LCS / |a|, F = 2PR / (P + R) = 2 LCS / (|a| + |b|).
Languages written without spaces are compared by character, which is why no ready-made package served: it keeps ASCII words only.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations

MAX_PAIRS = 20_000  # of all explanations of a method; more pairs are sampled
CJK = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
TOKEN = re.compile(rf"{CJK}|(?:(?!{CJK})[^\W_])+")  # one character, or a word


def tokens(text: str) -> list[str]:
    """Words without punctuation and capitals; one token a character of Chinese, Japanese and Korean.

    >>> tokens("Warm tea, 秋天!"), tokens("")
    (['warm', 'tea', '秋', '天'], [])
    """
    return TOKEN.findall(text.casefold())


def common_length(left: Sequence[str], right: Sequence[str]) -> int:
    """Length of the longest common subsequence."""
    row = [0] * (len(right) + 1)
    for token in left:
        diagonal = 0
        for place, other in enumerate(right, start=1):
            above = row[place]
            row[place] = diagonal + 1 if token == other else max(above, row[place - 1])
            diagonal = above
    return row[-1]


def rouge_l(left: Sequence[str], right: Sequence[str]) -> float:
    """ROUGE-L F of two token lists, 0 to 1; two empty ones are equal."""
    total = len(left) + len(right)
    return 2 * common_length(left, right) / total if total else 1.0


def mean_diversity(texts: Sequence[str], *, seed: int = 0, max_pairs: int = MAX_PAIRS) -> float | None:
    """1 - mean ROUGE-L over all pairs of texts, or over `max_pairs` pairs drawn; None for fewer than two."""
    if len(texts) < 2:
        return None
    split = [tokens(text) for text in texts]
    places = range(len(split))
    count = len(split) * (len(split) - 1) // 2
    if count <= max_pairs:
        pairs: Iterable[Sequence[int]] = combinations(places, 2)
    else:
        generator = random.Random(seed)
        pairs, count = [generator.sample(places, 2) for _ in range(max_pairs)], max_pairs
    return 1 - sum(rouge_l(split[left], split[right]) for left, right in pairs) / count


def item_diversities(explanations: Iterable[tuple[str, str]]) -> list[float]:
    """The diversity of each item with at least two explanations, from (text_hash of the item, explanation)."""
    by_item: defaultdict[str, list[str]] = defaultdict(list)
    for item, text in explanations:
        by_item[item].append(text)
    found = (mean_diversity(texts) for _, texts in sorted(by_item.items()))
    return [diversity for diversity in found if diversity is not None]
