"""GELU MLP (GPT-2) and SwiGLU (Llama), with an in-place backward pass.

The hidden layer is a block's largest tensor. While training, `_GeluMLP` and `_SwiGLU` compute the whole MLP as one
autograd function, whose backward pass writes gradients over tensors that it no longer needs.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from qkv.model.config import ModelConfig
from qkv.model.linear import Linear, onednn_linear, prefers_onednn, weight_gradients


class MLP(nn.Module):
    """GPT-2's MLP: gelu(x Aᵀ + b) Bᵀ + c."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.wide = Linear(config.d_model, config.d_ff_effective, config.bias)
        self.out = Linear(config.d_ff_effective, config.d_model, config.bias)
        self.approximate = "tanh" if config.activation == "gelu_tanh" else "none"

    def forward(self, x: Tensor) -> Tensor:
        if prefers_onednn(x, self.wide.weight):
            out: Tensor = _GeluMLP.apply(
                x, self.wide.weight, self.wide.bias, self.out.weight, self.out.bias, self.approximate
            )
            return out
        return self.out(F.gelu(self.wide(x), approximate=self.approximate))


class SwiGLU(nn.Module):
    """Llama's MLP: (silu(g)∘v) Bᵀ, where one projection gives both gate g and value v."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.wide = Linear(config.d_model, 2 * config.d_ff_effective, bias=False)
        self.out = Linear(config.d_ff_effective, config.d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        if prefers_onednn(x, self.wide.weight):
            out: Tensor = _SwiGLU.apply(x, self.wide.weight, self.out.weight)
            return out
        gate, value = self.wide(x).chunk(2, dim=-1)
        return self.out(F.silu(gate) * value)


class _GeluMLP(torch.autograd.Function):
    """y = gelu(h) Bᵀ + c with h = x Aᵀ + b. With a gradient G of y: dh = (G B) ∘ gelu'(h), in the memory of G B."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, a: Tensor, b: Tensor | None, out: Tensor, c: Tensor | None, approximate: str
    ) -> Tensor:
        h = onednn_linear(x, a, b)
        activated = F.gelu(h, approximate=approximate)
        ctx.save_for_backward(x, a, out, h, activated)
        ctx.approximate = approximate
        return onednn_linear(activated, out, c)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, a, out, h, activated = ctx.saved_tensors
        needs_x, needs_a, needs_b, needs_out, needs_c, _ = ctx.needs_input_grad
        dout, dc = weight_gradients(grad, activated, needs_out, needs_c)
        dh = onednn_linear(grad, out.t())
        torch.ops.aten.gelu_backward.grad_input(dh, h, approximate=ctx.approximate, grad_input=dh)
        dx = onednn_linear(dh, a.t()) if needs_x else None
        return dx, *weight_gradients(dh, x, needs_a, needs_b), dout, dc, None


class _SwiGLU(torch.autograd.Function):
    """y = (silu(g)∘v) Bᵀ with (g, v) = x Aᵀ. With a gradient G of y and D = GB: dg = D∘v∘silu'(g), dv = D∘silu(g)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, a: Tensor, out: Tensor) -> Tensor:
        hidden = onednn_linear(x, a)
        gate, value = hidden.chunk(2, dim=-1)
        activated = F.silu(gate)
        ctx.save_for_backward(x, a, out, hidden, activated)
        return onednn_linear(activated * value, out)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, a, out, hidden, activated = ctx.saved_tensors
        needs_x, needs_a, needs_out = ctx.needs_input_grad
        gate, value = hidden.chunk(2, dim=-1)
        dout, _ = weight_gradients(grad, activated * value, needs_out, False)
        dproduct = onednn_linear(grad, out.t())
        dhidden = torch.empty_like(hidden)
        dgate, dvalue = dhidden.chunk(2, dim=-1)
        torch.mul(dproduct, activated, out=dvalue)
        torch.ops.aten.silu_backward.grad_input(dproduct.mul_(value), gate, grad_input=dgate)
        dx = onednn_linear(dhidden, a.t()) if needs_x else None
        return dx, weight_gradients(dhidden, x, needs_a, False)[0], dout
