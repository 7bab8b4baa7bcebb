"""capacity: bits of knowledge per parameter, against exposures and size, by the formula of Allen-Zhu and Li (3.3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

from qkv.knowledge.intervals import over_seeds
from qkv.knowledge.studies.experiment import Cell, Row, Study, Watch, finish, work
from qkv.knowledge.training.mixed_run import create_or_check, train_run
from qkv.model.config import ModelConfig
from qkv.model.packed_sequences import PackedLayout
from qkv.train.data.objectives import Example, unchanged
from qkv.train.data.packing import batches
from qkv.train.runs import Run
from qkv.train.settings import TrainSettings
from qkv.train.tokenizers import Numbers

VALUES, TRAITS = 64, 10
LENGTH = 2 + TRAITS
EXPOSURES = (25, 50, 100, 200)


@dataclass(frozen=True)
class Scale:
    """A model, and how many people it has to learn: somewhat more bits than it may hold."""

    width: int
    people: int
    surnames: int
    layers: int = 2
    batch: int = 16
    lr: float = 8e-3


SCALES = (Scale(24, 1024, 512), Scale(32, 1600, 600))


def study(
    out: str | Path, seeds: int = 1, minutes: float = math.inf, count: int = 0, callback: Watch | None = None
) -> Study:
    """Bits per parameter by size and exposures; `count` keeps to the sizes for that many people at most."""
    scales = [s for s in SCALES if not count or s.people <= count] or [Scale(16, count, count, batch=4, lr=5e-3)]
    cells = [
        Cell(_name(s, e, seed), {**asdict(s), "exposures": e, "seed": seed}, partial(measure, s, e, seed))
        for e in EXPOSURES
        for s in scales
        for seed in range(seeds)
    ]
    results = work(out, cells, minutes, callback)
    rows = []
    for s in scales:
        for e in EXPOSURES:
            mine = [results[n] for seed in range(seeds) if (n := _name(s, e, seed)) in results]
            if mine:
                mean, low, high = over_seeds([r["bits_per_parameter"] for r in mine])
                interval = {"interval": (low, high)} if len(mine) > 1 else {}
                rows.append({
                    "parameters": mine[0]["parameters"], "people": s.people, "exposures": e,
                    "bits_per_parameter": mean, **interval, "share_of_bits": float(np.mean([r["share"] for r in mine])),
                })  # fmt: skip
    best = max((r["bits_per_parameter"] for r in rows if r["exposures"] == 100), default=None)
    remarks = () if best is None else (f"At 100 exposures the best model holds {best:.2f} bits per parameter.",)
    return finish(
        out, Study("capacity", "Bits of knowledge per parameter", tuple(rows), remarks, len(results), len(cells))
    )


def _name(scale: Scale, exposures: int, seed: int) -> str:
    return f"width-{scale.width}-exposures-{exposures}-seed-{seed}"


def measure(scale: Scale, exposures: int, seed: int, folder: Path) -> Row:
    """Train one model on people of its own, and count the bits that it has learned."""
    people = drawn(scale.people, scale.surnames, seed)
    steps = max(1, scale.people * exposures // scale.batch)
    # Tied, with rotary places and no biases: few parameters that hold no facts.
    config = ModelConfig(
        "rope", scale.layers, 2, d_model=scale.width, context_length=LENGTH, vocab_size=VALUES + 1 + scale.surnames
    )
    settings = TrainSettings(
        steps=steps,
        batch_size=scale.batch,
        objective="next",
        optimizer="muon",
        lr=scale.lr,
        min_lr_ratio=0.0,
        weight_decay=0.0,
        beta2=0.999,
        val_fraction=0.0,
        seed=seed,
        log_every=100,
        checkpoint_every=2000,
    )
    create_or_check(folder / "run", config, settings, f"capacity {scale} {seed}", Numbers(config.vocab_size))
    source = batches(*unchanged([Example(row) for row in people.tolist()]), LENGTH, scale.batch, seed)
    run = train_run(folder / "run", lambda run: source)
    names, values = losses(run, people)
    parameters = sum(p.numel() for p in run.model.parameters())
    names_in_all = VALUES * scale.surnames
    learned = bits(scale.people, names_in_all, names, VALUES, values)
    return {
        "parameters": parameters,
        "bits": learned,
        "bits_per_parameter": learned / parameters,
        "share": learned / bits(scale.people, names_in_all, math.log(scale.people), VALUES, [0.0] * TRAITS),
        "loss_name": names,
        "loss_values": float(np.mean(values)),
    }


def bits(people: int, names: int, name_loss: float, values: int, value_losses: Sequence[float]) -> float:
    """N·log₂(N₀/e^p₁) + N·Σ_k log₂(D/e^p₂ₖ): what the losses on names and values say that a model has learned.

    N people have names drawn from N₀, and for each trait k one of D values; p₁ and p₂ₖ are mean losses in nats. A name
    that is no better than guessed, or a trait, counts nothing, not less. A model that knows the names perfectly still
    cannot tell which comes next: p₁ = log N.
    """
    each = max(0.0, math.log2(names) - name_loss / math.log(2))
    traits = sum(max(0.0, math.log2(values) - loss / math.log(2)) for loss in value_losses)
    return people * (each + traits)


def drawn(people: int, surnames: int, seed: int) -> np.ndarray:
    """People as rows of tokens: a sign to begin with, first name and surname, no two alike, and values; all uniform."""
    random = np.random.default_rng((seed, 20))
    names = random.choice(VALUES * surnames, size=people, replace=False)
    begin_with = np.full(people, VALUES)
    values = random.integers(VALUES, size=(people, TRAITS))
    return np.column_stack((begin_with, names % VALUES, VALUES + 1 + names // VALUES, values))


@torch.inference_mode()
def losses(run: Run, people: np.ndarray) -> tuple[float, list[float]]:
    """The mean loss on a name, all of it, and on each trait's value after the name and the traits before it."""
    found = []
    for part in torch.from_numpy(people).split(1024):
        logits = run.model(part[:, :-1].flatten(), PackedLayout([(len(part), LENGTH)])).view(len(part), LENGTH, -1)
        found.append(-logits.double().log_softmax(-1).gather(-1, part[:, 1:, None])[..., 0])
    loss = torch.cat(found).numpy()
    return float(loss[:, :2].sum(1).mean()), loss[:, 2:].mean(0).tolist()
