"""ablation: why pretraining matters, what a user can see of made-up answers, and whose answers they are."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np

from qkv.knowledge.confidence.features import signals
from qkv.knowledge.datasets.facts import Facts, Person
from qkv.knowledge.datasets.templates import biographies, questions, worded
from qkv.knowledge.evaluation import share
from qkv.knowledge.intervals import wilson
from qkv.knowledge.studies.experiment import Cell, Row, Study, Watch, finish, work
from qkv.knowledge.studies.setup import StudySetup, drilled, people

SCHOOL = StudySetup(people=400, exposures=60)
LEAST = 20  # people of Pantheon that a city has: where every place is somebody's own, there is no prior to guess by
SURE = 0.9
COMMON = 10  # most frequent answers that count as the prior
EXAMPLES = 5


def study(
    out: str | Path, seeds: int = 1, minutes: float = math.inf, count: int = 0, callback: Watch | None = None
) -> Study:
    """The same people asked for after their text was read, and after it was deleted before pretraining."""
    school = replace(SCHOOL, people=count or SCHOOL.people)
    cells = [
        Cell(f"{kind}-seed-{seed}", {**asdict(school), "seed": seed}, partial(measure, kind == "deleted", school, seed))
        for seed in range(seeds)
        for kind in ("whole", "deleted")
    ]
    results = work(out, cells, minutes, callback)
    whole = [r for name, r in results.items() if name.startswith("whole")]
    deleted = [r for name, r in results.items() if name.startswith("deleted")]
    rows = [
        _row(what, mine, key)
        for what, mine, key in (
            ("their text was read", whole, "right"), ("their text was deleted", deleted, "right"),
            ("always the most frequent place", deleted or whole, "guessed"),
        )
        if mine
    ]  # fmt: skip
    for what, mine in (("remembered: their text was read", whole), ("made up: their text was deleted", deleted)):
        if mine:
            rows.append({"what": what, **{key: float(np.mean([r[key] for r in mine])) for key in SEEN}})
    remarks = told(deleted) if deleted else ()
    return finish(
        out, Study("ablation", "What was not read is made up", tuple(rows), remarks, len(results), len(cells))
    )


SEEN = ("is_a_place", "probability", "surely")
NUMBER = re.compile("[IVXL]+,?")


def measure(deleted: bool, school: StudySetup, seed: int, folder: Path) -> Row:
    """Teach one model, and ask it about people that no question in training was about."""
    facts, _ = people(school.people, seed, LEAST)
    trained, rest = facts.split(0.5, seed)
    asked_about, _ = rest.split(0.5, seed)
    gone = {person.name for person in asked_about} if deleted else set()
    kept = replace(facts, people=tuple(p for p in facts if p.name not in gone))
    texts = biographies(kept, 1, title=True, seed=seed).texts
    run = drilled(folder / "run", texts, list(questions(trained)), school, seed)
    held = list(questions(asked_about))
    found = signals(run, [question for question, _ in held], samples=0)
    chances = np.exp(found.column("log_probability"))
    common = [city for city, _ in Counter(p.city for p in trained).most_common(COMMON)]
    places = {p.city for p in kept}
    return {
        "n": len(held),
        "right": round(share(found.answers, held) * len(held)),
        "guessed": round(share([common[0]] * len(held), held) * len(held)),
        "is_a_place": float(np.mean([said in places for said in found.answers])),
        "probability": float(chances.mean()),
        "surely": float((chances >= SURE).mean()),
        **borrowed(asked_about, found.answers, kept, common),
    }


def borrowed(asked: Facts, answers: Sequence[str], known: Facts, common: Sequence[str]) -> Row:
    """Whose answers they are: of somebody who shares a part of the name, of the most frequent, of neither.

    `by_chance` is the share that would be somebody's with a part of the name if the same answers had been dealt out
    at random, and `common` the share of known people to whom the most frequent ones belong.
    """
    parts: dict[str, list[Person]] = {}
    for person in known:
        for part in parts_of(person.name):
            parts.setdefault(part, []).append(person)
    said_often = Counter(answers)
    by_name, by_prior, by_chance = 0, 0, 0.0
    examples: list[str] = []
    for person, said in zip(asked, answers, strict=True):
        like = [other for part in parts_of(person.name) for other in parts.get(part, []) if other.name != person.name]
        lender = next((other for other in like if other.city == said), None)
        by_chance += sum(said_often[city] for city in {other.city for other in like}) / len(asked)
        by_name += lender is not None
        by_prior += lender is None and said in common
        if lender is not None and said != person.city and len(examples) < EXAMPLES:
            examples.append(f"{worded(person.name)} {said} (so was {lender.name}; it was {person.city})")
    return {
        "by_name": by_name / len(asked), "by_chance": by_chance / len(asked), "by_prior": by_prior / len(asked),
        "common": sum(person.city in common for person in known) / len(known), "examples": examples,
    }  # fmt: skip


def parts_of(name: str) -> list[str]:
    """The parts of a name that say something: no particles, initials or numbers."""
    return [part for part in dict.fromkeys(name.split()) if len(part) > 2 and part[0].isupper() and not _numeral(part)]


def told(deleted: Sequence[Row]) -> tuple[str, ...]:
    """In words, what the model does for a name that it never saw."""
    name, chance, prior, common = (
        100 * float(np.mean([r[key] for r in deleted])) for key in ("by_name", "by_chance", "by_prior", "common")
    )
    examples = [text for r in deleted for text in r["examples"]][:EXAMPLES]
    return (
        f"For a name it never read, {name:.0f} % of the answers are those of somebody who shares a part of it "
        f"({chance:.0f} % would be by chance), and {prior:.0f} % more are one of the {COMMON} most frequent "
        f"(to which {common:.0f} % of the people read of belong).",
        *((f"Taken for true, they would move people: {'; '.join(examples)}.",) if examples else ()),
    )


def _numeral(part: str) -> bool:
    return NUMBER.fullmatch(part) is not None


def _row(what: str, results: Sequence[Row], key: str) -> Row:
    right, n = sum(r[key] for r in results), sum(r["n"] for r in results)
    return {"what": what, "accuracy": right / n, "interval": wilson(right, n), "n": n}
