"""variants: kinds of attention on the same text with the same budget, and which differences are real."""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from qkv.knowledge.datasets.templates import biographies
from qkv.knowledge.evaluation import evaluate
from qkv.knowledge.intervals import difference, over_seeds, wilson
from qkv.knowledge.studies.experiment import Cell, Row, Study, Watch, finish, work
from qkv.knowledge.studies.setup import StudySetup, drilled, halves, people
from qkv.model.config import ATTENTIONS

SCHOOL = StudySetup(exposures=80)
STRICT = 2.638  # the normal quantile for six comparisons that all hold in 95 % of studies (Bonferroni)


def study(
    out: str | Path, seeds: int = 3, minutes: float = math.inf, count: int = 0, callback: Watch | None = None
) -> Study:
    """Accuracy of each kind on held-out people; every seed has people of its own, the same for all kinds."""
    school = replace(SCHOOL, people=count or SCHOOL.people)
    cells = [
        Cell(f"{kind}-seed-{seed}", {**asdict(school), "seed": seed}, partial(measure, kind, school, seed))
        for seed in range(seeds)
        for kind in ATTENTIONS
    ]
    results = work(out, cells, minutes, callback)
    rows, scores = [], {}
    for kind in ATTENTIONS:
        mine = [results[name] for seed in range(seeds) if (name := f"{kind}-seed-{seed}") in results]
        if mine:
            right, n = sum(r["right"] for r in mine), sum(r["n"] for r in mine)
            scores[kind] = [(r["right"], r["n"]) for r in mine]
            each = [r["right"] / r["n"] for r in mine]
            _, low, high = over_seeds(each)
            spread = {"over_seeds": (max(0.0, low), min(1.0, high))} if len(each) > 1 else {}
            size = mine[0]["parameters"]
            row = {"what": kind, "accuracy": right / n, "interval": wilson(right, n), **spread, "parameters": size}
            rows.append({**row, "seeds": len(mine)})
    return finish(
        out,
        Study(
            "variants",
            "The same text, four kinds of attention",
            tuple(rows),
            compared(scores),
            len(results),
            len(cells),
        ),
    )


def compared(scores: dict[str, list[tuple[int, int]]]) -> tuple[str, ...]:
    """For each pair of kinds, with (right, n) for each seed, whether they differ.

    They do if an interval for the difference over all questions leaves out 0, and every seed says the same: the
    interval knows that other people might have been asked, and only seeds know that training might have gone
    differently.
    """
    out = []
    for (one, a), (two, b) in itertools.combinations(scores.items(), 2):
        low, high = difference(_total(a), _total(b), STRICT)
        gaps = [x / n - y / m for (x, n), (y, m) in zip(a, b, strict=False)]
        if (low > 0 and min(gaps) > 0) or (high < 0 and max(gaps) < 0):
            better, worse = (one, two) if low > 0 else (two, one)
            gap = sorted((abs(low), abs(high)))
            out.append(f"{better} beats {worse} by {100 * gap[0]:.0f} to {100 * gap[1]:.0f} points.")
        else:
            split = " and the seeds disagree" if min(gaps) < 0 < max(gaps) else ""
            out.append(
                f"Between {one} and {two} nothing is proved ({100 * low:+.0f} to {100 * high:+.0f} points{split})."
            )
    return tuple(out)


def _total(scores: list[tuple[int, int]]) -> tuple[int, int]:
    return sum(right for right, _ in scores), sum(n for _, n in scores)


def measure(kind: str, school: StudySetup, seed: int, folder: Path) -> Row:
    """Teach one kind, and ask it about people whose questions it never saw."""
    facts, _ = people(school.people, seed)
    asked, held = halves(facts, seed)
    texts = biographies(facts, 1, title=True, seed=seed).texts
    run = drilled(folder / "run", texts, asked, school, seed, attention=kind)
    score = evaluate(run, held)
    parameters = sum(p.numel() for p in run.model.parameters())
    return {"right": round(score.accuracy * score.n), "n": score.n, "parameters": parameters}
