"""Backward pass of softmax from its stored output: torch's fused kernel, or public operations where it is missing.

`torch._softmax_backward_data` is what torch's own autograd calls: one pass over memory, where the formula in public
operations takes three. It is private, so this is the only module that knows it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_FUSED: Callable[[Tensor, Tensor, int, torch.dtype], Tensor] | None = getattr(torch, "_softmax_backward_data", None)


def softmax_backward(grad: Tensor, weights: Tensor) -> Tensor:
    """Gradient of the scores, P∘(G - (G·P)1ᵀ), given P = softmax(scores) over the last axis and its gradient G."""
    if _FUSED is not None:
        return _FUSED(grad, weights, -1, weights.dtype)
    return softmax_backward_public(grad, weights)


def softmax_backward_public(grad: Tensor, weights: Tensor) -> Tensor:
    """The same by public operations: `(grad * weights)` is computed once and updated in place."""
    out: Any = grad * weights
    return out.sub_(weights * out.sum(-1, keepdim=True))
