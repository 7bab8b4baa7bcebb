"""Study "variants": accuracy of the kinds of attention after equal training, and which differences are significant."""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from scipy.special import ndtri

from qkv.knowledge.datasets.templates import biographies
from qkv.knowledge.evaluation import evaluate
from qkv.knowledge.intervals import difference_interval, mean_interval, wilson_interval
from qkv.knowledge.studies.experiment import Cell, CellCallback, Row, Study, run_cells
from qkv.knowledge.studies.setup import StudySetup, pretrain_cloze, sample_people, training_and_held_out_questions
from qkv.knowledge.studies.study_files import save_study
from qkv.model.config import ATTENTIONS

SETUP = StudySetup(exposures=80)
BONFERRONI_Z = float(ndtri(1 - 0.05 / 2 / math.comb(len(ATTENTIONS), 2)))
"""Normal quantile for two-sided intervals of all pairs of kinds that hold together in 95 % of studies."""


def study(
    out: str | Path, seeds: int = 3, minutes: float = math.inf, people: int = 0, callback: CellCallback | None = None
) -> Study:
    """Accuracy of each kind on held-out people; each seed draws its own people, the same for all kinds."""
    setup = replace(SETUP, people=people or SETUP.people)
    cells = [
        Cell(
            f"{kind}-seed-{seed}",
            {**asdict(setup), "attention": kind, "seed": seed},
            partial(measure, kind, setup, seed),
            ("run",),
        )
        for seed in range(seeds)
        for kind in ATTENTIONS
    ]
    results = run_cells(out, "variants", cells, minutes, callback)
    rows, scores = [], {}
    for kind in ATTENTIONS:
        own = [results[name] for seed in range(seeds) if (name := f"{kind}-seed-{seed}") in results]
        if own:
            right, n = sum(r["right"] for r in own), sum(r["n"] for r in own)
            scores[kind] = [(r["right"], r["n"]) for r in own]
            each = [r["right"] / r["n"] for r in own]
            _, low, high = mean_interval(each)
            over_seeds = {"over_seeds": (max(0.0, low), min(1.0, high))} if len(each) > 1 else {}
            rows.append(
                {
                    "what": kind,
                    "accuracy": right / n,
                    "interval": wilson_interval(right, n),
                    **over_seeds,
                    "parameters": own[0]["parameters"],
                    "seeds": len(own),
                }
            )
    title = "The same text, four kinds of attention"
    return save_study(out, Study("variants", title, tuple(rows), compare(scores), len(results), len(cells)))


def compare(scores: dict[str, list[tuple[int, int]]]) -> tuple[str, ...]:
    """For each pair of kinds, from (right, n) of each seed, a sentence on whether they differ.

    They do if the interval of the difference over all questions excludes 0, and all seeds have a difference of the same
    sign: the interval covers the choice of people asked about, and only the seeds cover the randomness of training.
    """
    out = []
    for (one, a), (two, b) in itertools.combinations(scores.items(), 2):
        low, high = difference_interval(_total(a), _total(b), BONFERRONI_Z)
        gaps = [x / n - y / m for (x, n), (y, m) in zip(a, b, strict=False)]
        if (low > 0 and min(gaps) > 0) or (high < 0 and max(gaps) < 0):
            better, worse = (one, two) if low > 0 else (two, one)
            gap = sorted((abs(low), abs(high)))
            out.append(f"{better} beats {worse} by {100 * gap[0]:.0f} to {100 * gap[1]:.0f} points.")
        else:
            disagree = " and the seeds disagree" if min(gaps) < 0 < max(gaps) else ""
            out.append(
                f"Between {one} and {two} no difference is shown "
                f"({100 * low:+.0f} to {100 * high:+.0f} points{disagree})."
            )
    return tuple(out)


def measure(kind: str, setup: StudySetup, seed: int, folder: Path) -> Row:
    """Train a model with one kind of attention, and score it on people without training questions."""
    facts, _ = sample_people(setup.people, seed)
    asked, held_out = training_and_held_out_questions(facts, seed)
    texts = biographies(facts, 1, title=True, seed=seed).texts
    run = pretrain_cloze(folder / "run", texts, asked, setup, seed, attention=kind)
    score = evaluate(run, held_out)
    parameters = sum(p.numel() for p in run.model.parameters())
    return {"right": round(score.accuracy * score.n), "n": score.n, "parameters": parameters}


def _total(scores: list[tuple[int, int]]) -> tuple[int, int]:
    return sum(right for right, _ in scores), sum(n for _, n in scores)
