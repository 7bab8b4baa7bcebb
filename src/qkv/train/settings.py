"""Training settings: schedule, optimizer, objective and bookkeeping; the help of each field is that of its option."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, TypedDict

from qkv.errors import QkvError
from qkv.model.config import MAX_INTEGER, dataclass_from_fields, option, shortened

PRECISIONS = ("float32", "bfloat16")
PARALLEL = ("ddp", "fsdp")
OPTIMIZERS = ("adamw", "muon")
UPPER_BOUNDS = {
    **dict.fromkeys(("steps", "min_warmup_steps", "validate_every", "log_every", "checkpoint_every"), 10**12),
    "batch_size": 10**6,
    "grad_accum": 10**6,
    "threads": 1024,
    "seed": MAX_INTEGER - 1,
}
CLOZE = "cloze"
"""The objective that needs texts about one entity each, and takes questions; see qkv.train.data.cloze."""


class TrainChanges(TypedDict, total=False):
    """Fields of TrainSettings, each optional: the types of `finetune(..., **changes)`."""

    steps: int
    batch_size: int
    grad_accum: int
    objective: str
    optimizer: str
    lr: float
    warmup_ratio: float
    min_warmup_steps: int
    min_lr_ratio: float
    weight_decay: float
    beta2: float
    grad_clip: float
    seed: int
    val_fraction: float
    validate_every: int
    log_every: int
    checkpoint_every: int
    precision: str
    compile: bool
    tensorboard: bool
    question_fraction: float
    relevant_span_fraction: float
    no_context_fraction: float
    predict_title_fraction: float
    threads: int
    parallel: str


@dataclass(frozen=True)
class TrainSettings:
    """Schedule, optimizer, objective and bookkeeping of a run. Frozen; use `dataclasses.replace` to change fields.

    Attributes:
        steps: Steps of the optimizer.
        batch_size: Examples in each step, over all processes.
        grad_accum: Micro-batches per step and process, to save memory.
        objective: Pretraining objective: `span`, `next`, `salient` or `cloze`.
        optimizer: `adamw`, or `muon` for the matrices inside blocks and AdamW for the rest.
        lr: Peak learning rate.
        warmup_ratio: Fraction of the steps with linear warm-up.
        min_warmup_steps: Least number of warm-up steps, but at most a third of all steps.
        min_lr_ratio: Final learning rate as a fraction of the peak (cosine decay).
        weight_decay: Decoupled weight decay of matrices; vectors have none.
        beta2: AdamW's decay rate of the second moment.
        grad_clip: Largest norm of the gradient; 0 for no clipping.
        seed: Seed of initial weights, data order, corruption and dropout.
        val_fraction: Fraction of the examples held out for the validation loss.
        validate_every: Steps between validation losses.
        log_every: Steps between lines of the log.
        checkpoint_every: Steps between checkpoints.
        precision: `float32`, or `bfloat16` autocast.
        compile: Compile norms and MLPs with torch.compile.
        tensorboard: Write TensorBoard events into the run's folder as well.
        question_fraction: Fraction of a cloze batch that is questions, if there are any.
        relevant_span_fraction: Fraction of cloze examples whose span is one that the questions ask for, of texts that
            say it for sure.
        no_context_fraction: Fraction of those that show the title and no context.
        predict_title_fraction: Fraction of cloze examples whose title is predicted too.
        threads: Threads of a process; 0 for torch's own number.
        parallel: How several processes share the work: `ddp` or `fsdp`.

    Raises:
        QkvError: If a value is outside its range.

    Example:
        >>> import qkv
        >>> settings = qkv.train.TrainSettings(steps=100, lr=1e-2, warmup_ratio=0.1)
        >>> [round(settings.learning_rate(step), 4) for step in (0, 9, 55, 99)]
        [0.001, 0.01, 0.0055, 0.001]
    """

    steps: int = option(1000, "Steps of the optimizer.")
    batch_size: int = option(64, "Examples in each step, over all processes.")
    grad_accum: int = option(1, "Micro-batches per step and process, to save memory.")
    objective: str = option("span", "Pretraining objective: span, next, salient or cloze.")
    optimizer: str = option("adamw", "adamw, or muon for matrices inside blocks and adamw for the rest.")
    lr: float = option(1e-3, "Peak learning rate.")
    warmup_ratio: float = option(0.05, "Fraction of the steps with linear warm-up.")
    min_warmup_steps: int = option(0, "Least number of warm-up steps, but at most a third of all steps.")
    min_lr_ratio: float = option(0.1, "Final learning rate as a fraction of the peak (cosine decay).")
    weight_decay: float = option(0.1, "Weight decay of matrices; vectors have none.")
    beta2: float = option(0.95, "AdamW's decay rate of the second moment.")
    grad_clip: float = option(1.0, "Largest norm of the gradient; 0 for no clipping.")
    seed: int = option(0, "Seed of initial weights, data order, corruption and dropout.")
    val_fraction: float = option(0.02, "Fraction of the examples held out for the validation loss.")
    validate_every: int = option(200, "Steps between validation losses.")
    log_every: int = option(10, "Steps between lines of the log.")
    checkpoint_every: int = option(200, "Steps between checkpoints.")
    precision: str = option("float32", f"Precision of matrix products: {' or '.join(PRECISIONS)}.")
    compile: bool = option(False, "Compile norms and MLPs with torch.compile.")
    tensorboard: bool = option(False, "Write TensorBoard events into the run's folder as well.")
    question_fraction: float = option(0.06, "Fraction of a cloze batch that is questions, if there are any.")
    relevant_span_fraction: float = option(
        0.85, "Fraction of cloze examples whose span is one that the questions ask for; the others ask for any span."
    )
    no_context_fraction: float = option(0.5, "Fraction of those that show the title and no context.")
    predict_title_fraction: float = option(
        0.0, "Fraction of cloze examples whose title is predicted too: the model can then tell names that it has read."
    )
    threads: int = option(0, "Threads of a process; 0 for torch's own number.")
    parallel: str = option("ddp", f"How several processes share the work: {' or '.join(PARALLEL)}.")

    def __post_init__(self) -> None:
        lower_bounds = {
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
        wrong = [
            f"{name} is {getattr(self, name)}, below {low}"
            for name, low in lower_bounds.items()
            if getattr(self, name) < low
        ]
        wrong += [
            f"{name} is {shortened(getattr(self, name))}, and {most} is the limit"
            for name, most in UPPER_BOUNDS.items()
            if getattr(self, name) > most
        ]
        below_one = ("warmup_ratio", "min_lr_ratio", "val_fraction", "beta2")
        wrong += [
            f"{name} is {getattr(self, name)}, not in [0, 1)" for name in below_one if not 0 <= getattr(self, name) < 1
        ]
        wrong += [
            f"{name} is {getattr(self, name)}, not in [0, 1]"
            for name in ("question_fraction", "relevant_span_fraction", "no_context_fraction", "predict_title_fraction")
            if not 0 <= getattr(self, name) <= 1
        ]
        if not 0 < self.lr < math.inf:
            wrong.append(f"lr is {self.lr}, not above 0")
        wrong += [
            f"{name} is {getattr(self, name)}, not 0 or more"
            for name in ("weight_decay", "grad_clip")
            if not 0 <= getattr(self, name) < math.inf
        ]
        if self.precision not in PRECISIONS:
            wrong.append(f"precision is {self.precision!r}, not {' or '.join(PRECISIONS)}")
        if self.parallel not in PARALLEL:
            wrong.append(f"parallel is {self.parallel!r}, not {' or '.join(PARALLEL)}")
        if self.optimizer not in OPTIMIZERS:
            wrong.append(f"optimizer is {self.optimizer!r}, not {' or '.join(OPTIMIZERS)}")
        if self.optimizer == "muon" and self.parallel == "fsdp":
            wrong.append("optimizer muon needs whole matrices, and parallel fsdp shards them")
        if wrong:
            raise QkvError("setting up training", "; ".join(wrong), "Change these settings")

    @property
    def warmup_steps(self) -> int:
        """Steps over which the learning rate rises linearly."""
        return max(1, round(self.warmup_ratio * self.steps), min(self.min_warmup_steps, self.steps // 3))

    def learning_rate(self, step: int) -> float:
        """Learning rate of a step (counted from 0): linear warm-up, then cosine decay to `min_lr_ratio * lr`."""
        warmup = self.warmup_steps
        if step < warmup:
            return self.lr * (step + 1) / warmup
        progress = (step - warmup) / max(1, self.steps - warmup)
        return self.lr * (self.min_lr_ratio + (1 - self.min_lr_ratio) * 0.5 * (1 + math.cos(math.pi * progress)))

    def to_json(self) -> dict[str, Any]:
        """The fields by name."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TrainSettings:
        """Settings from their fields; unknown fields are refused."""
        return dataclass_from_fields(cls, data, "reading the settings of a run")
