from __future__ import annotations

import pytest

from recgpt_ops.evaluation.diversity import common_length, item_diversities, mean_diversity, rouge_l, tokens


@pytest.mark.parametrize(
    ("left", "right", "length"),
    [
        ("abcbdab", "bdcaba", 4),  # bcba: the example of the textbooks
        ("abc", "abc", 3),
        ("abc", "cba", 1),
        ("abc", "xyz", 0),
        ("", "abc", 0),
    ],
)
def test_the_longest_common_subsequence(left, right, length) -> None:
    assert common_length(left, right) == common_length(right, left) == length


def test_rouge_l_by_hand() -> None:
    """LCS is "tea for evenings", 3 words: P = 3/4, R = 3/5, F = 2 * 3 / (5 + 4) = 2/3."""
    left, right = tokens("Warm tea for cold evenings"), tokens("Green tea for evenings!")
    assert rouge_l(left, right) == pytest.approx(2 / 3)
    precision, recall = 3 / 4, 3 / 5
    assert rouge_l(left, right) == pytest.approx(2 * precision * recall / (precision + recall))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["Warm tea", "warm tea!"], 0.0),  # the same words
        (["Warm tea", "Cold beer"], 1.0),  # no word in common
        (["Warm tea", "Warm tea", "Cold beer"], pytest.approx(2 / 3)),  # pairs 1, 0, 0
        (["秋天的茶", "秋天的酒"], 0.25),  # three of four characters
        (["Warm tea"], None),
        ([], None),
    ],
)
def test_diversity_is_0_for_equal_texts_and_1_for_texts_without_a_word_in_common(texts, expected) -> None:
    assert mean_diversity(texts) == expected


def test_chinese_is_compared_by_character_and_other_words_whole() -> None:
    assert tokens("Nike新鞋, 2024!") == ["nike", "新", "鞋", "2024"]
    assert tokens("?!") == []


def test_only_items_with_several_explanations_have_a_diversity() -> None:
    explanations = [("brie", "Warm tea"), ("gouda", "Warm tea"), ("brie", "Cold beer"), ("steak", "x")]
    assert item_diversities(explanations) == [1.0]


def test_of_many_pairs_a_sample_is_taken_the_same_each_time() -> None:
    texts = [f"word{number % 7} tea" for number in range(60)]  # 1770 pairs
    whole, some = mean_diversity(texts), mean_diversity(texts, seed=3, max_pairs=500)
    assert some == mean_diversity(texts, seed=3, max_pairs=500) != mean_diversity(texts, seed=4, max_pairs=500)
    assert some == pytest.approx(whole, abs=0.05)
