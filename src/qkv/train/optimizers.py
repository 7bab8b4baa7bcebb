"""Optimizers: AdamW, or Muon for the matrices inside blocks and AdamW for the rest."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import Any

import torch
from torch import Tensor

from qkv.core.cpu_features import works_with_amx
from qkv.train.settings import TrainSettings

MUON_MOMENTUM = 0.95
FLOAT32_ROWS = 64  # rows of matrices up to which bfloat16 saves no time even where it is fast


class Optimizers:
    """Several optimizers that step together, with one list of parameter groups and one state per weight."""

    def __init__(self, *parts: torch.optim.Optimizer) -> None:
        self.parts = parts
        self.param_groups: list[dict[str, Any]] = [group for part in parts for group in part.param_groups]
        self.state: defaultdict[Tensor, Any] = defaultdict(dict)
        for part in parts:
            part.state = self.state

    def zero_grad(self) -> None:
        """Drop all gradients."""
        for part in self.parts:
            part.zero_grad(set_to_none=True)

    def step(self) -> None:
        """Step every optimizer."""
        for part in self.parts:
            part.step()


class Muon(torch.optim.Optimizer):
    """Muon: Nesterov momentum, orthogonalised, so that all singular directions get steps of about the same size.

    Jordan's method, scaled so that a step has the root mean square of one of AdamW's, whose learning rate it can
    share. torch.optim.Muon takes the same steps; this one stacks all matrices of a shape and keeps small ones in
    float32, which takes a fourth of its time on a CPU.
    """

    def __init__(self, weights: list[Tensor], lr: float, weight_decay: float) -> None:
        super().__init__(weights, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One step of every matrix that has a gradient."""
        for group in self.param_groups:
            shapes: defaultdict[torch.Size, list[Tensor]] = defaultdict(list)
            for p in group["params"]:
                if p.grad is not None:
                    shapes[p.shape].append(p)
            for shape, weights in shapes.items():
                steps = orthogonalised(torch.stack([self._momentum(p) for p in weights])).unbind()
                torch._foreach_mul_(weights, 1 - group["lr"] * group["weight_decay"])
                torch._foreach_add_(weights, steps, alpha=-group["lr"] * 0.2 * max(shape) ** 0.5)

    def _momentum(self, p: Tensor) -> Tensor:
        assert p.grad is not None
        state = self.state[p]
        if not state:
            state["momentum"] = torch.zeros_like(p)
        state["momentum"].lerp_(p.grad, 1 - MUON_MOMENTUM)
        return p.grad.lerp(state["momentum"], MUON_MOMENTUM)


def orthogonalised(matrices: Tensor) -> Tensor:
    """About U Vᵀ for matrices U S Vᵀ (n, a, b): five times X ← 3.4445 X - 4.775 (XXᵀ)X + 2.0315 (XXᵀ)²X.

    On singular values between 0 and 1 that polynomial rises steeply and then stays between about 0.7 and 1.2.
    """
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = x.bfloat16() if x.shape[1] > FLOAT32_ROWS and (x.is_cuda or has_fast_bfloat16()) else x
    x = x / x.flatten(1).norm(dim=1).clamp(min=1e-7)[:, None, None]
    for _ in range(5):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=-4.775, alpha=2.0315), x, beta=3.4445)
    return (x.mT if tall else x).to(matrices.dtype)


@cache
def has_fast_bfloat16() -> bool:
    """Whether the CPU multiplies matrices faster in bfloat16 than in float32: with AMX only."""
    return works_with_amx()


def make_optimizer(names: dict[Tensor, str], settings: TrainSettings) -> Optimizers:
    """The optimizer that the settings name, for weights with their names. Only matrices have weight decay.

    An embedding is a table rather than a map from one hidden vector to another, so that AdamW trains it.
    """
    muon = [p for p, name in names.items() if settings.optimizer == "muon" and is_hidden_matrix(name, p)]
    with_muon = set(muon)
    rest = [p for p in names if p not in with_muon]
    groups = [
        {"params": [p for p in rest if p.dim() >= 2], "weight_decay": settings.weight_decay},
        {"params": [p for p in rest if p.dim() < 2], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    parts: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(groups, lr=settings.lr, betas=(0.9, settings.beta2), fused=True)
    ]
    if muon:
        parts.append(Muon(muon, settings.lr, settings.weight_decay))
    return Optimizers(*parts)


def is_hidden_matrix(name: str, weight: Tensor) -> bool:
    """Whether a weight is a matrix that maps one hidden vector to another."""
    return name.startswith("blocks.") and weight.dim() == 2
