"""Study "capacity": bits of knowledge per parameter by exposures and model size (Allen-Zhu and Li, part 3.3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

from qkv.knowledge.intervals import mean_interval
from qkv.knowledge.studies.experiment import Cell, CellCallback, Row, Study, run_cells
from qkv.knowledge.studies.study_files import save_study
from qkv.knowledge.training.mixed_run import create_or_check, train_run
from qkv.model.config import ModelConfig
from qkv.model.packed_sequences import PackedLayout
from qkv.train.data.objectives import Example, unchanged
from qkv.train.data.packing import batches
from qkv.train.runs import Run
from qkv.train.settings import TrainSettings
from qkv.train.tokenizers import Numbers

N_VALUES, N_TRAITS = 64, 10
"""Values of each trait, which is also the number of first names; traits of each person."""
LENGTH = 2 + N_TRAITS  # tokens that are predicted: first name, surname, values
EXPOSURES = (25, 50, 100, 200)
REPORTED_EXPOSURES = 100


@dataclass(frozen=True)
class Scale:
    """A model and the number of people to learn, whose facts hold somewhat more bits than the model may."""

    d_model: int
    people: int
    surnames: int
    n_layer: int = 2
    batch_size: int = 16
    lr: float = 8e-3


SCALES = (Scale(24, 1024, 512), Scale(32, 1600, 600))


def study(
    out: str | Path, seeds: int = 1, minutes: float = math.inf, people: int = 0, callback: CellCallback | None = None
) -> Study:
    """Bits per parameter by model size and exposures; `people` leaves out the sizes for more people than that."""
    scales = [s for s in SCALES if not people or s.people <= people]
    scales = scales or [Scale(16, people, people, batch_size=4, lr=5e-3)]
    cells = [
        Cell(
            _cell_name(s, e, seed), {**asdict(s), "exposures": e, "seed": seed}, partial(measure, s, e, seed), ("run",)
        )
        for e in EXPOSURES
        for s in scales
        for seed in range(seeds)
    ]
    results = run_cells(out, "capacity", cells, minutes, callback)
    rows = []
    for s in scales:
        for e in EXPOSURES:
            own = [results[n] for seed in range(seeds) if (n := _cell_name(s, e, seed)) in results]
            if own:
                mean, low, high = mean_interval([r["bits_per_parameter"] for r in own])
                interval = {"interval": (low, high)} if len(own) > 1 else {}
                rows.append(
                    {
                        "parameters": own[0]["parameters"],
                        "people": s.people,
                        "exposures": e,
                        "bits_per_parameter": mean,
                        **interval,
                        "share_of_bits": float(np.mean([r["share"] for r in own])),
                    }
                )
    best = max((r["bits_per_parameter"] for r in rows if r["exposures"] == REPORTED_EXPOSURES), default=None)
    remarks = (
        ()
        if best is None
        else (f"At {REPORTED_EXPOSURES} exposures the best model holds {best:.2f} bits per parameter.",)
    )
    title = "Bits of knowledge per parameter"
    return save_study(out, Study("capacity", title, tuple(rows), remarks, len(results), len(cells)))


def measure(scale: Scale, exposures: int, seed: int, folder: Path) -> Row:
    """Train one model on people drawn at random, and compute the bits that it has learned."""
    people = random_people(scale.people, scale.surnames, seed)
    # Tied embeddings, rotary positions and no biases: few parameters that cannot hold facts.
    config = ModelConfig(
        "rope",
        scale.n_layer,
        2,
        d_model=scale.d_model,
        context_length=LENGTH,
        vocab_size=N_VALUES + 1 + scale.surnames,
    )
    settings = TrainSettings(
        steps=max(1, scale.people * exposures // scale.batch_size),
        batch_size=scale.batch_size,
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
    source = batches(*unchanged([Example(row) for row in people.tolist()]), LENGTH, scale.batch_size, seed)
    run = train_run(folder / "run", lambda run: source)
    name_loss, value_losses = losses(run, people)
    parameters = sum(p.numel() for p in run.model.parameters())
    n_names = N_VALUES * scale.surnames
    learned = bits(scale.people, n_names, name_loss, N_VALUES, value_losses)
    return {
        "parameters": parameters,
        "bits": learned,
        "bits_per_parameter": learned / parameters,
        "share": learned / bits(scale.people, n_names, math.log(scale.people), N_VALUES, [0.0] * N_TRAITS),
        "loss_name": name_loss,
        "loss_values": float(np.mean(value_losses)),
    }


def bits(people: int, names: int, name_loss: float, values: int, value_losses: Sequence[float]) -> float:
    """Bits learned by a model, from its losses: N·log₂(N₀/e^p₁) + N·Σ_k log₂(D/e^p₂ₖ).

    N people have names drawn from N₀ and, for each trait k, one of D values; p₁ and p₂ₖ are mean losses in nats. A term
    below 0 (worse than guessing) counts as 0. A model that knows all names cannot know which comes next: p₁ = log N.
    """
    name = max(0.0, math.log2(names) - name_loss / math.log(2))
    traits = sum(max(0.0, math.log2(values) - loss / math.log(2)) for loss in value_losses)
    return people * (name + traits)


def random_people(people: int, surnames: int, seed: int) -> np.ndarray:
    """People as rows of tokens: a start token, first name and surname (no two people alike), values; all uniform."""
    random = np.random.default_rng((seed, 20))
    names = random.choice(N_VALUES * surnames, size=people, replace=False)
    start = np.full(people, N_VALUES)
    values = random.integers(N_VALUES, size=(people, N_TRAITS))
    return np.column_stack((start, names % N_VALUES, N_VALUES + 1 + names // N_VALUES, values))


@torch.inference_mode()
def losses(run: Run, people: np.ndarray) -> tuple[float, list[float]]:
    """Mean loss in nats on a whole name, and on the value of each trait given everything before it."""
    found = []
    for part in torch.from_numpy(people).split(1024):
        logits = run.model(part[:, :-1].flatten(), PackedLayout([(len(part), LENGTH)])).view(len(part), LENGTH, -1)
        found.append(-logits.double().log_softmax(-1).gather(-1, part[:, 1:, None])[..., 0])
    loss = torch.cat(found).numpy()
    return float(loss[:, :2].sum(1).mean()), loss[:, 2:].mean(0).tolist()


def _cell_name(scale: Scale, exposures: int, seed: int) -> str:
    return f"d_model-{scale.d_model}-exposures-{exposures}-seed-{seed}"
