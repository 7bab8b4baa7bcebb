"""Causal attention of many sequences of one length, head by head: nothing is moved, and little is in use at a time."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from qkv.core.kernels.causal import ahead
from qkv.core.rotary import turn_back, turned

LARGE = 1 << 16  # weights of a head from which on a product for each head costs less than bringing heads together


def even_causal(whole: Tensor, length: int, shared: int, scale: float, turns: Tensor | None = None) -> Tensor:
    """What each token reads, (N, heads, d), in a row of sequences of `length` tokens.

    `whole` has each token's queries, keys and values, (N, heads + 2·shared, d). With `turns`, complex numbers
    (N, 1, d/2), queries and keys are multiplied by them first.
    """
    out: Tensor = _Even.apply(whole, turns, length, shared, scale)
    return out


class _Even(torch.autograd.Function):
    """The products of core/short.py, with each head's vectors where the row has them."""

    @staticmethod
    def forward(ctx: Any, whole: Tensor, turns: Tensor | None, length: int, shared: int, scale: float) -> Tensor:
        heads = whole.shape[1] - 2 * shared
        saved = []
        with torch.autocast("cpu", enabled=False):
            first = whole if turns is None else turned(whole[:, : heads + shared], turns)
            asking, known = first.unflatten(0, (-1, length)), whole.unflatten(0, (-1, length))
            out = whole.new_empty(*known.shape[:2], heads, known.shape[3])
            mask = ahead(length, whole.dtype).expand(len(out), length, length)
            for q, k, v in _heads(heads, shared):
                weights = torch.baddbmm(mask, asking[:, :, q], asking[:, :, k].mT, alpha=scale)
                torch.softmax(weights, dim=-1, out=weights)
                out[:, :, q] = torch.bmm(weights, known[:, :, v])
                saved.append(weights)
        ctx.save_for_backward(asking, known, *saved)
        ctx.facts = turns, heads, shared, scale
        return out.flatten(0, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        asking, known, *saved = ctx.saved_tensors
        turns, heads, shared, scale = ctx.facts
        back, grad = torch.empty_like(known), grad.unflatten(0, known.shape[:2])
        with torch.autocast("cpu", enabled=False):
            for weights, (q, k, v) in zip(saved, _heads(heads, shared), strict=True):
                g = grad[:, :, q]
                inner = torch._softmax_backward_data(torch.bmm(g, known[:, :, v].mT), weights, -1, weights.dtype)
                back[:, :, q] = torch.bmm(inner, asking[:, :, k]).mul_(scale)
                to_k, to_v = torch.bmm(inner.mT, asking[:, :, q]).mul_(scale), torch.bmm(weights.mT, g)
                if q % (heads // shared) == 0:  # the first of the heads that share these keys
                    back[:, :, k], back[:, :, v] = to_k, to_v
                else:
                    back[:, :, k] += to_k
                    back[:, :, v] += to_v
            row = back.flatten(0, 1)
            if turns is not None:
                turn_back(row[:, : heads + shared], turns)
        return row, None, None, None, None


def _heads(heads: int, shared: int) -> list[tuple[int, int, int]]:
    """For each head, where a token's vectors have its query, its key and its value."""
    return [(i, heads + i * shared // heads, heads + shared + i * shared // heads) for i in range(heads)]
