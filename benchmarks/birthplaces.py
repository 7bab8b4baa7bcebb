"""How many birthplaces does the default recipe answer, against minutes of training? Needs the course's three files.

    python benchmarks/birthplaces.py --data FOLDER --minutes 1 2 5 15 30 60 --seeds 3 --out RUNS

FOLDER holds wiki.txt, train.tsv and dev.tsv. Questions in dev.tsv are used for scoring only; besides the runs, a model
that read nothing and one whose text lacked the people asked about are trained for as long as the shortest run.
Runs that are there already are gone on with, so that a benchmark that was stopped loses nothing. On a machine that
others use too, --pace says how many steps make a minute; --pace 0 first measures how many one core does, by the
processor's time and not by the clock.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from qkv.knowledge.evaluation import evaluate
from qkv.knowledge.training.text_filter import drop_texts_about
from qkv.train.recipes import RECIPES
from qkv.train.runs import finetune, pretrain

PUBLISHED = {"median": 0.25, "best": 0.38}  # a character model of 3.3 million parameters, about an hour on a GPU
WARM_UP_STEPS, TIMED_STEPS = 100, 400  # steps until the pace is steady, and that it is measured on
CLOZE = RECIPES["cloze"]
MINUTES = [stage.minutes or 0.0 for stage in (CLOZE.pretraining, CLOZE.finetuning)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--minutes", type=float, nargs="+", default=[sum(MINUTES)])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--pace", type=float, default=None, help="steps that make a minute; 0 to measure them")
    parser.add_argument("--out", type=Path, default=None, help="folder of the runs; a temporary one if left out")
    parser.add_argument("--baselines", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--plot", type=Path, default=None, help="draw the curve into this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        if options.pace == 0:
            options.pace = pace(options.data, Path(temporary, "pace"))
            print(f"{options.pace:.0f} steps a minute of one core")
        measure(options, options.out or Path(temporary))


def measure(options: argparse.Namespace, out: Path) -> None:
    text, train, dev = (options.data / name for name in ("wiki.txt", "train.tsv", "dev.tsv"))
    curve = []
    for minutes in sorted(options.minutes):
        runs, taken, half = [], [], budget(minutes / 2, options.pace)
        for seed in range(options.seeds):
            base, run = (out / f"{name}-{minutes:g}-{seed}" for name in ("base", "birth"))
            began = time.process_time()
            pretrain(text, base, questions=train, recipe="cloze", **half, seed=seed, resume=True)
            finetune(base, train, run, **half, seed=seed, resume=True)
            taken.append((time.process_time() - began) / 60)
            runs.append(run)
            accuracy = evaluate(run, dev).accuracy
            print(f"{minutes:g} minutes, seed {seed}: {100 * accuracy:.1f} % ({taken[-1]:.1f} of a core)", flush=True)
        scores = evaluate(runs, dev)
        curve.append(
            {"minutes": minutes, "core_minutes": max(taken), "accuracy": scores.accuracy, "low": scores.low}
            | {"high": scores.high, "seeds": scores.runs, "n": scores.n}
        )
    figures: dict[str, object] = {"curve": curve, "pace": options.pace, "published": PUBLISHED}
    if options.baselines:
        short, half = min(options.minutes), budget(min(options.minutes) / 2, options.pace)
        finetune(out / f"base-{short:g}-0", train, out / "none", **half, from_scratch=True, resume=True)
        (out / "ablated.txt").write_text("\n".join(drop_texts_about(text, dev)), "utf-8")
        pretrain(out / "ablated.txt", out / "base-ablated", questions=train, recipe="cloze", **half, resume=True)
        finetune(out / "base-ablated", train, out / "ablated", **half, resume=True)
        run = out / f"birth-{short:g}-0"
        scores = evaluate(run, dev, unpretrained=out / "none", ablated=out / "ablated")
        figures["baselines"] = {name: score.to_json() for name, score in scores.baselines.items()}
    if options.plot is not None:
        from qkv.viz.plots.knowledge import accuracy_curve as picture
        from qkv.viz.theme import save

        save(picture(curve, PUBLISHED), options.plot)
    print(json.dumps(figures))


def budget(minutes: float, pace: float | None) -> dict[str, float]:
    """How long a stage lasts: minutes by the clock, or the steps that make so many."""
    return {"minutes": minutes} if pace is None else {"steps": max(1, round(minutes * pace))}


def pace(data: Path, out: Path) -> float:
    """Steps in a minute of one core's own time, at the default recipe's first stage."""
    marks = []
    pretrain(
        data / "wiki.txt", out, questions=data / "train.tsv", recipe="cloze", steps=WARM_UP_STEPS + TIMED_STEPS,
        threads=1, callback=lambda *_: marks.append(time.process_time()),
    )  # fmt: skip
    return 60 * TIMED_STEPS / (marks[-1] - marks[WARM_UP_STEPS - 1])


if __name__ == "__main__":
    main()
