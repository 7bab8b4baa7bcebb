"""Study "ablation": accuracy with and without a person's text in pretraining, and the source of made-up answers."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np

from qkv.errors import with_full_stop
from qkv.knowledge.confidence.features import answer_features
from qkv.knowledge.datasets.facts import Facts, Person
from qkv.knowledge.datasets.templates import biographies, question_text, questions
from qkv.knowledge.evaluation import accuracy
from qkv.knowledge.intervals import difference_interval, wilson_interval
from qkv.knowledge.studies.experiment import Cell, CellCallback, Row, Study, run_cells
from qkv.knowledge.studies.setup import StudySetup, pretrain_cloze, sample_people
from qkv.knowledge.studies.study_files import save_study

SETUP = StudySetup(people=400, exposures=60)
MIN_PER_CITY = 20  # people of Pantheon; if every place had one person, there would be no frequent place to guess
SURE_PROBABILITY = 0.9
N_FREQUENT_PLACES = 10
MAX_EXAMPLES = 5
VISIBLE = ("is_a_place", "probability", "surely")  # what a user sees of an answer
ROMAN_NUMERAL = re.compile("[IVXL]+,?")


def study(
    out: str | Path, seeds: int = 1, minutes: float = math.inf, people: int = 0, callback: CellCallback | None = None
) -> Study:
    """Answers about the same people from a model whose text has them, and from one whose text does not."""
    setup = replace(SETUP, people=people or SETUP.people)
    cells = [
        Cell(
            f"{kind}-seed-{seed}",
            {**asdict(setup), "text": kind, "seed": seed},
            partial(measure, kind == "deleted", setup, seed),
            ("run",),
        )
        for seed in range(seeds)
        for kind in ("whole", "deleted")
    ]
    results = run_cells(out, "ablation", cells, minutes, callback)
    whole = [r for name, r in results.items() if name.startswith("whole")]
    deleted = [r for name, r in results.items() if name.startswith("deleted")]
    rows = [
        _accuracy_row(what, own, key)
        for what, own, key in (
            ("their text was read", whole, "right"),
            ("their text was deleted", deleted, "right"),
            ("always the most frequent place", deleted or whole, "guessed"),
        )
        if own
    ]
    for what, own in (("remembered: their text was read", whole), ("made up: their text was deleted", deleted)):
        if own:
            rows.append({"what": what, **{key: float(np.mean([r[key] for r in own])) for key in VISIBLE}})
    remarks = describe(deleted) if deleted else ()
    title = finding(*((sum(r["right"] for r in own), sum(r["n"] for r in own)) for own in (whole, deleted)))
    return save_study(out, Study("ablation", title, tuple(rows), remarks, len(results), len(cells)))


def finding(whole: tuple[int, int], deleted: tuple[int, int]) -> str:
    """The title, from (right, asked) with and without the text; it states a difference only where one is shown."""
    if whole[1] and deleted[1] and difference_interval(whole, deleted)[0] > 0:
        return "Without their text, more answers are made up"
    return "Answers with and without a person's text"


def measure(deleted: bool, setup: StudySetup, seed: int, folder: Path) -> Row:
    """Train one model, and ask it about a quarter of the people, who have no training questions."""
    facts, _ = sample_people(setup.people, seed, MIN_PER_CITY)
    training, rest = facts.split(0.5, seed)
    asked_about, _ = rest.split(0.5, seed)
    removed = {person.name for person in asked_about} if deleted else set()
    kept = replace(facts, people=tuple(p for p in facts if p.name not in removed))
    texts = biographies(kept, 1, title=True, seed=seed).texts
    run = pretrain_cloze(folder / "run", texts, list(questions(training)), setup, seed)
    held_out = list(questions(asked_about))
    found = answer_features(run, [question for question, _ in held_out], n_samples=0)
    probabilities = np.exp(found.column("log_probability"))
    frequent = [city for city, _ in Counter(p.city for p in training).most_common(N_FREQUENT_PLACES)]
    places = {p.city for p in kept}
    return {
        "n": len(held_out),
        "right": round(accuracy(found.answers, held_out) * len(held_out)),
        "guessed": round(accuracy([frequent[0]] * len(held_out), held_out) * len(held_out)),
        "is_a_place": float(np.mean([answer in places for answer in found.answers])),
        "probability": float(probabilities.mean()),
        "surely": float((probabilities >= SURE_PROBABILITY).mean()),
        **answer_sources(asked_about, found.answers, kept, frequent),
    }


def answer_sources(asked: Facts, answers: Sequence[str], known: Facts, frequent: Sequence[str]) -> Row:
    """Shares of answers that are the birthplace of a person who shares a part of the name, or a frequent place.

    `by_name` counts the former, `by_prior` the latter among the others. `by_chance` is what `by_name` would be on
    average over random permutations of the answers, and `common` the share of known people born in a frequent place.
    """
    people_by_part: dict[str, list[Person]] = {}
    for person in known:
        for part in name_parts(person.name):
            people_by_part.setdefault(part, []).append(person)
    answer_counts = Counter(answers)
    by_name, by_prior, by_chance = 0, 0, 0.0
    examples: list[str] = []
    for person, answer in zip(asked, answers, strict=True):
        namesakes = [
            other
            for part in name_parts(person.name)
            for other in people_by_part.get(part, [])
            if other.name != person.name
        ]
        source = next((other for other in namesakes if other.city == answer), None)
        by_chance += sum(answer_counts[city] for city in {other.city for other in namesakes}) / len(asked)
        by_name += source is not None
        by_prior += source is None and answer in frequent
        if source is not None and answer != person.city and len(examples) < MAX_EXAMPLES:
            examples.append(
                f"{question_text(person.name)} {answer} (the birthplace of {source.name}; right is {person.city})"
            )
    return {
        "by_name": by_name / len(asked),
        "by_chance": by_chance / len(asked),
        "by_prior": by_prior / len(asked),
        "common": sum(person.city in frequent for person in known) / len(known),
        "examples": examples,
    }


def name_parts(name: str) -> list[str]:
    """The words of a name that identify: no particles, initials or Roman numerals."""
    return [
        part
        for part in dict.fromkeys(name.split())
        if len(part) > 2 and part[0].isupper() and not ROMAN_NUMERAL.fullmatch(part)
    ]


def describe(deleted: Sequence[Row]) -> tuple[str, ...]:
    """What the model answers about people who are not in its text, in sentences."""
    name, chance, prior, common = (
        100 * float(np.mean([r[key] for r in deleted])) for key in ("by_name", "by_chance", "by_prior", "common")
    )
    examples = [text for r in deleted for text in r["examples"]][:MAX_EXAMPLES]
    return (
        f"If a person is not in the text, {name:.0f} % of the answers are the birthplace of somebody who shares a part "
        f"of the name ({chance:.0f} % would be by chance), and {prior:.0f} % more are one of the {N_FREQUENT_PLACES} "
        f"most frequent places (where {common:.0f} % of the people in the text were born).",
        *((with_full_stop(f"Such answers are true of another person: {'; '.join(examples)}"),) if examples else ()),
    )


def _accuracy_row(what: str, results: Sequence[Row], key: str) -> Row:
    right, n = sum(r[key] for r in results), sum(r["n"] for r in results)
    return {"what": what, "accuracy": right / n, "interval": wilson_interval(right, n), "n": n}
