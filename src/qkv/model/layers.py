"""What stands around attention in a block: norms, dropout, picking rows; and compiling them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from qkv.model.config import ModelConfig
from qkv.model.mlp import MLP, SwiGLU


class RMSNorm(nn.Module):
    """Each vector divided by its root mean square, times a learned factor."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        exact = x.dtype == torch.float32 and not torch.is_grad_enabled()
        if x.dtype == torch.float64 or exact:
            # Llama's norm rounds to float32 whatever the model's precision is; to say what it says, in float64 as
            # well, a model has to round at the same place, by the same steps.
            y = x.float()
            y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.epsilon)
            return self.weight * y.to(x.dtype)
        plain = x.dtype == self.weight.dtype == torch.float32 and x.device.type == "cpu"
        if plain and not torch.compiler.is_compiling():
            return _RMSNorm.apply(x, self.weight, self.epsilon)
        return F.rms_norm(x, (x.shape[-1],), self.weight, self.epsilon)


class _RMSNorm(torch.autograd.Function):
    """y = w∘n with n = r x and r = (|x|²/d + ε)^(-1/2), in fewer passes than torch's own on a CPU.

    With G a gradient of y and u = w∘G: dx = r (u - n (u·n)/d), dw = Σ G∘n.
    """

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        r = torch.linalg.vector_norm(x, dim=-1, keepdim=True).square_().div_(x.shape[-1]).add_(epsilon).rsqrt_()
        n = x * r
        ctx.save_for_backward(n, r, weight)
        return n * weight

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        n, r, weight = ctx.saved_tensors  # type: ignore[attr-defined]
        u = grad * weight
        along = torch.linalg.vecdot(u, n)[..., None] / -n.shape[-1]
        return (u + n * along) * r, (grad * n).flatten(0, -2).sum(0), None


def norm(config: ModelConfig) -> nn.Module:
    """Llama's norm for rope, GPT-2's for the others."""
    if config.attention == "rope":
        return RMSNorm(config.d_model, config.norm_eps)
    return nn.LayerNorm(config.d_model, config.norm_eps, bias=config.bias)


def compile_parts(model: nn.Module) -> None:
    """Compile what works token by token, norms and MLPs, once for rows of any length.

    How sequences lie in a row is new in every batch, so compiled attention would be compiled at every step.
    """
    for part in model.modules():
        if isinstance(part, MLP | SwiGLU | RMSNorm | nn.LayerNorm):
            part.compile(dynamic=True)


def dropout(x: Tensor, rate: float) -> Tensor:
    """Each entry is dropped with a chance of `rate`, in 256ths, and the others grow to make up for it.

    On a CPU, eight bytes of one random integer decide eight entries: a tenth of the time that torch takes
    to draw a number for each.
    """
    if rate == 0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, rate)
    dropped = max(1, round(rate * 256))
    integers = torch.empty(-(-x.numel() // 8), dtype=torch.int64).random_(-(2**63), None)
    kept = integers.view(torch.uint8)[: x.numel()].view(x.shape) >= dropped
    return _Dropped.apply(x, kept, 256 / (256 - dropped))


class _Dropped(torch.autograd.Function):
    """x · kept · scale; only the bytes of `kept` are stored for the way back."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor, kept: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(kept)
        ctx.scale = scale  # type: ignore[attr-defined]
        return kept.to(x.dtype).mul_(scale).mul_(x)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, grad: Tensor) -> tuple[Tensor, None, None]:
        (kept,) = ctx.saved_tensors  # type: ignore[attr-defined]
        return kept.to(grad.dtype).mul_(ctx.scale).mul_(grad), None, None  # type: ignore[attr-defined]


def picked(x: Tensor, rows: Tensor | None) -> Tensor:
    """x[rows] for rows that differ: the way back then copies, where torch's has to add. Without rows, all of x."""
    return x if rows is None else _Picked.apply(x, rows)


class _Picked(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.shape = x.shape  # type: ignore[attr-defined]
        return x.index_select(0, rows)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, grad: Tensor) -> tuple[Tensor, None]:
        (rows,) = ctx.saved_tensors  # type: ignore[attr-defined]
        return grad.new_zeros(ctx.shape).index_copy_(0, rows, grad), None  # type: ignore[attr-defined]
