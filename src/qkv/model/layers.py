"""Small layers around attention: norms, dropout, row selection."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from qkv.model.config import ModelConfig


def norm(config: ModelConfig) -> nn.Module:
    """RMSNorm for `rope`, as in Llama; LayerNorm for the others, as in GPT-2."""
    if config.attention == "rope":
        return RMSNorm(config.d_model, config.norm_eps)
    return nn.LayerNorm(config.d_model, config.norm_eps, bias=config.bias)


class RMSNorm(nn.Module):
    """Each vector divided by its root mean square, times a learned factor."""

    def __init__(self, d_model: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        if x.dtype == torch.float64 or (x.dtype == torch.float32 and not torch.is_grad_enabled()):
            # Llama's norm rounds to float32 whatever the model's precision is. To give the same logits, in float64 as
            # well, it is rounded here at the same place, by the same steps.
            y = x.float()
            y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)
            return self.weight * y.to(x.dtype)
        float32_cpu = x.dtype == self.weight.dtype == torch.float32 and x.device.type == "cpu"
        if float32_cpu and not torch.compiler.is_compiling():
            return _RMSNorm.apply(x, self.weight, self.eps)
        return F.rms_norm(x, (x.shape[-1],), self.weight, self.eps)


class _RMSNorm(torch.autograd.Function):
    """y = w∘n with n = r x and r = (|x|²/d + ε)^(-1/2), in fewer passes over memory than torch's own on a CPU.

    With a gradient G of y and u = w∘G: dx = r (u - n (u·n)/d), dw = Σ G∘n.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        r = torch.linalg.vector_norm(x, dim=-1, keepdim=True).square_().div_(x.shape[-1]).add_(eps).rsqrt_()
        n = x * r
        ctx.save_for_backward(n, r, weight)
        return n * weight

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        n, r, weight = ctx.saved_tensors
        u = grad * weight
        along = torch.linalg.vecdot(u, n)[..., None] / -n.shape[-1]
        return (u + n * along) * r, (grad * n).flatten(0, -2).sum(0), None


def dropout(x: Tensor, rate: float) -> Tensor:
    """Each entry is set to 0 with probability `rate`, rounded to 256ths, and the others are scaled to keep the mean.

    On a CPU, each of eight bytes of one random integer decides one entry: a tenth of the time that torch takes to draw
    a number for each.
    """
    if rate == 0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, rate)
    threshold = max(1, round(rate * 256))
    integers = torch.empty(-(-x.numel() // 8), dtype=torch.int64).random_(-(2**63), None)
    kept = integers.view(torch.uint8)[: x.numel()].view(x.shape) >= threshold
    return _Dropout.apply(x, kept, 256 / (256 - threshold))


class _Dropout(torch.autograd.Function):
    """x · kept · scale; for the backward pass only the booleans `kept` are stored, a byte for each entry."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, kept: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(kept)
        ctx.scale = scale
        return kept.to(x.dtype).mul_(scale).mul_(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (kept,) = ctx.saved_tensors
        return kept.to(grad.dtype).mul_(ctx.scale).mul_(grad), None, None


def select_rows(x: Tensor, rows: Tensor | None) -> Tensor:
    """x[rows], or x if `rows` is None. The rows must be distinct: the backward pass copies where torch's own adds."""
    return x if rows is None else _SelectRows.apply(x, rows)


class _SelectRows(torch.autograd.Function):
    """index_select whose gradient is index_copy."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.shape = x.shape
        return x.index_select(0, rows)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (rows,) = ctx.saved_tensors
        return grad.new_zeros(ctx.shape).index_copy_(0, rows, grad), None
