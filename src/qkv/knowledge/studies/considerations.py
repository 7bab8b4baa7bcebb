"""Study "considerations": which answers a language model considers, and whether the right one is among them.

A language model cannot be trained again without a person's text, as the study "ablation" does with small ones. What it
would say can be looked at: the answers that begin with each of the likeliest first words, and those of the other ways
of asking, each with its probability in every way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from qkv.core.display import percent
from qkv.errors import QkvError
from qkv.knowledge.datasets.accepted_names import is_accepted
from qkv.knowledge.datasets.facts import Facts, Person
from qkv.knowledge.datasets.other_names import same_name
from qkv.knowledge.intervals import wilson_interval
from qkv.knowledge.language_models.answer_file import fingerprint
from qkv.knowledge.language_models.causal_model import CausalModel, open_causal_model
from qkv.knowledge.language_models.known_facts import draw_people, questions_about
from qkv.knowledge.language_models.prompts import Question
from qkv.knowledge.language_models.signals import MAX_ANSWER_TOKENS, TOP_FIRST_TOKENS, SignalReader, answer_text
from qkv.knowledge.studies.experiment import Cell, CellCallback, Row, Study, run_cells
from qkv.knowledge.studies.study_files import save_study

PEOPLE = 200
PEOPLE_PER_CELL = 20
KINDS = {
    "first": "the right answer is the likeliest",
    "later": "it is considered, behind another",
    "never": "it is not considered",
}


def study(
    out: str | Path,
    seeds: int,
    minutes: float,
    people: int,
    callback: CellCallback | None,
    model: CausalModel | str | Path | None = None,
    facts: Facts | None = None,
    relation: str = "city",
) -> Study:
    """What a language model considers: the answers about `people` people, drawn by each seed."""
    if model is None:
        problem, hint = "it is about a language model, and none is given", "Give the folder of a Hugging Face model"
        raise QkvError("the study 'considerations'", problem, hint)
    opened = model if isinstance(model, CausalModel) else open_causal_model(model)
    reader, own = SignalReader(opened, relation), fingerprint(opened)
    cells = []
    for seed in range(seeds):
        chosen = draw_people(facts, relation, people or PEOPLE, seed)
        for start in range(0, len(chosen), PEOPLE_PER_CELL):
            part = chosen[start : start + PEOPLE_PER_CELL]
            settings = {"model": own, "relation": relation, "people": [person.name for person in part]}
            cells.append(Cell(f"seed-{seed}-people-{start}", settings, partial(measure, reader, part), ()))
    results = run_cells(out, "considerations", cells, minutes, callback)
    rows = [row for result in results.values() for row in result["people"]]
    title = f"Is the right {relation} among the answers that the model considers?"
    return save_study(out, Study("considerations", title, table(rows), remarks(rows), len(results), len(cells)))


def table(people: Sequence[Row]) -> tuple[Row, ...]:
    """How many people there are of each kind, with the mean probabilities of the right and of the likeliest answer."""
    out = []
    for kind, what in KINDS.items():
        own = [row for row in people if row["kind"] == kind]
        out.append(
            {
                "what": what,
                "people": len(own),
                "share": len(own) / len(people),
                "interval": wilson_interval(len(own), len(people)),
                "likeliest": _mean([row["candidates"][0]["probability"] for row in own]),
                "right": _mean([row["right"] for row in own]) if kind != "never" else None,
            }
        )
    return tuple(out)


def remarks(people: Sequence[Row]) -> tuple[str, ...]:
    """What the candidates have in common, in sentences."""
    covered = _mean([sum(each["probability"] for each in row["candidates"]) for row in people]) or 0.0
    number = _mean([float(len(row["candidates"])) for row in people]) or 0.0
    same = [row["ways_with_the_same_answer"] for row in people]
    return (
        f"A person has {number:.1f} candidates on average, which together have {percent(min(covered, 1.0), 0)} of the "
        "probability; the rest is on answers that were not looked at.",
        f"All ways of asking prefer the same answer for {sum(x == 1.0 for x in same)} of {len(people)} people.",
    )


def measure(reader: SignalReader, people: Sequence[Person], folder: Path) -> Row:
    """The candidates for each person, with their probabilities, and where the right one is among them."""
    relation = reader.relation
    rows = []
    for person, (candidates, same) in zip(people, consider(reader, questions_about(people, relation)), strict=True):
        expected = str(getattr(person, relation))
        right = [is_accepted(each["answer"], expected, relation) for each in candidates]
        kind = "first" if right[0] else "later" if any(right) else "never"
        share = sum(each["probability"] for each, ok in zip(candidates, right, strict=True) if ok)
        rows.append(
            {
                "name": person.name,
                "expected": expected,
                "kind": kind,
                "right": share,
                "ways_with_the_same_answer": same,
                "candidates": candidates,
            }
        )
    return {"people": rows}


def consider(reader: SignalReader, questions: Sequence[Question]) -> list[tuple[list[dict[str, Any]], float]]:
    """The candidate answers to each question, likeliest first, and the share of the ways that prefer the first one.

    Candidates are the answers that begin with each of the likeliest first tokens, and the greedy answers of all ways of
    asking; those that name the same value are one. The probability of a candidate is the mean over the ways.
    """
    model = reader.model
    prompts = [reader.prompts(question) for question in questions]
    token_lists: list[dict[tuple[int, ...], None]] = [{} for _ in questions]
    for way in range(len(reader.ways)):
        found = model.generate([own[way] for own in prompts], MAX_ANSWER_TOKENS, top=TOP_FIRST_TOKENS)
        for tokens, one in zip(token_lists, found, strict=True):
            tokens[one.tokens] = None
        if way == 0:
            starts = [(i, token) for i, one in enumerate(found) for token, _ in one.first if not model.ends[token]]
            rest = model.generate([[*prompts[i][0], token] for i, token in starts], MAX_ANSWER_TOKENS - 1)
            for (i, token), one in zip(starts, rest, strict=True):
                token_lists[i][(token, *one.tokens)] = None
    flat = [(i, tokens) for i, own in enumerate(token_lists) for tokens in own]
    logs = np.array(
        [
            [one.log_probability for one in model.score([prompts[i][way] for i, _ in flat], [t for _, t in flat])]
            for way in range(len(reader.ways))
        ]
    )
    return [
        _merged([(answer_text(model, t), np.exp(logs[:, k])) for k, (i, t) in enumerate(flat) if i == number])
        for number in range(len(questions))
    ]


def _merged(found: Sequence[tuple[str, np.ndarray]]) -> tuple[list[dict[str, Any]], float]:
    """Candidates with their probabilities in each way; those of one name are added up."""
    texts: dict[str, str] = {}
    chances: dict[str, np.ndarray] = {}
    for text, chance in found:
        name = same_name(text)
        if name not in chances or chance.mean() > chances[name].mean():
            texts[name] = text
        chances[name] = chances.get(name, np.zeros(len(chance))) + chance
    order = sorted(chances, key=lambda name: -float(chances[name].mean()))
    every = np.stack([chances[name] for name in order])
    candidates = [
        {"answer": texts[name], "probability": float(chances[name].mean()), "ways": chances[name].tolist()}
        for name in order
    ]
    return candidates, float((every.argmax(0) == 0).mean())


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
