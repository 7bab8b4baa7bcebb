"""extraction: what makes a fact that was read extractable: versions, order, and how and when it is asked for."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from qkv.knowledge.datasets.templates import biographies
from qkv.knowledge.evaluation import evaluate
from qkv.knowledge.intervals import wilson
from qkv.knowledge.studies.experiment import Cell, Row, Study, Watch, finish, work
from qkv.knowledge.studies.setup import StudySetup, drilled, halves, people, reading, tuned


@dataclass(frozen=True)
class Rung:
    """How people are written about, and how the text and the questions are taught."""

    versions: int
    order: str
    name: str
    way: str

    @property
    def what(self) -> str:
        """In words."""
        count = "one version" if self.versions == 1 else f"{self.versions} versions"
        return f"{count}, {self.order}, {self.way}"


AFTER, MIXED = "read; questions after", "read; questions mixed in"
DRILLED_AFTER, DRILLED = "drilled; questions after", "drilled; questions mixed in"
RUNGS = (
    Rung(1, "fixed", "pronoun", AFTER),
    Rung(5, "fixed", "full", AFTER),
    Rung(1, "permuted", "full", AFTER),
    Rung(5, "permuted", "full", AFTER),
    Rung(5, "permuted", "full", MIXED),
    Rung(1, "fixed", "pronoun", DRILLED_AFTER),
    Rung(5, "permuted", "full", DRILLED_AFTER),
    Rung(1, "fixed", "pronoun", DRILLED),
    Rung(5, "permuted", "full", DRILLED),
)
SCHOOL = StudySetup()


def study(
    out: str | Path, seeds: int = 1, minutes: float = math.inf, count: int = 0, callback: Watch | None = None
) -> Study:
    """Accuracy on held-out people, rung by rung."""
    school = replace(SCHOOL, people=count or SCHOOL.people)
    cells = [
        Cell(_name(i, seed), {**asdict(rung), **asdict(school), "seed": seed}, partial(measure, rung, school, seed))
        for seed in range(seeds)
        for i, rung in reversed(list(enumerate(RUNGS)))
    ]
    results = work(out, cells, minutes, callback)
    rows = []
    for i, rung in enumerate(RUNGS):
        mine = [results[name] for seed in range(seeds) if (name := _name(i, seed)) in results]
        if mine:
            right, n = sum(r["right"] for r in mine), sum(r["n"] for r in mine)
            trained = sum(r["trained"] for r in mine) / len(mine)
            rows.append(
                {"what": rung.what, "accuracy": right / n, "interval": wilson(right, n), "trained": trained, "n": n}
            )
    remarks = ("Asked: where people were born on whom no question was trained; `trained` is the score on the others.",)
    return finish(
        out, Study("extraction", "What makes a fact extractable", tuple(rows), remarks, len(results), len(cells))
    )


def measure(rung: Rung, school: StudySetup, seed: int, folder: Path) -> Row:
    """Teach one model as the rung says, and ask it about the people whose questions it never saw."""
    facts, _ = people(school.people, seed)
    asked, held = halves(facts, seed)
    texts = biographies(
        facts, rung.versions, order=rung.order, name=rung.name, seed=seed, title=rung.way in (DRILLED, DRILLED_AFTER)
    ).texts
    if rung.way == DRILLED:
        run = drilled(folder / "run", texts, asked, school, seed)
    elif rung.way == DRILLED_AFTER:
        run = tuned(folder, drilled(folder / "base", texts, (), school, seed), asked, seed)
    else:
        run = reading(folder, texts, asked, school, seed, mixed=rung.way == MIXED)
    score = evaluate(run, held)
    return {
        "right": round(score.accuracy * score.n),
        "n": score.n,
        "trained": evaluate(run, asked).accuracy,
        "parameters": sum(p.numel() for p in run.model.parameters()),
    }


def _name(i: int, seed: int) -> str:
    return f"rung-{i}-seed-{seed}"
