"""Recorded answers of model calls, so that a rerun makes none."""

from recgpt_ops.ledger.account import TokenAccount
from recgpt_ops.ledger.recorder import CallRecorder
from recgpt_ops.ledger.segments import SHARED, has_answers, shard_name

__all__ = ["SHARED", "CallRecorder", "TokenAccount", "has_answers", "shard_name"]
