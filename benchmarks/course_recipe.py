"""The course's recipe (its objective and its model) beside the default one, at the same time on the same cores.

    python benchmarks/course_recipe.py --data FOLDER --minutes 5 30 60 --threads 2 --out RUNS --plots PLOTS

FOLDER holds wiki.txt, train.tsv and dev.tsv of the birthplace task. `course` pretrains by span corruption of characters
for as long as its ten epochs of finetuning leave, `cloze` halves the time. Questions in dev.tsv are used for scoring
only. With --one-run, `course` is trained once, for the longest time, and what it was after each shorter time is
finetuned and scored too: as far as somebody gets who stops the run there. On a machine that others use too, --by-cpu
counts the processor's time and not the clock's: a minute of --cores 2 is 120 seconds of it, on however many threads.
Runs that are there already are gone on with. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from qkv.knowledge.evaluation import Scores, evaluate
from qkv.train.metrics_log import History
from qkv.train.recipes import RECIPES
from qkv.train.runs import finetune, load, pretrain

PUBLISHED = {"median": 0.25, "best": 0.38}  # the course's model and objective, about an hour on a GPU
WARM_UP_STEPS, TIMED_STEPS = 10, 30  # steps until the pace is steady, and that it is measured on

SAVED_EVERY = 25  # steps between checkpoints of a run that is stopped


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--minutes", type=float, nargs="+", default=[5.0, 30.0, 60.0])
    parser.add_argument("--recipes", nargs="+", default=["course", "cloze"], choices=["course", "cloze"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cores", type=int, default=0, help="with --by-cpu: cores of a minute; as many as threads")
    parser.add_argument("--one-run", action="store_true", help="course: shorter times are stops of the longest run")
    parser.add_argument("--by-cpu", action="store_true", help="count the processor's time, not the clock's")
    parser.add_argument("--steps", type=int, default=0, help="so many steps of each stage instead of minutes: a trial")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=None, help="folder of the runs; a temporary one if left out")
    parser.add_argument("--plots", type=Path, default=None, help="folder for the loss curves as .svg")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        out = options.out or Path(temporary)
        if options.one_run:
            rows += stopped(options, out)
        for minutes in sorted(options.minutes):
            for recipe in options.recipes:
                if options.one_run and recipe == "course":
                    continue
                rows.append(measured(recipe, minutes, options, out))
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
                "at": {
                    f"{row['minutes']:g} minutes": 100 * row["accuracy"] for row in rows if row["recipe"] == "course"
                },
                "steps": {f"{row['minutes']:g} minutes": row["steps"][0] for row in rows if row["recipe"] == "course"},
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
    return row(recipe, minutes, base, run, scores) | taken


def row(recipe: str, minutes: float, base: Path, run: Path, scores: Scores) -> dict[str, Any]:
    """What a run reached."""
    histories = [History.of(base), History.of(run)]
    return {
        "recipe": recipe, "minutes": minutes, "accuracy": scores.accuracy, "low": scores.low, "high": scores.high,
        "n": scores.n, "steps": [load(folder).step for folder in (base, run)],
        "losses": [[each.steps[-1], each.losses[-1]] if each.steps else None for each in histories],
    }  # fmt: skip


def stopped(options: argparse.Namespace, out: Path) -> list[dict[str, Any]]:
    """Pretrain by the course's recipe for the longest time, and finetune it as it was after each of the times."""
    text, train, dev = (options.data / name for name in ("wiki.txt", "train.tsv", "dev.tsv"))
    settings = {"threads": options.threads, "seed": options.seed}
    base, plan = out / "course-base", out / "course-steps.json"
    if not plan.exists():  # the pace is measured once
        each, tuning = pace("course", text, train, settings)
        cores = options.cores or options.threads
        every = {minutes: round((60 * minutes * cores - tuning) / each) for minutes in options.minutes}
        out.mkdir(parents=True, exist_ok=True)
        plan.write_text(json.dumps(every), "utf-8")
    planned = json.loads(plan.read_text("utf-8")).items()
    steps = {float(minutes): SAVED_EVERY * max(1, n // SAVED_EVERY) for minutes, n in planned}
    longest = max(steps.values())
    began, cpu = time.perf_counter(), time.process_time()

    def copy_at_stops(step: int, *_: Any) -> None:
        for minutes, stop in steps.items():  # the step after it: by then it is saved
            copy = out / f"course-{minutes:g}-base"
            if step == stop + 1 and not copy.exists():
                shutil.copytree(base, copy)

    pretrain(text, base, recipe="course", steps=longest, checkpoint_every=SAVED_EVERY, resume=True,
             callback=copy_at_stops, **settings)  # fmt: skip
    print(f"pretraining: {(time.process_time() - cpu) / 60:.1f} minutes of CPU, "
          f"{(time.perf_counter() - began) / 60:.1f} by the clock", flush=True)  # fmt: skip
    rows = []
    for minutes, stop in sorted(steps.items()):
        parent, run = base if stop == longest else out / f"course-{minutes:g}-base", out / f"course-{minutes:g}-tuned"
        finetune(parent, train, run, resume=True, **settings)
        rows.append(row("course", minutes, parent, run, evaluate(run, dev)))
        print(json.dumps(rows[-1]), flush=True)
    if options.plots is not None:
        draw(base, options.plots / "losses-course.svg", f"course, {max(steps):g} minutes: loss")
    return rows


def budgets(
    recipe: str, minutes: float, options: argparse.Namespace, text: Path, train: Path, settings: dict[str, int]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """How long the two stages last: minutes by the clock, or steps by the processor's time.

    The course's finetuning is its ten epochs; what they take is taken off pretraining's time.
    """
    if not options.by_cpu:
        halves = {"minutes": minutes / 2}
        return ({"minutes": minutes}, {}) if recipe == "course" else (halves, halves)
    each, tuning = pace(recipe, text, train, settings)
    seconds = 60 * minutes * (options.cores or options.threads)
    if recipe == "cloze":
        steps = max(1, round(seconds / each / 2))
        return {"steps": steps}, {"steps": steps}
    return {"steps": max(1, round((seconds - tuning) / each))}, {}


def pace(recipe: str, text: Path, train: Path, settings: dict[str, int]) -> tuple[float, float]:
    """Seconds of the processor for a step of pretraining, and for all of the course's finetuning (0 for cloze)."""
    mixed_in = {"questions": train} if recipe == "cloze" else {}
    with tempfile.TemporaryDirectory() as folder:
        base, tuned = Path(folder, "base"), Path(folder, "tuned")
        each = paced(lambda **more: pretrain(text, base, recipe=recipe, **mixed_in, **settings, **more))
        if recipe == "cloze":
            return each, 0.0
        each_tuning = paced(lambda **more: finetune(base, train, tuned, **settings, **more))
    stage = RECIPES[recipe].finetuning
    count = sum(bool(line.strip()) for line in train.read_text("utf-8").splitlines())
    return each, each_tuning * -(-(stage.epochs or 1) * count // stage.settings.batch_size)


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
