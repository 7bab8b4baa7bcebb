"""The part of a block that thinks: GPT-2's MLP and Llama's, with a way back that writes over what it has read."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from qkv.model.config import ModelConfig
from qkv.model.linear import Linear, steady, times, weight_gradient


class MLP(nn.Module):
    """Widen, bend, narrow: GPT-2's."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.wide = Linear(config.d_model, config.d_ff_effective, config.bias)
        self.out = Linear(config.d_ff_effective, config.d_model, config.bias)
        self.shape = "tanh" if config.activation == "gelu_tanh" else "none"

    def forward(self, x: Tensor) -> Tensor:
        if steady(x, self.wide.weight):
            out: Tensor = _Bent.apply(x, self.wide.weight, self.wide.bias, self.out.weight, self.out.bias, self.shape)
            return out
        return self.out(F.gelu(self.wide(x), approximate=self.shape))


class SwiGLU(nn.Module):
    """Widen twice, let one gate the other, narrow: Llama's. Both widenings are one product."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.wide = Linear(config.d_model, 2 * config.d_ff_effective, bias=False)
        self.out = Linear(config.d_ff_effective, config.d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        if steady(x, self.wide.weight):
            out: Tensor = _Gated.apply(x, self.wide.weight, self.out.weight)
            return out
        gate, value = self.wide(x).chunk(2, dim=-1)
        return self.out(F.silu(gate) * value)


class _Bent(torch.autograd.Function):
    """y = gelu(h) Bᵀ + c with h = x Aᵀ + b. With a gradient G of y: dh = (G B) ∘ gelu'(h), in the place of G B."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, a: Tensor, b: Tensor | None, out: Tensor, c: Tensor | None, shape: str) -> Tensor:
        h = times(x, a, b)
        bent = F.gelu(h, approximate=shape)
        ctx.save_for_backward(x, a, out, h, bent)
        ctx.shape = shape
        return times(bent, out, c)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, a, out, h, bent = ctx.saved_tensors
        to_x, to_a, to_b, to_out, to_c, _ = ctx.needs_input_grad
        d_out, d_c = weight_gradient(grad, bent, to_out, to_c)
        dh = times(grad, out.t())
        torch.ops.aten.gelu_backward.grad_input(dh, h, approximate=ctx.shape, grad_input=dh)
        return times(dh, a.t()) if to_x else None, *weight_gradient(dh, x, to_a, to_b), d_out, d_c, None


class _Gated(torch.autograd.Function):
    """y = (silu(g)∘v) Bᵀ with (g, v) = x Aᵀ. With a gradient G of y and D = GB: dg = D∘v∘silu'(g), dv = D∘silu(g)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, a: Tensor, out: Tensor) -> Tensor:
        both = times(x, a)
        gate, value = both.chunk(2, dim=-1)
        open_ = F.silu(gate)
        ctx.save_for_backward(x, a, out, both, open_)
        return times(open_ * value, out)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, a, out, both, open_ = ctx.saved_tensors
        to_x, to_a, to_out = ctx.needs_input_grad
        gate, value = both.chunk(2, dim=-1)
        d_out, _ = weight_gradient(grad, open_ * value, to_out, False)
        inner = times(grad, out.t())
        back = torch.empty_like(both)
        to_gate, to_value = back.chunk(2, dim=-1)
        torch.mul(inner, open_, out=to_value)
        torch.ops.aten.silu_backward.grad_input(inner.mul_(value), gate, grad_input=to_gate)
        return times(back, a.t()) if to_x else None, weight_gradient(back, x, to_a, False)[0], d_out
