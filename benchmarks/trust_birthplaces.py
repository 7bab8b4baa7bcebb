"""The badge on the birthplace task: runs of the default recipe, some people held back, level, coverage and honesty.

    python benchmarks/trust_birthplaces.py --data FOLDER --seeds 0 1 2 3 4 --steps 1300 --held-back 500 --out RUNS

FOLDER holds wiki.txt, train.tsv and dev.tsv. So many questions of train.tsv, drawn once, are held back: no run is
trained on them. Each run is pretrained and finetuned for so many steps, on one thread. The badge is fitted on dev.tsv,
as many outsiders (people of the shipped table whose names are not in wiki.txt) and invented names, and measured by
trust_tasks.py inside these, on the people held back, and over splits. Runs that are there already are gone on with.
The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from pathlib import Path
from typing import Any

import trust_tasks

from qkv.knowledge.datasets.pantheon import pantheon
from qkv.knowledge.evaluation import evaluate
from qkv.train.runs import finetune, pretrain

DRAW = 2026  # seed of the people held back and of the outsiders


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--steps", type=int, default=1300, help="of pretraining, and of finetuning")
    parser.add_argument("--held-back", type=int, default=500)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    dev, train, held, outside = files(options.data, options.out, options.held_back)
    tasks, accuracies = [], {}
    for seed in options.seeds:
        run = trained(options.data / "wiki.txt", train, options.out, seed, options.steps)
        accuracies[seed] = [evaluate(run, each).accuracy for each in (dev, held)]
        right = [f"{100 * share:.1f} %" for share in accuracies[seed]]
        print(f"seed {seed}: right {right[0]} of dev.tsv, {right[1]} of those held back", flush=True)
        tasks.append([f"birthplaces, seed {seed}", *map(str, (run, dev, outside, held))])
    figures = trust_tasks.all_figures(tasks, 0.95, [0.95], options.splits)
    print(json.dumps({"over seeds": over_seeds(figures), "accuracy": accuracies, **figures}))


def over_seeds(figures: dict[str, Any]) -> dict[str, dict[str, dict[str, float]]]:
    """Least, mean and greatest share over the seeds, in percent, inside dev.tsv and on the people held back."""
    found = [each["0.95"] for each in figures["tasks"].values()]
    out: dict[str, dict[str, dict[str, float]]] = {}
    for where in ("cross-fitted", "held back"):
        rows = [each[where] for each in found]
        shares = {
            "right": [row["precision"] for row in rows],
            "known covered": [row["known coverage"] for row in rows],
            "outsiders": [row["outsider"][0] / row["outsider"][1] for row in rows],
            "invented": [row["invented"][0] / row["invented"][1] for row in rows],
        }
        out[where] = {
            name: {"least": 100 * min(own), "mean": 100 * sum(own) / len(own), "most": 100 * max(own)}
            for name, own in shares.items()
        }
    return out


def files(data: Path, out: Path, n_held: int) -> tuple[Path, Path, Path, Path]:
    """dev.tsv, and written beside the runs: the questions to train on, those held back, and those about outsiders."""
    out.mkdir(parents=True, exist_ok=True)
    lines = [line for line in (data / "train.tsv").read_text("utf-8").splitlines() if line.strip()]
    held = set(random.Random(DRAW).sample(range(len(lines)), n_held))
    text = (data / "wiki.txt").read_text("utf-8")
    asked = (data / "dev.tsv").read_text("utf-8").splitlines()
    outsiders = [person for person in pantheon().people if person.name not in text and person.city]
    chosen = random.Random(DRAW).sample(outsiders, n_held + len(asked))
    written = {
        "train.tsv": [line for i, line in enumerate(lines) if i not in held],
        "held.tsv": [line for i, line in enumerate(lines) if i in held],
        "outside.tsv": [f"Where was {person.name} born?\t{person.city}" for person in chosen],
    }
    for name, rows in written.items():
        (out / name).write_text("".join(f"{row}\n" for row in rows), "utf-8")
    return data / "dev.tsv", *(out / name for name in written)


def trained(text: Path, train: Path, out: Path, seed: int, steps: int) -> Path:
    """A run of the default recipe."""
    base, run = (out / f"{name}-{steps}-{seed}" for name in ("base", "birth"))
    began = time.process_time()
    pretrain(text, base, questions=train, recipe="cloze", steps=steps, seed=seed, threads=1, resume=True)
    finetune(base, train, run, steps=steps, seed=seed, threads=1, resume=True)
    print(f"seed {seed}: trained in {(time.process_time() - began) / 60:.1f} minutes of one core", flush=True)
    return run


if __name__ == "__main__":
    main()
