"""Causal attention of many sequences of one length, one head at a time, on the projections where they lie in memory.

Nothing is transposed or copied, and one head's scores at a time fit in the processor's caches.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from qkv.core.kernels.causal import causal_bias
from qkv.core.kernels.softmax_backward import softmax_backward
from qkv.core.rotary import apply_rotary, apply_rotary_backward_


def equal_length_causal(
    qkv: Tensor, length: int, n_kv_head: int, scale: float, rotation: Tensor | None = None
) -> Tensor:
    """Outputs (N, heads, d) of packed sequences of `length` tokens each.

    Args:
        qkv: queries, keys and values of each token, (N, heads + 2·n_kv_head, d).
        length: tokens of each sequence; N is a multiple of it.
        n_kv_head: heads of keys and of values; heads/n_kv_head heads of queries share each.
        scale: factor of the scores.
        rotation: complex numbers (N, 1, d/2) that queries and keys are multiplied by first (`core/rotary.py`).
    """
    out: Tensor = _EqualLengthCausal.apply(qkv, rotation, length, n_kv_head, scale)
    return out


class _EqualLengthCausal(torch.autograd.Function):
    """The products of core/kernels/causal.py for each head, on strided views of the packed projections."""

    @staticmethod
    def forward(ctx: Any, qkv: Tensor, rotation: Tensor | None, length: int, n_kv_head: int, scale: float) -> Tensor:
        n_head = qkv.shape[1] - 2 * n_kv_head
        saved = []
        with torch.autocast("cpu", enabled=False):
            qk = qkv if rotation is None else apply_rotary(qkv[:, : n_head + n_kv_head], rotation)
            qk, qkv = qk.unflatten(0, (-1, length)), qkv.unflatten(0, (-1, length))
            out = qkv.new_empty(*qkv.shape[:2], n_head, qkv.shape[3])
            mask = causal_bias(length, qkv.dtype).expand(len(out), length, length)
            for q, k, v in _head_indices(n_head, n_kv_head):
                weights = torch.baddbmm(mask, qk[:, :, q], qk[:, :, k].mT, alpha=scale)
                torch.softmax(weights, dim=-1, out=weights)
                out[:, :, q] = torch.bmm(weights, qkv[:, :, v])
                saved.append(weights)
        ctx.save_for_backward(qk, qkv, *saved)
        ctx.constants = rotation, n_head, n_kv_head, scale
        return out.flatten(0, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        qk, qkv, *saved = ctx.saved_tensors
        rotation, n_head, n_kv_head, scale = ctx.constants
        dqkv, grad = torch.empty_like(qkv), grad.unflatten(0, qkv.shape[:2])
        with torch.autocast("cpu", enabled=False):
            for weights, (q, k, v) in zip(saved, _head_indices(n_head, n_kv_head), strict=True):
                g = grad[:, :, q]
                dscores = softmax_backward(torch.bmm(g, qkv[:, :, v].mT), weights)
                dqkv[:, :, q] = torch.bmm(dscores, qk[:, :, k]).mul_(scale)
                dk, dv = torch.bmm(dscores.mT, qk[:, :, q]).mul_(scale), torch.bmm(weights.mT, g)
                if q % (n_head // n_kv_head) == 0:  # the first of the heads that share these keys and values
                    dqkv[:, :, k], dqkv[:, :, v] = dk, dv
                else:
                    dqkv[:, :, k] += dk
                    dqkv[:, :, v] += dv
            dqkv = dqkv.flatten(0, 1)
            if rotation is not None:
                apply_rotary_backward_(dqkv[:, : n_head + n_kv_head], rotation)
        return dqkv, None, None, None, None


def _head_indices(n_head: int, n_kv_head: int) -> list[tuple[int, int, int]]:
    """For each head, the indices of its query, key and value among a token's heads + 2·n_kv_head vectors."""
    shared = [i * n_kv_head // n_head for i in range(n_head)]
    return [(i, n_head + g, n_head + n_kv_head + g) for i, g in enumerate(shared)]
