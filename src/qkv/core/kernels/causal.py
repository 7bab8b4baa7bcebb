"""Causal attention that stores its weights for the backward pass: plain products, for short sequences on a CPU."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from qkv.core.kernels.softmax_backward import softmax_backward


def stored_causal(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Outputs (..., n, dv) of queries and keys (..., n, d) and values (..., n, dv), all with the same batch axes."""
    out: Tensor = _StoredCausal.apply(q, k, v, scale)
    return out


class _StoredCausal(torch.autograd.Function):
    """With S = scale QKᵀ, P = softmax(S), O = PV and a gradient G of O:

    dV = PᵀG, dP = GVᵀ, dS = P∘(dP - (dP·P)1ᵀ), dQ = scale dS K, dK = scale dSᵀQ.
    """

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        batch, n = q.shape[:-2], q.shape[-2]
        q, k, v = (x.reshape(-1, n, x.shape[-1]) for x in (q, k, v))
        # The mask is the matrix to which baddbmm adds the product: one pass over the scores.
        weights = torch.baddbmm(causal_bias(n, q.dtype).expand(len(q), n, n), q, k.mT, alpha=scale)
        torch.softmax(weights, dim=-1, out=weights)
        ctx.save_for_backward(q, k, v, weights)
        ctx.scale, ctx.batch = scale, batch
        return torch.bmm(weights, v).unflatten(0, batch) if batch else torch.bmm(weights, v)[0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        q, k, v, weights = ctx.saved_tensors
        grad = grad.reshape(len(q), *grad.shape[-2:])
        dscores = softmax_backward(torch.bmm(grad, v.mT), weights)
        each = (
            torch.bmm(dscores, k).mul_(ctx.scale),
            torch.bmm(dscores.mT, q).mul_(ctx.scale),
            torch.bmm(weights.mT, grad),
        )
        dq, dk, dv = (x.unflatten(0, ctx.batch) if ctx.batch else x[0] for x in each)
        return dq, dk, dv, None


@lru_cache(maxsize=256)
def causal_bias(n: int, dtype: torch.dtype, repeat: int = 1) -> Tensor:
    """What is added to scores (1, repeat · n, n): 0 where a token may attend, -inf at the tokens after it.

    Cached, since every layer of every step adds the same; callers must not write to it.
    """
    return torch.full((1, n, n), -torch.inf, dtype=dtype).triu_(1).repeat(1, repeat, 1)
