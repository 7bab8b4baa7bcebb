"""Causal attention of short sequences on a CPU: plain products, which beat the fused kernel's way back there."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

SHORT = 128  # tokens up to which the weights are cheaper to keep than to compute again


def short_causal(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Outputs (..., n, dv) of queries and keys (..., n, d) and values (..., n, dv), all of one batch."""
    out: Tensor = _Causal.apply(q, k, v, scale)
    return out


class _Causal(torch.autograd.Function):
    """With S = scale QKᵀ, P = softmax(S), O = PV and a gradient G of O:

    dV = PᵀG, dP = GVᵀ, dS = P∘(dP - (dP·P)1ᵀ), dQ = scale dS K, dK = scale dSᵀQ.
    """

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        batch, n = q.shape[:-2], q.shape[-2]
        q, k, v = (x.reshape(-1, n, x.shape[-1]) for x in (q, k, v))
        weights = torch.baddbmm(ahead(n, q.dtype).expand(len(q), n, n), q, k.mT, alpha=scale)
        torch.softmax(weights, dim=-1, out=weights)
        ctx.save_for_backward(q, k, v, weights)
        ctx.scale, ctx.batch = scale, batch
        return torch.bmm(weights, v).unflatten(0, batch) if batch else torch.bmm(weights, v)[0]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        q, k, v, weights = ctx.saved_tensors
        grad = grad.reshape(len(q), *grad.shape[-2:])
        inner = torch._softmax_backward_data(torch.bmm(grad, v.mT), weights, -1, weights.dtype)
        back = torch.bmm(inner, k).mul_(ctx.scale), torch.bmm(inner.mT, q).mul_(ctx.scale), torch.bmm(weights.mT, grad)
        dq, dk, dv = (x.unflatten(0, ctx.batch) if ctx.batch else x[0] for x in back)
        return dq, dk, dv, None


@lru_cache(maxsize=256)
def ahead(n: int, dtype: torch.dtype, repeat: int = 1) -> Tensor:
    """(1, repeat · n, n): zero where a token may look, -inf at the tokens ahead of it."""
    return torch.full((1, n, n), -torch.inf, dtype=dtype).triu_(1).repeat(1, repeat, 1)
