"""evaluate: which facts a language model knows, and of whom: by fame, by occupation and by century of birth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from qkv.core.display import Card, percent, percent_interval
from qkv.core.validation import whole
from qkv.errors import QkvError
from qkv.knowledge.datasets.accepted_names import is_accepted
from qkv.knowledge.datasets.facts import Facts, Person
from qkv.knowledge.datasets.pantheon import pantheon
from qkv.knowledge.evaluation import Score, Scores
from qkv.knowledge.intervals import independent_draws, wilson_interval
from qkv.knowledge.language_models.answer_file import Progress, read_signals
from qkv.knowledge.language_models.causal_model import CausalModel, open_causal_model
from qkv.knowledge.language_models.prompts import Question, about, example_people, understood
from qkv.knowledge.language_models.signals import Signals

FAME_GROUPS = (100, 300, 1000, 3000)
"""Ends of the groups of people by their rank of page views in the shipped table."""
MIN_IN_GROUP = 10  # people, for a group of its own
MAX_OCCUPATIONS = 12


class Group(NamedTuple):
    """The answers about a group of people.

    Attributes:
        kind: "page views", "occupation" or "century".
        group: Its name, such as "rank 1 to 100".
        right: Right answers.
        n: All answers.
        low: Lower end of the 95 % interval of the share of right answers (Wilson).
        high: Upper end of it.
    """

    kind: str
    group: str
    right: int
    n: int
    low: float
    high: float


BIRTH = {"city": "birthplace", "country": "country of birth", "year": "year of birth"}
"""What a column is called that holds these facts of birth."""


@dataclass(frozen=True)
class KnownFacts(Scores):
    """What a language model knows: its accuracy, beside a baseline, and by groups of people.

    An answer is right if it is the expected value or an accepted other name of it
    (`qkv.knowledge.datasets.accepted_names`).

    Attributes:
        relation: What was asked for; "" for questions of your own.
        groups: Right answers by fame, occupation and century; empty for questions of your own.
        named: Whom each question is about.
    """

    relation: str = ""
    groups: tuple[Group, ...] = ()
    named: tuple[str, ...] = field(default=(), repr=False)

    @property
    def right(self) -> tuple[tuple[bool, ...], ...]:
        """Whether each answer is right; one row, for the one model."""
        return tuple(
            tuple(
                is_accepted(answer, expected, self.relation)
                for answer, (_, expected) in zip(answers, self.questions, strict=True)
            )
            for answers in self.answers
        )

    def rows(self) -> list[dict[str, Any]]:
        """One row per question, in the form that pandas.DataFrame takes."""
        return [
            {"run": 0, "question": question, "wanted": expected, "answer": answer, "right": right}
            for answer, right, (question, expected) in zip(self.answers[0], self.right[0], self.questions, strict=True)
        ]

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "groups": [group._asdict() for group in self.groups]}

    def card(self) -> Card:
        card = super().card()
        rows = [(name.replace("this run", "this model"), right, interval) for name, right, interval in card.rows]
        rows += [
            (
                f"{g.kind}: {g.group}",
                f"{percent(g.right / g.n)} of {g.n}",
                percent_interval(g.low, g.high),
            )
            for g in self.groups
        ]
        fewer = f" about {self.subjects} subjects, which the intervals count" if self.subjects < self.n else ""
        people = f"{self.n} people asked for their {self.relation}"
        what = people if self.relation and not fewer else f"{self.n} questions{fewer}"
        return replace(card, title=f"{what}, other names of a value accepted", rows=tuple(rows))


def evaluate(
    model: CausalModel | str | Path,
    questions: Facts | Sequence[tuple[str, str]] | None = None,
    *,
    relation: str = "city",
    people: int = 1000,
    seed: int = 0,
    answers: str | Path | None = None,
    offline: bool = True,
    progress: Progress = lambda done, total: None,
) -> KnownFacts:
    """Ask a causal language model for facts, and score its answers.

    Args:
        model: The model, its folder, or its hub name.
        questions: Facts about people, or (question, answer) pairs; the shipped table if None.
        relation: What to ask for, of facts: "city", "country", "year" or "occupation".
        people: How many people of the facts to ask for, drawn by the seed; all if there are no more.
        seed: Seed of the draw.
        answers: File that the answers are appended to; a stopped run continues from it.
        offline: Look only at folders and at what was downloaded before.
        progress: Called with questions done and in all.

    Returns:
        Accuracy with its interval beside that of always giving the most frequent value, and by groups of people.

    Raises:
        QkvError: The folder holds no causal language model, or there are no questions.
        MissingExtra: transformers is not installed.
    """
    if questions is None or isinstance(questions, Facts):
        chosen = draw_people(questions, relation, people, seed)
        asked = [about(person.name, relation) for person in chosen]
        expected = [str(getattr(person, relation)) for person in chosen]
    else:
        chosen = []
        asked, expected = [understood(question) for question, _ in questions], [answer for _, answer in questions]
        if not asked:
            raise QkvError("evaluating", "there are no questions", "Give at least one")
        relation = asked[0].relation if len({question.relation for question in asked}) == 1 else ""
        asked = [question._replace(relation=relation) for question in asked]
    opened = model if isinstance(model, CausalModel) else open_causal_model(model, offline=offline)
    found = read_signals(opened, asked, path=answers, progress=progress)
    return scored(found, expected, relation, chosen)


def scored(found: Signals, expected: Sequence[str], relation: str, people: Sequence[Person]) -> KnownFacts:
    """The scores of answers; `people` are those asked about, for the groups, or none."""
    right = [is_accepted(answer, wanted, relation) for answer, wanted in zip(found.answers, expected, strict=True)]
    n = len(right)
    names = range(n) if people else [question.name or question.text for question in found.questions]
    subjects, draws = len(set(names)), independent_draws(names)
    total = Score.of(sum(right) / n, n, draws)
    ((common, _),) = Counter(expected).most_common(1)
    always = sum(is_accepted(common, wanted, relation) for wanted in expected)
    return KnownFacts(
        total.accuracy,
        total.low,
        total.high,
        n,
        subjects,
        {f"always {common}, the most frequent": Score.of(always / n, n, draws)},
        (total.accuracy,),
        tuple((question.text, wanted) for question, wanted in zip(found.questions, expected, strict=True)),
        (found.answers,),
        relation,
        known_groups(people, right),
        tuple(question.name for question in found.questions),
        unnamed=sum(not question.name for question in found.questions),
    )


def draw_people(facts: Facts | None, relation: str, people: int, seed: int) -> list[Person]:
    """People to ask about, drawn by the seed: those with this fact, of birth or work, who are in no example."""
    whole(f"asking about {people} people", "people", people, 1)
    taken = example_people()
    source = pantheon() if facts is None else facts
    able = [p for p in source if getattr(p, relation, "") and p.name not in taken]
    if not able:
        other = any(relation in p.facts() for p in source)  # as a relation that may mean anything
        problem = f"“{relation}” may mean anything in these facts" if other else "it is known of nobody"
        hint = f"Call it {BIRTH.get(relation, relation)}" if other else "Ask for a relation of the facts"
        raise QkvError(f"asking for {relation}", problem, hint)
    order = np.random.default_rng((seed, 31)).permutation(len(able))[:people]
    return [able[i] for i in order]


def known_groups(people: Sequence[Person], right: Sequence[bool]) -> tuple[Group, ...]:
    """Right answers by fame, occupation and century; groups of fewer than ten people are left out."""
    ranks = {person.name: i + 1 for i, person in enumerate(pantheon())}
    kinds: tuple[tuple[str, Callable[[Person], str]], ...] = (
        ("page views", lambda person: _fame(ranks.get(person.name, 0))),
        ("occupation", lambda person: person.occupation),
        ("century", lambda person: _century(person.year)),
    )
    out: list[Group] = []
    for kind, group_of in kinds:
        counts: dict[str, list[int]] = {}
        for person, ok in zip(people, right, strict=False):
            own = counts.setdefault(group_of(person), [0, 0])
            own[0] += ok
            own[1] += 1
        found = [
            Group(kind, name, a, n, *wilson_interval(a, n))
            for name, (a, n) in counts.items()
            if name and n >= MIN_IN_GROUP
        ]
        if kind == "occupation":
            found = sorted(found, key=lambda group: -group.n)[:MAX_OCCUPATIONS]
            found.sort(key=lambda group: -group.right / group.n)
        else:
            found.sort(key=lambda group: _order(group.group))
        out += found
    return tuple(out)


def _fame(rank: int) -> str:
    """The group of a rank by page views; "" of nobody in the shipped table."""
    if not rank:
        return ""
    first = 1
    for last in FAME_GROUPS:
        if rank <= last:
            return f"rank {first} to {last}"
        first = last + 1
    return f"rank {first} and on"


def _century(year: str) -> str:
    """The century of a year such as "1815" or "384 BC"; "" of anything else."""
    digits = year.removesuffix(" BC")
    if not digits.isdigit() or int(digits) == 0:
        return ""
    number = (int(digits) - 1) // 100 + 1
    return "before Christ" if year.endswith("BC") else "1 to 1500" if number <= 15 else f"{number}th century"


def _order(group: str) -> tuple[int, int]:
    """Ranks and centuries in their order."""
    first = [int(word) for word in group.replace("th", "").split() if word.isdigit()]
    return (0 if group == "before Christ" else 1 if group.startswith("1 to") else 2, first[0] if first else 0)


def questions_about(people: Sequence[Person], relation: str) -> list[Question]:
    """A question about each person."""
    return [about(person.name, relation) for person in people]
