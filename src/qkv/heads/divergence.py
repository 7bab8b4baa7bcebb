"""How far a changed model's next-token probabilities are from its own: KL divergence over windows of a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from qkv.heads.adapter import widened

if TYPE_CHECKING:
    from qkv.heads.attention_model import AttentionModel

ROWS = 64
"""Tokens whose probabilities are compared at once."""


def mean_kl(model: AttentionModel, windows: Sequence[Tensor], keys: Any) -> float:
    """Mean KL divergence of next-token probabilities from the model's own, in nats per token.

    Args:
        model: A model that predicts the next token.
        windows: Token ids, from `AttentionModel.windows`.
        keys: Gives the keys and values of a layer to compute with, from the model's own.
    """
    return mean_kls(model, windows, [keys])[0]


def mean_kls(model: AttentionModel, windows: Sequence[Tensor], changes: Sequence[Any]) -> list[float]:
    """`mean_kl` for several changes of keys; the model's own probabilities are computed once."""
    totals = [0.0] * len(changes)
    for ids in windows:
        found = window_kls(model, ids, model.run(ids[None]).logits[0], changes)
        totals = [total + more for total, more in zip(totals, found, strict=True)]
    return [total / sum(map(len, windows)) for total in totals]


def window_kls(model: AttentionModel, ids: Tensor, logits: Tensor, changes: Sequence[Any]) -> list[float]:
    """Sums of the KL divergence over the tokens of one window for several changes of keys, from the model's logits."""
    own = OwnChances(logits)
    return [own.kl(model.run(ids[None], keys=keys).logits[0]) for keys in changes]


class OwnChances:
    """A model's own next-token probabilities, for comparison with others.

    With p the model's probabilities and d what another's logits have more, less the mean of d under p,
    KL = log(1 + Σ p (exp d - 1)) - Σ p d: small numbers only, so that the model's own precision is enough for a
    relative error of about 1e-5.

    Args:
        logits: (tokens, vocabulary).
    """

    def __init__(self, logits: Tensor) -> None:
        self.logits = widened(logits)
        self.chances = [part.softmax(-1) for part in self.logits.split(ROWS)]  # a large vocabulary in pieces

    def kl(self, logits: Tensor) -> float:
        """Sum over tokens of the KL divergence of other logits from these."""
        total = 0.0
        for own, chances, other in zip(self.logits.split(ROWS), self.chances, logits.split(ROWS), strict=True):
            other = widened(other)
            rows = _divergences(chances, other - own)
            if not bool(rows.isfinite().all()):  # logits so far apart that float32 overflows
                mine, there = own.double().log_softmax(-1), other.double().log_softmax(-1)
                rows = (mine.exp() * (mine - there)).sum(-1)
            total += float(rows.clamp(min=0).sum())  # below zero by rounding only
        return total


def _divergences(chances: Tensor, more: Tensor) -> Tensor:
    """KL divergence of each row, from probabilities and what the other's logits have more."""
    more = more - _mean(chances, more)[:, None]
    return torch.log1p(_mean(chances, torch.expm1(more)).double()) - _mean(chances, more)


def _mean(chances: Tensor, numbers: Tensor) -> Tensor:
    """The mean of each row of numbers under a row of probabilities."""
    return torch.einsum("rv,rv->r", chances, numbers)  # twice as fast as vecdot, which multiplies and then sums
