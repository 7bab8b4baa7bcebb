"""Forecast of the KL divergence that keys of few bits cost the whole model: independent errors in place of rounding.

The second order of `sensitivity` tells where bits are needed, and what uniform bits of four and more cost. It says too
little of allocated bits, whose coarse channels take a few tokens out of its range: no quadratic form sees these, and
they can make half of the divergence. So a forecast runs the model with errors drawn independently and uniformly within
half a step, none for the least and the largest entry of a channel, and takes the mean of the divergence over several
draws. Nothing is rounded, but each draw takes one pass of the model, as measuring does; what it tells beyond one
measurement is the mean over all errors of that size, and the spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from qkv.heads.divergence import mean_kls
from qkv.heads.key_grid import inexact, key_grid

if TYPE_CHECKING:
    from qkv.heads.adapter import KeyChange
    from qkv.heads.attention_model import AttentionModel

DRAWS = 4
"""Draws of errors for a forecast."""


@dataclass(frozen=True)
class Forecast:
    """What keys of few bits are expected to cost.

    Attributes:
        kl: Mean KL divergence of the whole model over the draws, in nats per token.
        spread: Standard deviation over the draws. A rounding, whose errors are not independent, may be further away.
        draws: How many there were, at least 2.
    """

    kl: float
    spread: float
    draws: int


def forecasts(
    model: AttentionModel,
    windows: Sequence[Tensor],
    choices: Sequence[tuple[Tensor, Tensor | None]],
    draws: int = DRAWS,
    seed: int = 0,
) -> list[Forecast]:
    """The KL divergence on these windows that each choice of bits is expected to cost, without rounding a key.

    Args:
        model: A model that predicts the next token.
        windows: Token ids, from `AttentionModel.windows`.
        choices: Bits, (layers, key heads, size), and the basis whose coordinates are rounded or None.
        draws: Draws of errors for each choice, at least 2.
        seed: Of the errors.
    """
    changes = [
        drawn_errors(bits, basis, torch.Generator().manual_seed(seed * draws + draw))
        for bits, basis in choices
        for draw in range(draws)
    ]
    found = torch.tensor(mean_kls(model, windows, changes), dtype=torch.float64).reshape(len(choices), draws)
    return [Forecast(float(row.mean()), float(row.std()), draws) for row in found]


def drawn_errors(bits: Tensor, basis: Tensor | None, generator: torch.Generator) -> KeyChange:
    """For `AttentionModel.run`: keys with independent errors, uniform within half a step of their grid.

    Args:
        bits: (layers, key heads, size).
        basis: The basis whose coordinates would be rounded; None for the channels themselves.
        generator: Of the errors.
    """
    inverse = None if basis is None else torch.linalg.inv(basis.double())

    def change(layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        own = key if basis is None else key.double() @ basis[layer].double().mT
        step = key_grid(own, bits[layer][None, :, None, :]).step
        errors = (torch.rand(own.shape, generator=generator, dtype=own.dtype) - 0.5) * step * inexact(own)
        if inverse is not None:
            errors = (errors @ inverse[layer].mT).to(key.dtype)
        return key + errors, value

    return change
