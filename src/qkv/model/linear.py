"""Linear layers through oneDNN where that is faster.

torch has two libraries for float32 matrix products on a CPU: its BLAS (MKL), which `F.linear` calls, and oneDNN. The
kernels of oneDNN are a tenth faster here, but a kernel is compiled for each number of rows, which costs more than it
saves if every batch has another one. So oneDNN is taken while training, if the number of rows is a multiple of
ONEDNN_ROW_MULTIPLE (`train/data/packing.py` pads batches to one).

torch offers oneDNN's product only as a private operator, `torch.ops.mkldnn._linear_pointwise`. This is the only module
that knows it; where it is missing, or takes other arguments, `F.linear` takes its place.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from qkv.core.cpu_features import avoid_broken_amx

avoid_broken_amx()  # before the first product of this process

ONEDNN_ROW_MULTIPLE = 32  # row counts that are multiples of this recur often enough for oneDNN's kernels to be reused
LinearFunction = Callable[[Tensor, Tensor, Tensor | None], Tensor]


class Linear(nn.Linear):
    """torch.nn.Linear, computed by `linear`."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x Wᵀ + b, by oneDNN where `prefers_onednn` says so."""
    if prefers_onednn(x, weight):
        out: Tensor = _Linear.apply(x, weight, bias)
        return out
    return F.linear(x, weight, bias)


def prefers_onednn(x: Tensor, weight: Tensor) -> bool:
    """Whether the product of x (rows, in) and a weight (out, in) should be computed by `onednn_linear`."""
    return (
        not torch.compiler.is_compiling()  # first, so that the compiler traces none of the rest
        and torch.is_grad_enabled()  # inference has ever new row counts, and should round as F.linear does
        and x.dim() == 2
        and x.dtype == weight.dtype == torch.float32
        and x.device.type == "cpu"
        and len(x) % ONEDNN_ROW_MULTIPLE == 0
        and len(x) > 0
        and torch.backends.mkldnn.is_available()
        and not torch.is_autocast_enabled("cpu")
        and type(weight) in (Tensor, nn.Parameter)  # FSDP's sharded DTensors are not
    )


class _Linear(torch.autograd.Function):
    """With a gradient G of x Wᵀ + b: dx = GW, dW = Gᵀx, db = Gᵀ1."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return onednn_linear(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        dx = onednn_linear(grad, weight.t()) if needs_x else None
        return dx, *weight_gradients(grad, x, needs_weight, needs_bias)


def weight_gradients(
    grad: Tensor, x: Tensor, needs_weight: bool, needs_bias: bool
) -> tuple[Tensor | None, Tensor | None]:
    """Gradients of W and b, each if it is needed; for this product torch's BLAS is the faster library."""
    return grad.t() @ x if needs_weight else None, grad.sum(0) if needs_bias else None


def onednn_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b by oneDNN if torch offers it, else by F.linear. oneDNN's has no gradient: autograd functions call it."""
    return _find_onednn_linear()(x, weight, bias)


@lru_cache(maxsize=1)
def _find_onednn_linear() -> LinearFunction:
    """torch's private oneDNN operator, if it exists and takes the arguments that it takes in torch 2.6 to 2.13."""

    def private(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        out: Tensor = torch.ops.mkldnn._linear_pointwise.default(x, weight, bias, "none", [], "")
        return out

    x, bias = torch.ones(1, 2, dtype=torch.float32, device="cpu"), torch.ones(1, dtype=torch.float32, device="cpu")
    try:
        works = bool((private(x, x, bias) == 3).all() and (private(x, x, None) == 2).all())
    except (AttributeError, RuntimeError, TypeError):  # unknown to torch.ops; not built in; another signature
        works = False
    return private if works else F.linear
