"""Study "rare_facts": share of made-up answers against the share of facts that the text states only once."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np

from qkv.knowledge.datasets.templates import biographies
from qkv.knowledge.evaluation import evaluate
from qkv.knowledge.intervals import difference_interval, wilson_interval
from qkv.knowledge.studies.experiment import Cell, CellCallback, Row, Study, run_cells
from qkv.knowledge.studies.setup import StudySetup, pretrain_cloze, sample_people, training_and_held_out_questions
from qkv.knowledge.studies.study_files import save_study

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
OFTEN = 5  # biographies of a person whose facts are not stated only once
EPOCHS = 16  # cloze examples of each biography
SETUP = StudySetup()
NEUTRAL_TITLE = "Made-up answers by how often a fact is stated"


def study(
    out: str | Path, seeds: int = 1, minutes: float = math.inf, people: int = 0, callback: CellCallback | None = None
) -> Study:
    """Share of made-up answers for each share of people with one biography; the others have OFTEN."""
    setup = replace(SETUP, people=people or SETUP.people)
    cells = [
        Cell(
            _cell_name(share, seed),
            {**asdict(setup), "share": share, "seed": seed},
            partial(measure, share, setup, seed),
            ("run",),
        )
        for seed in range(seeds)
        for share in SHARES
    ]
    results = run_cells(out, "rare_facts", cells, minutes, callback)
    rows = []
    for share in SHARES:
        own = [results[name] for seed in range(seeds) if (name := _cell_name(share, seed)) in results]
        if own:
            wrong, n = sum(r["wrong"] for r in own), sum(r["n"] for r in own)
            row: Row = {"seen_once": share, "made_up": wrong / n, "interval": wilson_interval(wrong, n)}
            for kind in ("once", "often"):
                asked = sum(r[f"n_{kind}"] for r in own)
                row[f"made_up_of_{kind}"] = sum(r[f"wrong_{kind}"] for r in own) / asked if asked else None
            rows.append({**row, "n": n})
    totals = {
        kind: (sum(r[f"wrong_{kind}"] for r in results.values()), sum(r[f"n_{kind}"] for r in results.values()))
        for kind in ("once", "often")
    }
    title, remarks = finding(totals["once"], totals["often"])
    return save_study(out, Study("rare_facts", title, tuple(rows), remarks, len(results), len(cells)))


def finding(once: tuple[int, int], often: tuple[int, int]) -> tuple[str, tuple[str, ...]]:
    """Title and remarks from (made up, asked) of the facts stated once and of those stated often.

    The title states a difference only where its 95 % interval excludes 0.
    """
    if not (once[1] and often[1]):
        return NEUTRAL_TITLE, ()
    low, high = difference_interval(once, often)
    rates = [100 * wrong / n for wrong, n in (once, often)]
    remark = (
        f"Over all shares, {rates[0]:.0f} % of the {once[1]} answers about facts stated once are made up, and "
        f"{rates[1]:.0f} % of the {often[1]} about facts stated {OFTEN} times "
        f"(difference {100 * low:+.0f} to {100 * high:+.0f} points)."
    )
    if low > 0:
        return "Facts stated once are made up more often", (remark,)
    return ("Facts stated once are made up less often" if high < 0 else NEUTRAL_TITLE), (remark,)


def measure(share: float, setup: StudySetup, seed: int, folder: Path) -> Row:
    """Train one model, and count wrong answers about people in the text without training questions.

    Biographies of other people replace the missing ones, so that all models are trained on texts of one length.
    """
    facts, others = sample_people(setup.people, seed)
    asked, held_out = training_and_held_out_questions(facts, seed)
    order = np.random.default_rng((seed, 31)).permutation(len(facts))
    once = {facts.people[i].name for i in order[: round(share * len(facts))]}
    missing = len(once) * (OFTEN - 1) // OFTEN
    written = replace(facts, people=facts.people + others.people[:missing])
    counts = [1 if person.name in once else OFTEN for person in written]
    texts = biographies(written, OFTEN, order="permuted", exposures=counts, title=True, seed=seed).texts
    run = pretrain_cloze(folder / "run", texts, asked, setup, seed, examples=EPOCHS * len(texts))
    score = evaluate(run, held_out)
    wrong = [not right for right in score.right[0]]
    single = [any(f" {name} " in question for name in once) for question, _ in held_out]
    return {
        "n": score.n,
        "wrong": sum(wrong),
        "n_once": sum(single),
        "n_often": score.n - sum(single),
        "wrong_once": sum(w for w, s in zip(wrong, single, strict=True) if s),
        "wrong_often": sum(w for w, s in zip(wrong, single, strict=True) if not s),
    }


def _cell_name(share: float, seed: int) -> str:
    return f"share-{round(100 * share)}-seed-{seed}"
