"""Rows of vectors times a matrix of weights, by the faster of the two libraries that torch has for it."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

STEADY = 32  # a number of rows that is a multiple of this comes again and again; others hardly ever do


class Linear(nn.Linear):
    """torch's linear layer, with `product` inside."""

    def forward(self, x: Tensor) -> Tensor:
        return product(x, self.weight, self.bias)


def product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x Wᵀ + b.

    oneDNN's kernels are a tenth faster here than those that torch takes for float32, but are made anew for each
    number of rows, which costs more than it brings where every batch has another one.
    """
    if steady(x, weight):
        out: Tensor = _Product.apply(x, weight, bias)
        return out
    return F.linear(x, weight, bias)


def steady(x: Tensor, weight: Tensor) -> bool:
    """Whether a product of these should be oneDNN's, by `times`."""
    return (
        not torch.compiler.is_compiling()  # first, so that a compiler sees nothing of the rest
        and torch.is_grad_enabled()  # elsewhere every number of rows is new, and sums are rounded as others round them
        and x.dim() == 2
        and x.dtype == weight.dtype == torch.float32
        and x.device.type == "cpu"
        and len(x) % STEADY == 0
        and len(x) > 0
        and torch.backends.mkldnn.is_available()
        and not torch.is_autocast_enabled("cpu")
        and type(weight) in (Tensor, nn.Parameter)  # spread over processes it is something else
    )


class _Product(torch.autograd.Function):
    """With a gradient G of x Wᵀ + b: dx = GW, dW = Gᵀx, db = Gᵀ1."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return times(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        to_x, to_weight, to_bias = ctx.needs_input_grad
        return times(grad, weight.t()) if to_x else None, *weight_gradient(grad, x, to_weight, to_bias)


def times(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b by oneDNN, without a way back."""
    out: Tensor = torch.ops.mkldnn._linear_pointwise.default(x, weight, bias, "none", [], "")
    return out


def weight_gradient(grad: Tensor, x: Tensor, to_weight: bool, to_bias: bool) -> tuple[Tensor | None, Tensor | None]:
    """Gradients of W and b, each if it is wanted; here torch's own product is the faster one."""
    return grad.t() @ x if to_weight else None, grad.sum(0) if to_bias else None
