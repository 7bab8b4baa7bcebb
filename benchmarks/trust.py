"""Precision and coverage of the badge: models trained on 600 people, with 1 to 8 biographies each, over five seeds."""

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
from qkv.knowledge.intervals import mean_interval
from qkv.knowledge.studies.experiment import Cell, run_cells
from qkv.knowledge.studies.setup import StudySetup, pretrain_cloze, sample_people
from qkv.train.recipes import RECIPES

SPLITS = 3  # random splits into people to fit on and people to measure on; the figure of a seed is their mean
BIOGRAPHIES = (1, 2, 4, 8)  # of a person, at random: with few of them, answers are often wrong
NO_LIMIT = 0.5  # half of the names outside may be called remembered: what the limit of 3 % costs
EPOCHS = 24  # cloze examples of each biography
RECIPE = RECIPES["cloze"].finetuning.settings  # for predict_title_fraction and min_warmup_steps
BARS = {"seen": 0.95, "right": 0.85, "precision": 0.95, "coverage": 0.70}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="160 people, one seed: says little")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--people", type=int, default=600)
    parser.add_argument("--out", type=Path, help="folder for the results of the seeds; a stopped benchmark continues")
    options = parser.parse_args()
    setup = StudySetup(
        people=160 if options.quick else options.people,
        predict_title_fraction=RECIPE.predict_title_fraction,
        min_warmup_steps=RECIPE.min_warmup_steps,
    )
    epochs, seeds = (EPOCHS, 1) if options.quick else (EPOCHS, options.seeds)
    with tempfile.TemporaryDirectory() as folder:
        cells = [
            Cell(
                f"seed-{seed}",
                {**asdict(setup), "epochs": epochs, "splits": SPLITS, "seed": seed},
                partial(measure, setup, epochs, seed),
            )
            for seed in range(seeds)
        ]
        began = time.perf_counter()
        results = list(run_cells(options.out or folder, "trust", cells).values())
    print(f"{'':>8} {'seen':>7} {'right':>7} {'precise':>8} {'covers':>7} {'knows':>7} {'ECE':>7}")
    for seed, row in enumerate(results):
        cells_ = (row["seen"], row["right"], row["precision"], row["coverage"], row["accuracy"], row["ece"])
        print(f"seed {seed:>3} " + " ".join(f"{v:>7.3f}" for v in cells_))
    figures: dict[str, Any] = {
        "seeds": seeds,
        "people": setup.people,
        "seconds": round(time.perf_counter() - began, 1),
    }
    for name in (*BARS, "accuracy", "ece"):
        known = [row[name] for row in results if not math.isnan(row[name])]  # none where all answers were right
        mean, *interval = map(rounded, mean_interval(known)) if known else (None,)
        figures[name] = {"mean": mean, "interval": interval if len(known) > 1 else None, "seeds": len(known)}
    for name in ("remembered", "invented"):
        figures[name] = {kind: sum(row["counts"][name][kind] for row in results) for kind in results[0]["counts"][name]}
    figures["without the limit of names outside"] = {
        name: rounded(mean_of([row["without_limit"][name] for row in results])) for name in ("precision", "coverage")
    } | {"invented called remembered": sum(row["without_limit"]["invented"] for row in results)}
    figures["features"] = {
        f: {k: rounded(mean_of([r["features"][f][k] for r in results])) for k in ("seen", "right")}
        for f in results[0]["features"]
    }
    figures["holds"] = {name: (figures[name]["mean"] or 0.0) >= bar for name, bar in BARS.items()}
    print(json.dumps(figures))


def measure(setup: StudySetup, epochs: int, seed: int, folder: Path) -> dict[str, Any]:
    """Train one model; fit its badge on two thirds of the people without training questions, measure it on the rest."""
    facts, others = sample_people(setup.people, seed)
    trained, held = facts.split(0.5, seed)
    exposures = np.random.default_rng((seed, 41)).choice(BIOGRAPHIES, size=len(facts)).tolist()
    texts = biographies(facts, 4, order="permuted", exposures=exposures, title=True, seed=seed).texts
    run = pretrain_cloze(folder / "run", texts, list(questions(trained)), setup, seed, examples=epochs * len(texts))
    unknown = questions(others.sample(len(held), seed))
    found = [
        trust(run, questions(held), unknown, calibration=2 / 3, seed=SPLITS * seed + split, save=False)
        for split in range(SPLITS)
    ]
    free = [
        trust(
            run, questions(held), unknown, calibration=2 / 3, max_outside=NO_LIMIT, seed=SPLITS * seed + s, save=False
        )
        for s in range(SPLITS)
    ]
    n_remembered = [sum(each.counts["remembered"][kind] for kind in ("right", "wrong", "unknown")) for each in found]
    invented = [sum(each.counts[word]["invented"] for word in each.counts) for each in found]
    invented_remembered = [each.counts["remembered"]["invented"] for each in found]
    n_right = sum(round(each.precision * n) for each, n in zip(found, n_remembered, strict=True))
    figures = {
        "seen": [each.quality("badge").auroc_seen for each in found],
        "right": [number(each.quality("badge").auroc_right) for each in found],
        "precision": [each.precision for each in found],
        "coverage": [each.coverage for each in found],
        "accuracy": [each.accuracy for each in found],
        "ece": [each.ece for each in found],
    }
    features = {
        name: {
            "seen": float(np.mean([each.quality(name).auroc_seen for each in found])),
            "right": mean_of([number(each.quality(name).auroc_right) for each in found]),
        }
        for name in (quality.feature for quality in found[0].features)
    }
    means = {name: mean_of(values) for name, values in figures.items()}
    counts = {
        "remembered": {"right": n_right, "of": sum(n_remembered)},
        "invented": {"called remembered": sum(invented_remembered), "of": sum(invented)},
    }
    without_limit = {
        "precision": mean_of([each.precision for each in free]),
        "coverage": mean_of([each.coverage for each in free]),
        "invented": sum(each.counts["remembered"]["invented"] for each in free),
    }
    return {**means, "counts": counts, "features": features, "without_limit": without_limit}


def number(value: float | None) -> float:
    """NaN for None, which stands where all answers were right."""
    return float("nan") if value is None else value


def mean_of(values: Sequence[float]) -> float:
    """The mean without NaN; NaN if there is nothing else."""
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def rounded(value: float) -> float | None:
    """Rounded for JSON; None for NaN."""
    return None if math.isnan(value) else round(value, 4)


if __name__ == "__main__":
    main()
