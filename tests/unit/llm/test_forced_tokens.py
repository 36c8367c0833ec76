"""The logits processor follows its rows through the batch. Needs vLLM's import (half a minute), hence slow."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def vllm_parts() -> Any:
    from vllm import SamplingParams
    from vllm.v1.sample.logits_processor import BatchUpdate, MoveDirectionality

    from recgpt_ops.llm.forced_tokens import ForcedTokens

    def params(forced: list[int] | None) -> Any:
        if forced is None:
            return SamplingParams(max_tokens=4)
        return SamplingParams(max_tokens=len(forced), extra_args={"forced": forced})

    return ForcedTokens, BatchUpdate, MoveDirectionality, params


def finite(processor: Any, rows: int) -> list[list[int]]:
    """Per row, the ids that can still be sampled (all ten: [])."""
    import torch

    logits = processor.apply(torch.arange(10.0).repeat(rows, 1))
    kept = [[id_ for id_ in range(10) if row[id_] != float("-inf")] for row in logits]
    return [[] if len(ids) == 10 else ids for ids in kept]


def test_each_row_may_write_its_own_next_id_only(vllm_parts: Any) -> None:
    forced_tokens, update, _, params = vllm_parts
    processor = forced_tokens(None, None, False)
    first: list[int] = []
    processor.update_state(
        update(3, removed=[], added=[(0, params([7, 8]), [1], first), (1, params(None), [1], []), (2, params([3]), [1], [])], moved=[])
    )
    assert finite(processor, 3) == [[7], [], [3]]
    first.append(7)  # the engine goes on filling this very list
    processor.update_state(None)
    assert finite(processor, 3) == [[8], [], [3]]


def test_rows_are_removed_replaced_moved_and_swapped(vllm_parts: Any) -> None:
    forced_tokens, update, direction, params = vllm_parts
    processor = forced_tokens(None, None, False)
    processor.update_state(
        update(3, removed=[], added=[(0, params([1]), None, []), (1, params([2]), None, []), (2, params([3]), None, [])], moved=[])
    )
    processor.update_state(update(3, removed=[], added=[], moved=[(0, 2, direction.SWAP)]))
    assert finite(processor, 3) == [[3], [2], [1]]
    processor.update_state(update(2, removed=[0], added=[], moved=[(2, 0, direction.UNIDIRECTIONAL)]))
    assert finite(processor, 2) == [[1], [2]]
    processor.update_state(update(2, removed=[], added=[(1, params(None), None, [])], moved=[]))
    assert finite(processor, 2) == [[1], []]
    processor.update_state(update(1, removed=[0], added=[], moved=[(1, 0, direction.SWAP)]))
    assert finite(processor, 1) == [[]]


@pytest.mark.parametrize(("forced", "max_tokens"), [([], 1), ([1, 2], 1)])
def test_ids_that_do_not_fit_max_tokens_are_refused_before_the_engine(vllm_parts: Any, forced: list[int], max_tokens: int) -> None:
    from vllm import SamplingParams

    with pytest.raises(ValueError, match="forced: expected max_tokens"):
        vllm_parts[0].validate_params(SamplingParams(max_tokens=max_tokens, extra_args={"forced": forced}))
