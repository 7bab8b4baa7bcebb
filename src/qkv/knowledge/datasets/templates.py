"""Biographies and questions from facts by templates; the name in a question; questions about invented names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Literal

import numpy as np

from qkv.errors import QkvError
from qkv.knowledge.datasets.facts import RELATIONS, Facts, Person, Questions, Texts
from qkv.train.data.question_frames import match_frame
from qkv.train.data.salient_spans import COMMON, find_salient_spans

SPOKEN_WITH_VOWEL = re.compile(r"(honest|honou?r|hour|heir)")
SPOKEN_WITH_CONSONANT = re.compile(r"(uni(?!n|m)|us(?=[aeiu])|ur(?=[aeiou])|uk|ut[aeiou]|eu|ew|one\b|once\b)")
"""Beginnings of words whose first letter says the wrong thing about the article."""

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
    "The {relation} of {whom} is {value}.",
    "{who} {has} the {relation} {value}.",
    "As for {whose} {relation}, it is {value}.",
    "If you look up {whose} {relation}, you find {value}.",
)
"""Of relations without wordings of their own, which people and things may have."""
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
    statements: Mapping[str, Sequence[str]] | None = None,
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
        statements: Sentences for some relations, with {subject} and {object}, instead of the built-in ones.
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
    own = _checked(statements or {}, ("subject", "object"))
    made = [_versions(person, versions, order, name, seed, own) for person in facts]
    if title:
        made = [[f"{person.name}. {text}" for text in each] for person, each in zip(facts, made, strict=True)]
    rounds = range(max(counts))
    return Texts(tuple(made[i][r % versions] for r in rounds for i, count in enumerate(counts) if r < count))


def questions(
    facts: Facts, relations: Sequence[str] = ("city",), wordings: Mapping[str, Sequence[str]] | None = None
) -> Questions:
    """Write questions about people or things, with answers.

    Args:
        facts: The people or things.
        relations: What to ask for: "city", "country", "year", "occupation", or any other relation of the facts.
        wordings: Questions for some relations, with {subject}, instead of the built-in ones.

    Returns:
        One question for each person, each relation that is known, and each of its wordings.

    Raises:
        QkvError: A relation is known of nobody, a wording lacks {subject}, or two relations have the same one.

    Example:
        >>> from qkv.knowledge import Facts, Person, questions
        >>> facts = Facts((Person("Ada Lovelace", city="London", year="1815"),))
        >>> questions(facts, ["city", "year"]).pairs
        (('Where was Ada Lovelace born?', 'London'), ('When was Ada Lovelace born?', '1815'))
        >>> questions(facts, ["year"], {"year": ["In which year did {subject} come to life?"]}).pairs
        (('In which year did Ada Lovelace come to life?', '1815'),)
    """
    known = {relation for person in facts for relation in person.facts()}
    own = _checked(wordings or {}, ("subject",))
    unknown = [relation for relation in (*relations, *own) if relation not in known]
    if unknown:
        raise QkvError(
            f"asking for {', '.join(unknown)}", f"the facts have {', '.join(sorted(known))}", "Ask for one of these"
        )
    out = []
    for person in facts:
        asked: dict[str, str] = {}  # relations by what asks for them
        for relation, value in person.facts().items():
            for wording in (
                (own.get(relation) or (_question_wording(person, relation),)) if relation in relations else ()
            ):
                if (other := asked.setdefault(" ".join(wording.split()), relation)) != relation:
                    problem = f"{wording!r} asks for {other} and for {relation}"
                    raise QkvError("wording questions", problem, "Give each relation a wording of its own")
                out.append((wording.replace("{subject}", person.name), value))
    return Questions(tuple(out))


def _question_wording(person: Person, relation: str) -> str:
    """The built-in question, which for a thing says nothing about people."""
    about_person = bool(getattr(person, relation, "")) if relation in RELATIONS else False
    return question_text("{subject}", relation) if about_person else _other_question("{subject}", relation)


def _checked(templates: Mapping[str, Sequence[str]], needed: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Templates of a caller's own; each must hold the placeholders that are needed, and no others.

    One that comes again counts once.
    """
    for relation, each in templates.items():
        for template in each:
            if any(unicodedata.category(c) in ("Cc", "Zl", "Zp") for c in template):
                problem = f"{template!r} holds a tab or line end, or another control character"
                raise QkvError(f"wording {relation}", problem, "Write it in one line, with spaces")
            found = set(re.findall(r"\{(\w*)\}", template))
            if found != set(needed):
                problem = f"{template!r} holds {', '.join(sorted(found)) or 'no name'} in braces"
                raise QkvError(f"wording {relation}", problem, "Write " + " and ".join("{" + n + "}" for n in needed))
    return {relation: tuple(dict.fromkeys(each)) for relation, each in templates.items() if each}


def question_text(name: str, relation: str = "city") -> str:
    """The question for a relation of a person."""
    return QUESTIONS[relation].format(name=name) if relation in QUESTIONS else _other_question(name, relation)


def _other_question(name: str, relation: str) -> str:
    return OTHER_QUESTION.format(name=name, relation=relation)


