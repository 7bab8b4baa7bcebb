"""How to train: each field says once what it means, and that is the help of its option."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from qkv.errors import QkvError
from qkv.model.config import from_fields, option

PRECISIONS = ("float32", "bfloat16")
PARALLEL = ("ddp", "fsdp")
OPTIMIZERS = ("adamw", "muon")


@dataclass(frozen=True)
class TrainSettings:
    """The schedule, the optimizer and the bookkeeping of a run."""

    steps: int = option(1000, "Steps of the optimizer.")
    batch_size: int = option(64, "Examples in each step, over all processes.")
    grad_accum: int = option(1, "Parts in which each process works through its share of a step, to save memory.")
    objective: str = option("span", "Pretraining objective: span, next, salient or drill.")
    optimizer: str = option("adamw", "adamw, or muon for matrices inside blocks and adamw for the rest.")
    lr: float = option(1e-3, "Highest learning rate.")
    warmup_ratio: float = option(0.05, "Share of the steps over which the learning rate rises.")
    min_warmup_steps: int = option(0, "Steps over which it rises at the least, if there are three times as many.")
    min_lr_ratio: float = option(0.1, "Share of the learning rate that the cosine ends at.")
    weight_decay: float = option(0.1, "Weight decay of matrices; vectors have none.")
    beta2: float = option(0.95, "AdamW's memory of squared gradients.")
    grad_clip: float = option(1.0, "Norm that gradients are clipped to; 0 for none.")
    seed: int = option(0, "Seed of weights, order, corruption and dropout.")
    val_fraction: float = option(0.02, "Share of the examples kept back for the validation loss.")
    validate_every: int = option(200, "Steps between validation losses.")
    log_every: int = option(10, "Steps between lines of the log.")
    checkpoint_every: int = option(200, "Steps between checkpoints.")
    precision: str = option("float32", f"Precision of products: {', '.join(PRECISIONS)}.")
    compile: bool = option(False, "Compile norms and MLPs with torch.compile.")
    tensorboard: bool = option(False, "Write logs for TensorBoard too, into the run's folder.")
    question_fraction: float = option(0.06, "Share of a batch of drills that is questions, where there are some.")
    relevant_span_fraction: float = option(
        0.85, "Share of drills that ask for what the questions ask for; the others ask for anything."
    )
    no_context_fraction: float = option(0.5, "Share of those drills that give the title and no context at all.")
    predict_title_fraction: float = option(
        0.0, "Share of drills that ask for their title too: to tell later whose names were read."
    )
    threads: int = option(0, "Threads of a process; 0 for as many as torch likes.")
    parallel: str = option("ddp", f"How several processes share the work: {' or '.join(PARALLEL)}.")

    def __post_init__(self) -> None:
        least = {
            "steps": 1,
            "batch_size": 1,
            "grad_accum": 1,
            "seed": 0,
            "threads": 0,
            "min_warmup_steps": 0,
            "validate_every": 1,
            "log_every": 1,
            "checkpoint_every": 1,
        }
        wrong = [f"{name} is {getattr(self, name)}" for name, low in least.items() if getattr(self, name) < low]
        shares = ("warmup_ratio", "min_lr_ratio", "val_fraction", "beta2")
        wrong += [f"{name} is {getattr(self, name)}" for name in shares if not 0 <= getattr(self, name) < 1]
        wrong += [
            f"{name} is {getattr(self, name)}"
            for name in ("question_fraction", "relevant_span_fraction", "no_context_fraction", "predict_title_fraction")
            if not 0 <= getattr(self, name) <= 1
        ]
        if not (0 < self.lr < math.inf and 0 <= self.weight_decay < math.inf and 0 <= self.grad_clip < math.inf):
            wrong.append(f"lr, weight_decay and grad_clip are {self.lr}, {self.weight_decay} and {self.grad_clip}")
        if self.precision not in PRECISIONS:
            wrong.append(f"precision is {self.precision!r}, not {', '.join(PRECISIONS)}")
        if self.parallel not in PARALLEL:
            wrong.append(f"parallel is {self.parallel!r}, not {' or '.join(PARALLEL)}")
        if self.optimizer not in OPTIMIZERS:
            wrong.append(f"optimizer is {self.optimizer!r}, not {' or '.join(OPTIMIZERS)}")
        if self.optimizer == "muon" and self.parallel == "fsdp":
            wrong.append("optimizer muon needs whole matrices, and parallel fsdp cuts them up")
        if wrong:
            raise QkvError("setting up training", "; ".join(wrong), "Change these settings")

    def rate(self, step: int) -> float:
        """The learning rate of a step: a rise, then half a cosine down to the floor."""
        rise = max(1, round(self.warmup_ratio * self.steps), min(self.min_warmup_steps, self.steps // 3))
        if step < rise:
            return self.lr * (step + 1) / rise
        done = (step - rise) / max(1, self.steps - rise)
        return self.lr * (self.min_lr_ratio + (1 - self.min_lr_ratio) * 0.5 * (1 + math.cos(math.pi * done)))

    def to_json(self) -> dict[str, Any]:
        """The fields by name."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TrainSettings:
        """Settings from their fields; unknown ones are refused."""
        return from_fields(cls, data, "reading the settings of a run")
