"""Biographies and questions from facts by templates; the name in a question; questions about invented names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Literal

import numpy as np

from qkv.errors import QkvError
from qkv.knowledge.datasets.facts import RELATIONS, Facts, Person, Questions, Texts
from qkv.train.data.salient_spans import find_salient_spans

SENTENCES: dict[str, tuple[str, ...]] = {
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
"""Five wordings per relation, with the value last. The order of the relations is that of `order="fixed"`."""
OTHER_SENTENCES = (
    "{whose} {relation} is {value}.",
    "The {relation} that {who} had was {value}.",
    "{who} had the {relation} {value}.",
    "As for {whose} {relation}, it is {value}.",
    "If you look up {whose} {relation}, you find {value}.",
)
QUESTIONS = {
    "city": "Where was {name} born?",
    "country": "Which country did {name} come from?",
    "year": "When was {name} born?",
    "occupation": "What did {name} work as?",
}
OTHER_QUESTION = "What is the {relation} of {name}?"
MAX_VERSIONS = len(OTHER_SENTENCES)
ORDERS, NAME_FORMS = ("fixed", "permuted"), ("full", "pronoun")


def biographies(
    facts: Facts,
    versions: int = 1,
    *,
    order: Literal["fixed", "permuted"] = "fixed",
    name: str = "full",
    exposures: int | Sequence[int] | None = None,
    title: bool = False,
    seed: int = 0,
) -> Texts:
    """Write biographies of people by templates, one sentence per fact.

    The text about a person depends on the person and the seed only, not on the other people.

    Args:
        facts: The people.
        versions: Number of different biographies of each person, 1 to 5; every sentence is worded differently in each.
        order: "fixed", or "permuted" for a random order of the sentences in each version.
        name: "full" for the name in every sentence, or "pronoun" for the name in the first sentence only.
        exposures: Number of biographies of each person: one number, or one per person (0 leaves the person out). The
            versions are repeated in turn. If left out, every version is written once.
        title: Whether each biography begins with the name and a full stop, which cloze training needs.
        seed: Seed of wordings and order.

    Returns:
        The biographies: a first one of everybody, then a second one, and so on.

    Raises:
        QkvError: An argument is out of range, or nothing is known about somebody.

    Example:
        >>> from qkv.knowledge import Facts, Person, biographies
        >>> facts = Facts((Person("Ada Lovelace", city="London", occupation="mathematician"),))
        >>> for text in biographies(facts, versions=2, name="pronoun", seed=2):
        ...     print(text)
        Ada Lovelace worked as a mathematician. Their birthplace was London.
        What Ada Lovelace did for a living was the work of a mathematician. Their life began in London.
    """
    request = "writing biographies"
    if versions not in range(1, MAX_VERSIONS + 1):
        raise QkvError(request, f"versions is {versions}", f"Ask for 1 to {MAX_VERSIONS} versions of each person")
    if order not in ORDERS or name not in NAME_FORMS:
        raise QkvError(request, f"order is {order!r} and name {name!r}", "Use fixed or permuted, and full or pronoun")
    counts = (
        list(exposures)
        if isinstance(exposures, Sequence)
        else [versions if exposures is None else exposures] * len(facts)
    )
    if len(counts) != len(facts) or not counts or min(counts) < 0 or max(counts) == 0:
        raise QkvError(
            request, f"exposures are {counts[:5]} for {len(facts)} people", "Give one number, or one for each person"
        )
    made = [_versions(person, versions, order, name, seed) for person in facts]
    if title:
        made = [[f"{person.name}. {text}" for text in each] for person, each in zip(facts, made, strict=True)]
    rounds = range(max(counts))
    return Texts(tuple(made[i][r % versions] for r in rounds for i, count in enumerate(counts) if r < count))


def questions(facts: Facts, relations: Sequence[str] = ("city",)) -> Questions:
    """Write questions about people, with answers.

    Args:
        facts: The people.
        relations: What to ask for: "city", "country", "year", "occupation", or any other relation of the facts.

    Returns:
        One question for each person and relation that is known.

    Raises:
        QkvError: A relation is known of nobody.

    Example:
        >>> from qkv.knowledge import Facts, Person, questions
        >>> facts = Facts((Person("Ada Lovelace", city="London", year="1815"),))
        >>> questions(facts, ["city", "year"]).pairs
        (('Where was Ada Lovelace born?', 'London'), ('When was Ada Lovelace born?', '1815'))
    """
    known = {relation for person in facts for relation in person.facts()}
    unknown = [relation for relation in relations if relation not in known]
    if unknown:
        raise QkvError(
            f"asking for {', '.join(unknown)}", f"the facts have {', '.join(sorted(known))}", "Ask for one of these"
        )
    pairs = [
        (question_text(person.name, r), person.facts()[r]) for person in facts for r in relations if r in person.facts()
    ]
    return Questions(tuple(pairs))


def question_text(name: str, relation: str = "city") -> str:
    """The question for a relation of a person."""
    return QUESTIONS.get(relation, OTHER_QUESTION).format(name=name, relation=relation)


def find_name(question: str) -> tuple[int, int] | None:
    """Character positions [first, last) of the name in a question, or None if it has none.

    They are known if the question was written by a template. In any other question it is the longest salient span that
    is not a number.
    """
    for pattern in _question_patterns():
        if found := pattern.fullmatch(question.strip()):
            shift = len(question) - len(question.lstrip())
            first, last = found.span("name")
            return first + shift, last + shift
    spans = [(a, b) for a, b in find_salient_spans(question) if not question[a:b].isdigit()]
    return max(spans, key=lambda span: span[1] - span[0], default=None)


def name_span(question: str) -> tuple[int, int]:
    """As `find_name`, with the whole question in place of a name that is not there."""
    return find_name(question) or (0, len(question))


def with_invented_names(asked: Sequence[str], seed: int = 0) -> list[str]:
    """The same questions with invented names, made of parts of the names in them; none if there are too few names."""
    spans = [name_span(question) for question in asked]
    names = list(dict.fromkeys(question[first:last] for question, (first, last) in zip(asked, spans, strict=True)))
    try:
        invented = Facts(tuple(map(Person, names))).invented_names(len(names), seed)
    except QkvError:
        return []
    new = dict(zip(names, invented, strict=True))
    return [q[:first] + new[q[first:last]] + q[last:] for q, (first, last) in zip(asked, spans, strict=True)]


def _versions(person: Person, versions: int, order: str, name: str, seed: int) -> list[str]:
    """The versions of one person's biography."""
    random = np.random.default_rng((seed, 14, *person.name.encode()))
    known = person.facts()
    relations = [r for r in (*SENTENCES, *(r for r in known if r not in RELATIONS)) if r in known]
    if not relations:
        raise QkvError(f"writing about {person.name}", "nothing is known", "Leave out people without facts")
    wordings = {r: random.permutation(MAX_VERSIONS) for r in relations}
    out = []
    for version in range(versions):
        positions = random.permutation(len(relations)) if order == "permuted" else range(len(relations))
        sentences = []
        for place, i in enumerate(positions):
            relation = relations[int(i)]
            template = SENTENCES.get(relation, OTHER_SENTENCES)[int(wordings[relation][version])]
            sentences.append(_sentence(template, person.name, relation, known[relation], place == 0 or name == "full"))
        out.append(" ".join(sentences))
    return out


def _sentence(template: str, name: str, relation: str, value: str, full: bool) -> str:
    a = "an" if value[:1].lower() in "aeiou" else "a"
    who = (
        {"who": name, "whose": f"{name}'s", "was": "was"} if full else {"who": "they", "whose": "their", "was": "were"}
    )
    text = template.format(**who, a=a, relation=relation, value=value)
    return text[0].upper() + text[1:] if not full else text


@cache
def _question_patterns() -> tuple[re.Pattern[str], ...]:
    """The question templates as patterns with a group for the name."""
    templates = (*QUESTIONS.values(), OTHER_QUESTION)
    return tuple(
        re.compile(re.escape(t).replace(r"\{name\}", "(?P<name>.+)").replace(r"\{relation\}", ".+?")) for t in templates
    )
