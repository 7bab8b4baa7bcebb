"""rare_facts: how many answers are made up, against the share of facts that the text says only once."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np

from qkv.knowledge.datasets.templates import biographies
from qkv.knowledge.evaluation import evaluate
from qkv.knowledge.intervals import wilson
from qkv.knowledge.studies.experiment import Cell, Row, Study, Watch, finish, work
from qkv.knowledge.studies.setup import StudySetup, drilled, halves, people

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
OFTEN = 5  # biographies of somebody whose facts are not said once
EPOCHS = 16  # times that every biography is drilled
SCHOOL = StudySetup()


def study(
    out: str | Path, seeds: int = 1, minutes: float = math.inf, count: int = 0, callback: Watch | None = None
) -> Study:
    """The rate of made-up answers for each share of people with one biography; the others have five."""
    school = replace(SCHOOL, people=count or SCHOOL.people)
    cells = [
        Cell(
            _name(share, seed), {**asdict(school), "share": share, "seed": seed}, partial(measure, share, school, seed)
        )
        for seed in range(seeds)
        for share in SHARES
    ]
    results = work(out, cells, minutes, callback)
    rows = []
    for share in SHARES:
        mine = [results[name] for seed in range(seeds) if (name := _name(share, seed)) in results]
        if mine:
            wrong, n = sum(r["wrong"] for r in mine), sum(r["n"] for r in mine)
            row: Row = {"seen_once": share, "made_up": wrong / n, "interval": wilson(wrong, n)}
            for kind in ("once", "often"):
                asked = sum(r[f"n_{kind}"] for r in mine)
                row[f"made_up_of_{kind}"] = sum(r[f"wrong_{kind}"] for r in mine) / asked if asked else None
            rows.append({**row, "n": n})
    rates = {}
    for kind in ("once", "often"):
        n = sum(r[f"n_{kind}"] for r in results.values())
        rates[kind] = 100 * sum(r[f"wrong_{kind}"] for r in results.values()) / n if n else math.nan
    said = f"Over all shares, {rates['once']:.0f} % of what was said once is made up, and {rates['often']:.0f} %"
    remarks = (f"{said} of what was said {OFTEN} times.",) if not math.isnan(sum(rates.values())) else ()
    return finish(
        out,
        Study("rare_facts", "What is said once is made up more often", tuple(rows), remarks, len(results), len(cells)),
    )


def measure(share: float, school: StudySetup, seed: int, folder: Path) -> Row:
    """Teach one model, and count wrong answers on people that it read of, whose questions it never saw.

    Other people's biographies take the place of those that are missing, so that all models are taught equally long.
    """
    facts, others = people(school.people, seed)
    asked, held = halves(facts, seed)
    order = np.random.default_rng((seed, 31)).permutation(len(facts))
    once = {facts.people[i].name for i in order[: round(share * len(facts))]}
    missing = len(once) * (OFTEN - 1) // OFTEN
    written = replace(facts, people=facts.people + others.people[:missing])
    counts = [1 if person.name in once else OFTEN for person in written]
    texts = biographies(written, OFTEN, order="permuted", exposures=counts, title=True, seed=seed).texts
    run = drilled(folder / "run", texts, asked, school, seed, examples=EPOCHS * len(texts))
    score = evaluate(run, held)
    wrong = [not right for right in score.right[0]]
    single = [any(f" {name} " in question for name in once) for question, _ in held]
    return {
        "n": score.n, "wrong": sum(wrong), "n_once": sum(single), "n_often": score.n - sum(single),
        "wrong_once": sum(w for w, s in zip(wrong, single, strict=True) if s),
        "wrong_often": sum(w for w, s in zip(wrong, single, strict=True) if not s),
    }  # fmt: skip


def _name(share: float, seed: int) -> str:
    return f"share-{round(100 * share)}-seed-{seed}"