def find_name(question: str, frames: Sequence[str] = ()) -> tuple[int, int] | None:
    """Character positions [first, last) of the name in a question, or None if it has none.

    They are known if the question has one of the frames (questions with … for the name), or was written by a
    template. In any other question it is the longest salient span that is not a number. Signs alone and stop words,
    such as "the" or "he", are no name; capitalised ones, such as "It", may be a title.
    """
    shift, text = len(question) - len(question.lstrip()), question.strip()
    found = match_frame(text, frames)
    for pattern in _question_patterns() if found is None else ():
        if matched := pattern.fullmatch(text):
            found = matched.span("name")
    found = found or _name_in_other_question(text)
    if found is not None:
        return (found[0] + shift, found[1] + shift) if _is_name(text[slice(*found)]) else None
    spans = [(a, b) for a, b in find_salient_spans(question) if not question[a:b].isdigit()]
    return max(spans, key=lambda span: span[1] - span[0], default=None)


def _is_name(text: str) -> bool:
    """Whether a text may be a name: it has a letter or digit, and does not consist of stop words."""
    words = re.findall(r"\w+", text)
    return any(word not in COMMON and word != "The" for word in words)


def question_characters(question: str) -> str:
    """A question without white space around it; one with bytes that are no text is refused, and so is an empty one."""
    text = question.strip()
    if not text:
        raise QkvError("asking", "the question is empty", "Write it out, like: Where was Ada Lovelace born?")
    try:
        text.encode()
    except UnicodeEncodeError:
        shown = text.encode("ascii", "backslashreplace").decode()[:80]
        raise QkvError(f"asking {shown!r}", "the question is not UTF-8 text", "Write it in UTF-8") from None
    return text


def _name_in_other_question(text: str) -> tuple[int, int] | None:
    """The name in "What is the relation of name?", where either may hold "of": a name begins with a salient span."""
    asked = re.fullmatch(r"What is the .+? of (.+)\?", text)
    if asked is None:
        return None
    first, last = asked.span(1)
    starts = [first, *(match.end() for match in re.finditer(r" of ", text[:last]) if match.end() > first)]
    names = {a for a, _ in find_salient_spans(text)}
    return next((start for start in starts if start in names), first), last


def name_span(question: str, frames: Sequence[str] = ()) -> tuple[int, int]:
    """As `find_name`, with the whole question in place of a name that is not there."""
    return find_name(question, frames) or (0, len(question))


def name_of(question: str, frames: Sequence[str] = ()) -> str:
    """The name in a question; the whole question if there is none."""
    text = question.strip()
    return text[slice(*name_span(text, frames))]


def with_invented_names(asked: Sequence[str], seed: int = 0, frames: Sequence[str] = ()) -> list[str]:
    """The same questions with invented names, made of parts of the names in them; none if there are too few names."""
    spans = [name_span(question, frames) for question in asked]
    names = list(dict.fromkeys(question[first:last] for question, (first, last) in zip(asked, spans, strict=True)))
    try:
        invented = Facts(tuple(map(Person, names))).invented_names(len(names), seed)
    except QkvError:
        return []
    new = dict(zip(names, invented, strict=True))
    return [q[:first] + new[q[first:last]] + q[last:] for q, (first, last) in zip(asked, spans, strict=True)]


def _versions(
    person: Person, versions: int, order: str, name: str, seed: int, statements: Mapping[str, Sequence[str]]
) -> list[str]:
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
            which = int(wordings[relation][version])
            if relation in statements:
                template = statements[relation][which % len(statements[relation])]
                sentences.append(_one_full_stop(_filled(template, person.name, known[relation]), known[relation]))
                continue
            own = relation in SENTENCES and bool(getattr(person, relation))
            template = (SENTENCES[relation] if own else OTHER_SENTENCES)[which]
            sentences.append(_sentence(template, person, relation, known[relation], place == 0 or name == "full"))
        out.append(" ".join(sentences))
    return out


def article(noun: str) -> str:
    """ "a" or "an", by how the noun is spoken: an honest man, a union leader, an unknown."""
    word = noun.lower()
    if SPOKEN_WITH_VOWEL.match(word):
        return "an"
    return "an" if word[:1] in "aeiou" and word[:1] and not SPOKEN_WITH_CONSONANT.match(word) else "a"


def _sentence(template: str, person: Person, relation: str, value: str, full: bool) -> str:
    a = article(value)
    is_person = any(getattr(person, field) for field in RELATIONS)
    if full:
        words = {"who": person.name, "whom": person.name, "whose": f"{person.name}'s", "was": "was", "has": "has"}
    elif is_person:
        words = {"who": "they", "whom": "them", "whose": "their", "was": "were", "has": "have"}
    else:
        words = {"who": "it", "whom": "it", "whose": "its", "was": "was", "has": "has"}
    text = _one_full_stop(template.format(**words, a=a, relation=relation, value=value), value)
    return text if full else text[0].upper() + text[1:]


def _filled(template: str, name: str, value: str) -> str:
    """A template with both places filled at once: a name may hold {object} itself."""
    filled = {"{subject}": name, "{object}": value}
    return "".join(filled.get(part, part) for part in re.split(r"(\{subject\}|\{object\})", template))


def _one_full_stop(sentence: str, value: str) -> str:
    """A sentence that ends in a value, without a second full stop behind "D.C." or "Jr."."""
    return sentence[:-1] if value.endswith(".") and sentence.endswith(f"{value}.") else sentence


@cache
def _question_patterns() -> tuple[re.Pattern[str], ...]:
    """The question templates as patterns with a group for the name."""
    return tuple(re.compile(re.escape(t).replace(r"\{name\}", "(?P<name>.+)")) for t in QUESTIONS.values())
