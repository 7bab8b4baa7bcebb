"""The course's recipe (its objective and its model) beside the default one, at the same time on the same cores.

    python benchmarks/course_recipe.py --data FOLDER --minutes 5 30 60 --threads 2 --out RUNS --plots PLOTS

FOLDER holds wiki.txt, train.tsv and dev.tsv of the birthplace task. `course` pretrains by span corruption of characters
for as long as its ten epochs of finetuning leave, `cloze` halves the time. Questions in dev.tsv are used for scoring
only. On a machine that others use too, --by-cpu counts the processor's time and not the clock's: a minute of --cores 2
is 120 seconds of it, on however many threads. Runs that are there already are gone on with. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from qkv.knowledge.evaluation import evaluate
from qkv.train.metrics_log import History
from qkv.train.recipes import RECIPES
from qkv.train.runs import finetune, load, pretrain

PUBLISHED = {"median": 0.25, "best": 0.38}  # the course's model and objective, about an hour on a GPU
WARM_UP_STEPS, TIMED_STEPS = 20, 60  # steps until the pace is steady, and that it is measured on


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--minutes", type=float, nargs="+", default=[5.0, 30.0, 60.0])
    parser.add_argument("--recipes", nargs="+", default=["course", "cloze"], choices=["course", "cloze"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cores", type=int, default=0, help="with --by-cpu: cores of a minute; as many as threads")
    parser.add_argument("--by-cpu", action="store_true", help="count the processor's time, not the clock's")
    parser.add_argument("--steps", type=int, default=0, help="so many steps of each stage instead of minutes: a trial")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=None, help="folder of the runs; a temporary one if left out")
    parser.add_argument("--plots", type=Path, default=None, help="folder for the loss curves as .svg")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for minutes in sorted(options.minutes):
            for recipe in options.recipes:
                rows.append(measured(recipe, minutes, options, options.out or Path(temporary)))
                print(as_line(rows[-1]), flush=True)
    print("\n| recipe | minutes of the cores | steps | right | 95 % interval |\n|---|---|---|---|---|")
    for row in rows:
        steps = " + ".join(f"{each:,}" for each in row["steps"])
        right = f"{100 * row['accuracy']:.1f} % | {100 * row['low']:.1f} to {100 * row['high']:.1f} %"
        print(f"| {row['recipe']} | {row['minutes']:g} | {steps} | {right} |")
    print(
        json.dumps(
            {
                "rows": rows,
                "threads": options.threads,
                "cores": options.cores or options.threads,
                "by_cpu": options.by_cpu,
                "published": PUBLISHED,
            }
        )
    )


def measured(recipe: str, minutes: float, options: argparse.Namespace, out: Path) -> dict[str, Any]:
    """Train one recipe for so long, score it on dev.tsv, and draw its losses."""
    text, train, dev = (options.data / name for name in ("wiki.txt", "train.tsv", "dev.tsv"))
    base, run = (out / f"{recipe}-{minutes:g}-{stage}" for stage in ("base", "tuned"))
    settings = {"threads": options.threads, "seed": options.seed}
    mixed_in = {"questions": train} if recipe == "cloze" else {}
    if options.steps:
        first, second = ({"steps": options.steps},) * 2
    elif (base / "config.json").exists():  # begun before: the pace measured then stands
        steps = json.loads((base / "config.json").read_text("utf-8"))["settings"]["steps"]
        first, second = {"steps": steps}, {"steps": steps} if recipe == "cloze" else {}
    else:
        first, second = budgets(recipe, minutes, options, text, train, settings)
    began, cpu = time.perf_counter(), time.process_time()
    pretrain(text, base, recipe=recipe, resume=True, **mixed_in, **first, **settings)
    finetune(base, train, run, resume=True, **second, **settings)
    taken = {"wall_minutes": (time.perf_counter() - began) / 60, "cpu_minutes": (time.process_time() - cpu) / 60}
    scores = evaluate(run, dev)
    if options.plots is not None:
        draw(base, options.plots / f"losses-{recipe}-{minutes:g}.svg", f"{recipe}, {minutes:g} minutes: loss")
    histories = [History.of(base), History.of(run)]
    return {
        "recipe": recipe, "minutes": minutes, "accuracy": scores.accuracy, "low": scores.low, "high": scores.high,
        "n": scores.n, "steps": [load(folder).step for folder in (base, run)], **taken,
        "losses": [[each.steps[-1], each.losses[-1]] if each.steps else None for each in histories],
    }  # fmt: skip


def budgets(
    recipe: str, minutes: float, options: argparse.Namespace, text: Path, train: Path, settings: dict[str, int]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """How long the two stages last: minutes by the clock, or steps by the processor's time.

    The course's finetuning is its ten epochs; what they take is taken off pretraining's time.
    """
    if not options.by_cpu:
        halves = {"minutes": minutes / 2}
        return ({"minutes": minutes}, {}) if recipe == "course" else (halves, halves)
    mixed_in = {"questions": train} if recipe == "cloze" else {}
    seconds = 60 * minutes * (options.cores or options.threads)
    with tempfile.TemporaryDirectory() as folder:
        base, tuned = Path(folder, "base"), Path(folder, "tuned")
        each = paced(lambda **more: pretrain(text, base, recipe=recipe, **mixed_in, **settings, **more))
        if recipe == "cloze":
            steps = max(1, round(seconds / each / 2))
            return {"steps": steps}, {"steps": steps}
        each_tuning = paced(lambda **more: finetune(base, train, tuned, **settings, **more))
    stage = RECIPES[recipe].finetuning
    count = sum(bool(line.strip()) for line in train.read_text("utf-8").splitlines())
    tuning = -(-(stage.epochs or 1) * count // stage.settings.batch_size)
    return {"steps": max(1, round((seconds - tuning * each_tuning) / each))}, {}


def paced(stage: Callable[..., Any]) -> float:
    """Seconds of the processor for one step of a stage, once its pace is steady."""
    marks: list[float] = []
    stage(steps=WARM_UP_STEPS + TIMED_STEPS, callback=lambda *_: marks.append(time.process_time()))
    return (marks[-1] - marks[WARM_UP_STEPS - 1]) / TIMED_STEPS


def draw(run: Path, path: Path, title: str) -> None:
    """Draw the loss of each step of pretraining."""
    from qkv.viz.plots.training import losses
    from qkv.viz.theme import save

    path.parent.mkdir(parents=True, exist_ok=True)
    save(losses(History.of(run), title), path)


def as_line(row: dict[str, Any]) -> str:
    return (
        f"{row['recipe']}, {row['minutes']:g} minutes: {100 * row['accuracy']:.1f} % of {row['n']} "
        f"({row['cpu_minutes']:.1f} minutes of CPU, {row['wall_minutes']:.1f} by the clock)"
    )


if __name__ == "__main__":
    main()
