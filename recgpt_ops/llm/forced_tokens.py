"""Scores a given text by its likelihood: the engine is made to write it, and says how likely each token was to the model.

`prompt_logprobs` would say the same but reads no prefix cache (5.6 s a tag over a 2,048-token context); this reads it. At
step n every logit but that of the n-th forced id becomes -inf, so the sampled token is the forced one; log-probabilities are
taken by the engine before any processor (`raw_logprobs`), so they are the model's own.

    SamplingParams(max_tokens=len(ids), logprobs=0, ignore_eos=True, extra_args={"forced": ids})
"""

from __future__ import annotations

import torch
from vllm import SamplingParams
from vllm.config import VllmConfig
from vllm.v1.sample.logits_processor import BatchUpdate, LogitsProcessor, MoveDirectionality

FORCED = "forced"


class ForcedTokens(LogitsProcessor):
    """vLLM's logits processor (V1 model runner). Rows without forced ids are left alone."""

    def __init__(self, vllm_config: VllmConfig, device: torch.device, is_pin_memory: bool) -> None:
        """Called by the engine. `rows`: batch row -> (forced ids, the row's output ids, which the engine goes on filling)."""
        self.rows: dict[int, tuple[list[int], list[int]]] = {}

    @classmethod
    def validate_params(cls, sampling_params: SamplingParams) -> None:
        """Refuses, before the engine, what could not be forced."""
        forced = (sampling_params.extra_args or {}).get(FORCED)
        if forced is not None and (not forced or len(forced) != sampling_params.max_tokens):
            raise ValueError(f"{FORCED}: expected max_tokens = {sampling_params.max_tokens} ids, got {len(forced)}")

    def is_argmax_invariant(self) -> bool:
        """It changes which token is the likeliest, so greedy requests need it too."""
        return False

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """Follows the rows of the batch: removed first, then added, then moved (the engine's order)."""
        if batch_update is None:
            return
        for row in batch_update.removed:
            self.rows.pop(row, None)
        for row, params, _, output_ids in batch_update.added:
            forced = (params.extra_args or {}).get(FORCED)
            if forced is None:
                self.rows.pop(row, None)  # the row may have been another request's
            else:
                self.rows[row] = (forced, output_ids)
        for source, target, direction in batch_update.moved:
            moved, replaced = self.rows.pop(source, None), self.rows.pop(target, None)
            if moved is not None:
                self.rows[target] = moved
            if replaced is not None and direction == MoveDirectionality.SWAP:
                self.rows[source] = replaced

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Leaves one finite logit in each forced row. `logits`: [rows, vocabulary]."""
        for row, (forced, output_ids) in self.rows.items():
            step = len(output_ids)
            if step < len(forced):
                kept = logits[row, forced[step]].clone()
                logits[row] = float("-inf")
                logits[row, forced[step]] = kept
        return logits
