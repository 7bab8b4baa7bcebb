"""Study "extraction": which texts and which training make a fact extractable by questions."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from qkv.knowledge.datasets.templates import biographies
from qkv.knowledge.evaluation import evaluate
from qkv.knowledge.intervals import wilson_interval
from qkv.knowledge.studies.experiment import Cell, CellCallback, Row, Study, run_cells
from qkv.knowledge.studies.setup import (
    StudySetup,
    finetune_on_questions,
    pretrain_cloze,
    sample_people,
    train_next_token,
    training_and_held_out_questions,
)
from qkv.knowledge.studies.study_files import save_study

NEXT_THEN_QUESTIONS, NEXT_WITH_QUESTIONS = "next token; questions after", "next token; questions mixed in"
CLOZE_THEN_QUESTIONS, CLOZE_WITH_QUESTIONS = "cloze; questions after", "cloze; questions mixed in"
RUNS_OF = {
    NEXT_THEN_QUESTIONS: ("base", "tuned"),
    NEXT_WITH_QUESTIONS: ("base",),
    CLOZE_THEN_QUESTIONS: ("base", "tuned"),
    CLOZE_WITH_QUESTIONS: ("run",),
}
"""The folders of the runs of each way of training."""


@dataclass(frozen=True)
class Condition:
    """The form of the biographies (arguments of `biographies`), and how the model is trained on them."""

    versions: int
    order: Literal["fixed", "permuted"]
    name: str
    training: str

    @property
    def text(self) -> str:
        """The condition in words."""
        count = "one version" if self.versions == 1 else f"{self.versions} versions"
        return f"{count}, {self.order}, {self.training}"


CONDITIONS = (
    Condition(1, "fixed", "pronoun", NEXT_THEN_QUESTIONS),
    Condition(5, "fixed", "full", NEXT_THEN_QUESTIONS),
    Condition(1, "permuted", "full", NEXT_THEN_QUESTIONS),
    Condition(5, "permuted", "full", NEXT_THEN_QUESTIONS),
    Condition(5, "permuted", "full", NEXT_WITH_QUESTIONS),
    Condition(1, "fixed", "pronoun", CLOZE_THEN_QUESTIONS),
    Condition(5, "permuted", "full", CLOZE_THEN_QUESTIONS),
    Condition(1, "fixed", "pronoun", CLOZE_WITH_QUESTIONS),
    Condition(5, "permuted", "full", CLOZE_WITH_QUESTIONS),
)
SETUP = StudySetup()


def study(
    out: str | Path, seeds: int = 1, minutes: float = math.inf, people: int = 0, callback: CellCallback | None = None
) -> Study:
    """Accuracy on held-out people under each condition."""
    setup = replace(SETUP, people=people or SETUP.people)
    cells = [
        Cell(
            _cell_name(i, seed),
            {**asdict(condition), **asdict(setup), "seed": seed},
            partial(measure, condition, setup, seed),
            RUNS_OF[condition.training],
        )
        for seed in range(seeds)
        for i, condition in reversed(list(enumerate(CONDITIONS)))
    ]
    results = run_cells(out, "extraction", cells, minutes, callback)
    rows = []
    for i, condition in enumerate(CONDITIONS):
        own = [results[name] for seed in range(seeds) if (name := _cell_name(i, seed)) in results]
        if own:
            right, n = sum(r["right"] for r in own), sum(r["n"] for r in own)
            rows.append(
                {
                    "what": condition.text,
                    "accuracy": right / n,
                    "interval": wilson_interval(right, n),
                    "trained": sum(r["trained"] for r in own) / len(own),
                    "n": n,
                }
            )
    remarks = (
        "Accuracy is on the birthplaces of people without training questions; `trained` is that on the training "
        "questions.",
    )
    return save_study(
        out, Study("extraction", "What makes a fact extractable", tuple(rows), remarks, len(results), len(cells))
    )


def measure(condition: Condition, setup: StudySetup, seed: int, folder: Path) -> Row:
    """Train one model under a condition, and score it on the people without training questions."""
    facts, _ = sample_people(setup.people, seed)
    asked, held_out = training_and_held_out_questions(facts, seed)
    cloze = condition.training in (CLOZE_WITH_QUESTIONS, CLOZE_THEN_QUESTIONS)
    texts = biographies(
        facts, condition.versions, order=condition.order, name=condition.name, seed=seed, title=cloze
    ).texts
    if condition.training == CLOZE_WITH_QUESTIONS:
        run = pretrain_cloze(folder / "run", texts, asked, setup, seed)
    elif condition.training == CLOZE_THEN_QUESTIONS:
        run = finetune_on_questions(folder, pretrain_cloze(folder / "base", texts, (), setup, seed), asked, seed)
    else:
        run = train_next_token(folder, texts, asked, setup, seed, mixed=condition.training == NEXT_WITH_QUESTIONS)
    score = evaluate(run, held_out)
    return {
        "right": round(score.accuracy * score.n),
        "n": score.n,
        "trained": evaluate(run, asked).accuracy,
        "parameters": sum(p.numel() for p in run.model.parameters()),
    }


def _cell_name(index: int, seed: int) -> str:
    return f"condition-{index}-seed-{seed}"
