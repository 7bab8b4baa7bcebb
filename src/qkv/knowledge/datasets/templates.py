"""Texts from facts: biographies with the dials that decide what can be extracted; and questions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import numpy as np

from qkv.errors import QkvError
from qkv.knowledge.datasets.facts import RELATIONS, Facts, Person, Questions, Texts

WORDINGS: dict[str, tuple[str, ...]] = {
    "occupation": (
        "{who} worked as {a} {value}.",
        "{whose} occupation was {value}.",
        "{who} {was} known as {a} {value}.",
        "{who} made a name as {a} {value}.",
        "What {who} did for a living was the work of {a} {value}.",
    ),
    "country": (
        "{who} came from {value}.",
        "{whose} native land was {value}.",
        "{who} {was} at home in {value}.",
        "The country that {who} came from was {value}.",
        "{whose} family lived in {value}.",
    ),
    "year": (
        "{who} {was} born in the year {value}.",
        "{whose} year of birth was {value}.",
        "{who} came to life in {value}.",
        "The year in which {who} {was} born was {value}.",
        "{whose} birth fell in the year {value}.",
    ),
    "city": (
        "{who} {was} born in {value}.",
        "{whose} birthplace was {value}.",
        "{who} first saw the light of day in {value}.",
        "The place where {who} {was} born was {value}.",
        "{whose} life began in {value}.",
    ),
}
"""Five wordings of each relation, the asked-for value last; the relations in their fixed order."""
OTHER = (
    "{whose} {relation} is {value}.",
    "The {relation} that {who} had was {value}.",
    "{who} had the {relation} {value}.",
    "As for {whose} {relation}, it is {value}.",
    "If you look up {whose} {relation}, you find {value}.",
)
ASKED = {
    "city": "Where was {name} born?",
    "country": "Which country did {name} come from?",
    "year": "When was {name} born?",
    "occupation": "What did {name} work as?",
}
ASKED_OTHER = "What is the {relation} of {name}?"
VERSIONS = len(OTHER)
ORDERS, NAMES = ("fixed", "permuted"), ("full", "pronoun")


def biographies(
    facts: Facts,
    versions: int = 1,
    *,
    order: str = "fixed",
    name: str = "full",
    exposures: int | Sequence[int] | None = None,
    title: bool = False,
    seed: int = 0,
) -> Texts:
    """Biographies of people, `exposures` of each in turn: their versions, over and over.

    A version of a person has its own wording of every sentence, and with order `permuted` its own order of them. With
    name `pronoun`, only the first sentence says who it is about. Left out, exposures is one of each version; a list
    has a number for each person, who is then not in the text at all where it is 0. With `title`, each biography begins
    with the name and a full stop, as drills want it.
    """
    asked = "writing biographies"
    if versions not in range(1, VERSIONS + 1):
        raise QkvError(asked, f"versions is {versions}", f"Ask for 1 to {VERSIONS} versions of each person")
    if order not in ORDERS or name not in NAMES:
        raise QkvError(asked, f"order is {order!r} and name {name!r}", "Use fixed or permuted, and full or pronoun")
    counts = (
        list(exposures)
        if isinstance(exposures, Sequence)
        else [versions if exposures is None else exposures] * len(facts)
    )
    if len(counts) != len(facts) or not counts or min(counts) < 0 or max(counts) == 0:
        raise QkvError(
            asked, f"exposures are {counts[:5]} for {len(facts)} people", "Give one number, or one for each person"
        )
    made = [_versions(person, versions, order, name, seed) for person in facts]
    if title:
        made = [[f"{person.name}. {text}" for text in each] for person, each in zip(facts, made, strict=True)]
    rounds = range(max(counts))
    return Texts(tuple(made[i][r % versions] for r in rounds for i, count in enumerate(counts) if r < count))


def questions(facts: Facts, relations: Sequence[str] = ("city",)) -> Questions:
    """Questions about people, with answers: one for each relation that is known of them."""
    known = {relation for person in facts for relation in person.facts()}
    strange = [relation for relation in relations if relation not in known]
    if strange:
        raise QkvError(
            f"asking for {', '.join(strange)}", f"the facts have {', '.join(sorted(known))}", "Ask for those"
        )
    pairs = [(worded(person.name, r), person.facts()[r]) for person in facts for r in relations if r in person.facts()]
    return Questions(tuple(pairs))


def worded(name: str, relation: str = "city") -> str:
    """The question for a relation of somebody."""
    return ASKED.get(relation, ASKED_OTHER).format(name=name, relation=relation)


def name_in(question: str) -> tuple[int, int]:
    """Where the name stands in a question (first, past last character): by its wording, or by what is salient in it."""
    for pattern in _patterns():
        if found := pattern.fullmatch(question.strip()):
            shift = len(question) - len(question.lstrip())
            first, last = found.span("name")
            return first + shift, last + shift
    from qkv.train.data.salient_spans import salient

    spans = [(a, b) for a, b in salient(question) if not question[a:b].isdigit()]
    return max(spans, key=lambda span: span[1] - span[0], default=(0, len(question)))


def about_nobody(asked: Sequence[str], seed: int = 0) -> list[str]:
    """The same questions about names that nobody has, put together from those asked about; none if they are too few."""
    places = [name_in(question) for question in asked]
    names = list(dict.fromkeys(question[first:last] for question, (first, last) in zip(asked, places, strict=True)))
    try:
        invented = Facts(tuple(map(Person, names))).invented(len(names), seed)
    except QkvError:
        return []
    new = dict(zip(names, invented, strict=True))
    return [q[:first] + new[q[first:last]] + q[last:] for q, (first, last) in zip(asked, places, strict=True)]


def _versions(person: Person, versions: int, order: str, name: str, seed: int) -> list[str]:
    """The versions of one person; their choices depend on seed and name alone, not on who else is there."""
    random = np.random.default_rng((seed, 14, *person.name.encode()))
    known = person.facts()
    relations = [r for r in (*WORDINGS, *(r for r in known if r not in RELATIONS)) if r in known]
    if not relations:
        raise QkvError(f"writing about {person.name}", "nothing is known", "Leave out people without facts")
    wordings = {r: random.permutation(VERSIONS) for r in relations}
    out = []
    for version in range(versions):
        turn = random.permutation(len(relations)) if order == "permuted" else range(len(relations))
        sentences = []
        for place, i in enumerate(turn):
            relation = relations[int(i)]
            wording = WORDINGS.get(relation, OTHER)[int(wordings[relation][version])]
            sentences.append(_sentence(wording, person.name, relation, known[relation], place == 0 or name == "full"))
        out.append(" ".join(sentences))
    return out


def _sentence(wording: str, name: str, relation: str, value: str, full: bool) -> str:
    a = "an" if value[:1].lower() in "aeiou" else "a"
    who = (
        {"who": name, "whose": f"{name}'s", "was": "was"} if full else {"who": "they", "whose": "their", "was": "were"}
    )
    text = wording.format(**who, a=a, relation=relation, value=value)
    return text[0].upper() + text[1:] if not full else text


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    wordings = (*ASKED.values(), ASKED_OTHER)
    return tuple(
        re.compile(re.escape(w).replace(r"\{name\}", "(?P<name>.+)").replace(r"\{relation\}", ".+?")) for w in wordings
    )
