"""How many birthplaces does the default recipe answer, against minutes of training? Needs the course's three files.

    python benchmarks/birthplaces.py --data FOLDER --minutes 4 8 16 30 --seeds 3

FOLDER holds wiki.txt, train.tsv and dev.tsv. Questions in dev.tsv are used for scoring only; besides the runs, a model
that read nothing and one whose text lacked the people asked about are trained for as long as the shortest run.
Runs that are there already are gone on with, so that a benchmark that was stopped loses nothing.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from qkv.knowledge.recipes import RECIPES, lacking, memorise, tune
from qkv.knowledge.scoring import evaluate

PUBLISHED = {"median": 0.25, "best": 0.38}  # a character model of 3.3 million parameters, about an hour on a GPU


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--minutes", type=float, nargs="+", default=[sum(RECIPES["qkv"].minutes or ())])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=None, help="folder of the runs; a temporary one if left out")
    parser.add_argument("--baselines", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        measure(options, options.out or Path(temporary))


def measure(options: argparse.Namespace, out: Path) -> None:
    text, train, dev = (options.data / name for name in ("wiki.txt", "train.tsv", "dev.tsv"))
    curve = []
    for minutes in sorted(options.minutes):
        runs, taken = [], []
        for seed in range(options.seeds):
            base, run = (out / f"{name}-{minutes:g}-{seed}" for name in ("base", "birth"))
            began = time.perf_counter()
            memorise(text, base, train, minutes=minutes / 2, seed=seed, resume=True)
            tune(base, train, run, minutes=minutes / 2, seed=seed, resume=True)
            taken.append((time.perf_counter() - began) / 60)
            runs.append(run)
            print(f"{minutes:g} minutes, seed {seed}: {100 * evaluate(run, dev).accuracy:.1f} % in {taken[-1]:.1f}")
        scores = evaluate(runs, dev)
        curve.append(
            {"minutes": minutes, "taken": max(taken), "accuracy": scores.accuracy, "low": scores.low}
            | {"high": scores.high, "seeds": scores.runs, "n": scores.n}
        )
    figures: dict[str, object] = {"curve": curve, "published": PUBLISHED}
    if options.baselines:
        short = min(options.minutes) / 2
        base = out / f"base-{min(options.minutes):g}-0"
        tune(base, train, out / "none", minutes=short, from_scratch=True, resume=True)
        (out / "lacking.txt").write_text("\n".join(lacking(text, dev)), "utf-8")
        memorise(out / "lacking.txt", out / "base-lacking", train, minutes=short, resume=True)
        tune(out / "base-lacking", train, out / "lacking", minutes=short, resume=True)
        run = out / f"birth-{min(options.minutes):g}-0"
        scores = evaluate(run, dev, unpretrained=out / "none", lacking=out / "lacking")
        figures["baselines"] = {name: score.accuracy for name, score in scores.baselines.items()}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
