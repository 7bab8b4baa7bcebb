"""The optimizers: AdamW, or Muon for the matrices inside blocks and AdamW for the rest."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import torch
from torch import Tensor

from qkv.train.settings import Settings


class Optimizers:
    """Optimizers of different weights that step together, with one list of groups and one state for each weight."""

    def __init__(self, *parts: torch.optim.Optimizer) -> None:
        self.parts = parts
        self.param_groups: list[dict[str, Any]] = [group for part in parts for group in part.param_groups]
        self.state: defaultdict[Tensor, Any] = defaultdict(dict)
        for part in parts:
            part.state = self.state

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for part in self.parts:
            part.zero_grad(set_to_none=True)

    def step(self) -> None:
        """Change every weight by its own optimizer."""
        for part in self.parts:
            part.step()


def chosen(names: dict[Tensor, str], settings: Settings) -> Optimizers:
    """What the settings ask for, for weights by name. Only matrices decay.

    Muon takes the nearest orthogonal matrix to its momentum for a step, so that a direction which few examples ask
    for gets as much of it as one that many do: on facts that are seen a hundred times, that is what AdamW lacks. An
    embedding is a table, not a map, so it stays with AdamW. Muon's steps are scaled to AdamW's root mean square, so
    that one learning rate serves both.
    """
    inner = [p for p, name in names.items() if settings.optimizer == "muon" and inside(name, p)]
    mine = set(inner)
    rest = [p for p in names if p not in mine]
    groups = [
        {"params": [p for p in rest if p.dim() >= 2], "weight_decay": settings.decay},
        {"params": [p for p in rest if p.dim() < 2], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    parts: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(groups, lr=settings.lr, betas=(0.9, settings.beta2), fused=True)
    ]
    if inner:
        parts.append(
            torch.optim.Muon(
                inner, lr=settings.lr, weight_decay=settings.decay, momentum=0.95, adjust_lr_fn="match_rms_adamw"
            )
        )
    return Optimizers(*parts)


def inside(name: str, weight: Tensor) -> bool:
    """Whether a weight is a matrix that maps one hidden vector to another."""
    return name.startswith("blocks.") and weight.dim() == 2
