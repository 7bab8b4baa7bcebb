"""How far can the badge be believed? Models that read of 600 people, some oftener than others, over five seeds."""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from qkv.knowledge import biographies, questions, trust
from qkv.knowledge.intervals import over_seeds
from qkv.knowledge.studies.experiment import Cell, work
from qkv.knowledge.studies.setup import StudySetup, drilled, people
from qkv.train.recipes import RECIPES

SPLITS = 3  # ways to choose whom the badge is fitted on and whom it is measured on; each seed's figure is their mean
OFTEN = (1, 2, 4, 8)  # biographies of a person: some are read of often, and some so rarely that answers go wrong
EPOCHS = 24  # times that every biography is drilled
RECIPE = RECIPES["cloze"].finetuning.settings  # whose share of names, and whose rise of the learning rate
BARS = {"seen": 0.95, "right": 0.85, "precision": 0.95, "coverage": 0.70}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="160 people, one seed: says little")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--people", type=int, default=600)
    parser.add_argument("--out", type=Path, help="folder for the seeds' results; a benchmark that was stopped goes on")
    options = parser.parse_args()
    school = StudySetup(
        people=160 if options.quick else options.people,
        named=RECIPE.predict_title_fraction,
        rise=RECIPE.min_warmup_steps,
    )
    epochs, seeds = (EPOCHS, 1) if options.quick else (EPOCHS, options.seeds)
    with tempfile.TemporaryDirectory() as folder:
        cells = [
            Cell(
                f"seed-{seed}",
                {**asdict(school), "epochs": epochs, "splits": SPLITS, "seed": seed},
                partial(measure, school, epochs, seed),
            )
            for seed in range(seeds)
        ]
        began = time.perf_counter()
        results = list(work(options.out or folder, cells).values())
    print(f"{'':>8} {'seen':>7} {'right':>7} {'precise':>8} {'covers':>7} {'knows':>7} {'ECE':>7}")
    for seed, row in enumerate(results):
        cells_ = (row["seen"], row["right"], row["precision"], row["coverage"], row["accuracy"], row["ece"])
        print(f"seed {seed:>3} " + " ".join(f"{v:>7.3f}" for v in cells_))
    figures: dict[str, Any] = {
        "seeds": seeds,
        "people": school.people,
        "seconds": round(time.perf_counter() - began, 1),
    }
    for name in (*BARS, "accuracy", "ece"):
        known = [row[name] for row in results if not math.isnan(row[name])]  # none where all answers were right
        mean, *interval = map(rounded, over_seeds(known)) if known else (None,)
        figures[name] = {"mean": mean, "interval": interval if len(known) > 1 else None, "seeds": len(known)}
    for name in ("remembered", "invented"):
        figures[name] = {kind: sum(row["counts"][name][kind] for row in results) for kind in results[0]["counts"][name]}
    figures["signals"] = {
        s: {k: rounded(mean_of([r["signals"][s][k] for r in results])) for k in ("seen", "right")}
        for s in results[0]["signals"]
    }
    figures["holds"] = {name: (figures[name]["mean"] or 0.0) >= bar for name, bar in BARS.items()}
    print(json.dumps(figures))


def measure(school: StudySetup, epochs: int, seed: int, folder: Path) -> dict[str, Any]:
    """Teach one model; fit its badge on two thirds of the people that no question was about, measure it on the rest."""
    facts, strangers = people(school.people, seed)
    trained, held = facts.split(0.5, seed)
    often = np.random.default_rng((seed, 41)).choice(OFTEN, size=len(facts)).tolist()
    texts = biographies(facts, 4, order="permuted", exposures=often, title=True, seed=seed).texts
    run = drilled(folder / "run", texts, list(questions(trained)), school, seed, examples=epochs * len(texts))
    unknown = questions(strangers.sample(len(held), seed))
    found = [
        trust(run, questions(held), unknown, calibration=2 / 3, seed=SPLITS * seed + split, save=False)
        for split in range(SPLITS)
    ]
    said = [sum(each.counts["remembered"][kind] for kind in ("right", "wrong", "unknown")) for each in found]
    invented = [sum(each.counts[word]["invented"] for word in each.counts) for each in found]
    believed = [each.counts["remembered"]["invented"] for each in found]
    good = sum(round(each.precision * n) for each, n in zip(found, said, strict=True))
    figures = {
        "seen": [each.measured("badge").seen for each in found],
        "right": [number(each.measured("badge").right) for each in found],
        "precision": [each.precision for each in found],
        "coverage": [each.coverage for each in found],
        "accuracy": [each.accuracy for each in found],
        "ece": [each.ece for each in found],
    }
    signals = {
        m.signal: {
            "seen": float(np.mean([each.measured(m.signal).seen for each in found])),
            "right": mean_of([number(each.measured(m.signal).right) for each in found]),
        }
        for m in found[0].signals
    }
    means = {name: mean_of(values) for name, values in figures.items()}
    counts = {
        "remembered": {"right": good, "of": sum(said)},
        "invented": {"called remembered": sum(believed), "of": sum(invented)},
    }
    return {**means, "counts": counts, "signals": signals}


def number(value: float | None) -> float:
    """No figure, where all answers were right, is not a number."""
    return float("nan") if value is None else value


def mean_of(values: Sequence[float]) -> float:
    """The mean of those that are numbers, if there are any."""
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def rounded(value: float) -> float | None:
    """As JSON wants it: what is not a number is null."""
    return None if math.isnan(value) else round(value, 4)


if __name__ == "__main__":
    main()
