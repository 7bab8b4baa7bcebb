"""Rope: queries and keys are turned by their places, pair by pair, as complex numbers."""

from __future__ import annotations

import torch
from torch import Tensor


def rotations(places: int, size: int, base: float) -> Tensor:
    """Cosines and sines (places, size/2, 2) of rope's angles, rounded as Llama rounds them: in float32."""
    frequencies = 1.0 / base ** (torch.arange(0, size, 2).float() / size)
    angles = torch.outer(torch.arange(places).float(), frequencies)
    return torch.stack((angles.cos(), angles.sin()), dim=-1)


def complex_of(x: Tensor) -> Tensor:
    """The last two coordinates as a complex number, in float32 or better."""
    return torch.view_as_complex(x if x.dtype in (torch.float32, torch.float64) else x.float())


def paired(heads: int, others: int, size: int) -> Tensor:
    """An order of rows of weights: in each of the first heads, the rows c and c + size/2 that turn together meet."""
    pairs = torch.arange(heads * size).view(heads, 2, size // 2).mT.flatten()
    return torch.cat((pairs, torch.arange(heads * size, (heads + others) * size)))


def turned(x: Tensor, turn: Tensor) -> Tensor:
    """Neighbouring coordinates as complex numbers, each times a number of modulus one that its place decides."""
    return torch.view_as_real(complex_of(x.unflatten(-1, (-1, 2))) * turn).flatten(-2).to(x.dtype)


def turn_back(grad: Tensor, turn: Tensor) -> None:
    """A gradient of what was turned becomes, in place, one of what it was before."""
    if grad.dtype in (torch.float32, torch.float64):
        torch.view_as_complex(grad.unflatten(-1, (-1, 2))).mul_(turn.conj())
    else:
        grad.copy_(turned(grad, turn.conj()))
