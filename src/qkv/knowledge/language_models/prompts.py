"""Prompts for a language model: wordings of a question, sets of examples, the chat template or plain lines.

A question is asked in several ways (`Prompt.asking`): the first gives the answer, the others tell how much it depends
on the wording and on the examples. Each way has examples of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from qkv.errors import QkvError
from qkv.knowledge.datasets.facts import RELATIONS, Person
from qkv.knowledge.datasets.pantheon import pantheon
from qkv.knowledge.datasets.templates import QUESTIONS, find_name, question_characters
from qkv.knowledge.language_models.causal_model import CausalModel

WORDINGS: dict[str, tuple[str, ...]] = {
    "city": (
        "In which city was {name} born?",
        "Where was {name} born?",
        "What is the city of birth of {name}?",
        "What is the birthplace of {name}?",
    ),
    "country": (
        "In which country was {name} born?",
        "Which country did {name} come from?",
        "What is the country of birth of {name}?",
        "What is the native country of {name}?",
    ),
    "year": (
        "In which year was {name} born?",
        "When was {name} born?",
        "What is the year of birth of {name}?",
        "What is the birth year of {name}?",
    ),
    "occupation": (
        "What was the occupation of {name}?",
        "What did {name} work as?",
        "What is the profession of {name}?",
        "What is the occupation of {name}?",
    ),
}
"""Wordings of a question for each relation; all of them are recognised, the first is used."""
STATEMENTS: dict[str, tuple[str, str, str]] = {
    "city": ("{name} was born in", "{name} was born in the city of", "The birthplace of {name} is"),
    "country": ("{name} was born in", "{name} was born in the country of", "The native country of {name} is"),
    "year": ("{name} was born in", "{name} was born in the year", "The year of birth of {name} is"),
    "occupation": ("{name} was a", "{name} worked as a", "The occupation of {name} was"),
}
"""Beginnings of a sentence that ends with the answer: of the reply to the question, and by itself."""
REVERSED = {
    "city": "Famous people who were born in {answer}:",
    "country": "Famous people who were born in {answer}:",
    "year": "Famous people who were born in {answer}:",
    "occupation": "Famous people who worked as a {answer}:",
    "": "Famous names that go with {answer}:",
}
"""A list of people that the answer fits, for each relation and for any other question."""
EXAMPLES = (
    ("Pablo Picasso", "William Shakespeare", "Lionel Messi", "Marie Curie"),
    ("Albert Einstein", "Elvis Presley", "Wolfgang Amadeus Mozart", "Mahatma Gandhi"),
    ("Galileo Galilei", "Muhammad Ali", "Vincent van Gogh", "Charles Darwin"),
)
"""People of the shipped table whose facts are the examples, one set for each way of asking."""
GENERAL_EXAMPLES = (
    (
        ("What is the capital of Japan?", "Tokyo"),
        ("Who wrote Don Quixote?", "Miguel de Cervantes"),
        ("In which year did the Second World War end?", "1945"),
        ("What is the largest planet?", "Jupiter"),
    ),
    (
        ("Which metal has the symbol Fe?", "iron"),
        ("Who painted the Mona Lisa?", "Leonardo da Vinci"),
        ("In which country is the city of Nairobi?", "Kenya"),
        ("How many legs does a spider have?", "eight"),
    ),
    (
        ("Which river flows through Cairo?", "the Nile"),
        ("In which year did people first walk on the Moon?", "1969"),
        ("Who composed The Magic Flute?", "Wolfgang Amadeus Mozart"),
        ("What is the opposite of hot?", "cold"),
    ),
)
"""Examples for a question of no known relation, one set for each way of asking."""
NAME_CONTEXTS = (
    "A short biography of",
    f"Famous people: {', '.join((*EXAMPLES[0], *EXAMPLES[1]))},",
)
"""What comes before a name whose familiarity is measured; the people named in it are never asked about."""


class Question(NamedTuple):
    """A question as it is understood.

    Attributes:
        text: The question.
        name: Whom it is about; empty if no name was found.
        relation: What it asks for; empty if that is none of the known relations.
    """

    text: str
    name: str
    relation: str


@dataclass(frozen=True)
class Way:
    """One way of asking: the text before the question, and how the question itself is put.

    Attributes:
        before: The examples.
        template: What follows, with {question} and {name}; the answer comes next.
        answers: The answers of the examples.
    """

    before: str
    template: str
    answers: tuple[str, ...]

    def prompt(self, question: Question) -> str:
        """The whole prompt of a question."""
        return self.before + _filled(self.template, question=question.text, name=question.name)


def understood(text: str) -> Question:
    """The name and the relation in a question; an empty question, and one that is no text, is refused."""
    text = question_characters(text)
    for relation, pattern in _patterns():
        if found := pattern.fullmatch(text):
            return Question(text, found["name"], relation)
    span = find_name(text)
    return Question(text, text[slice(*span)] if span else "", "")


def about(name: str, relation: str) -> Question:
    """The question for a relation of a person; another relation than the four of the shipped table is refused."""
    if relation not in WORDINGS:
        raise QkvError(f"asking for {relation}", "there are no wordings for it", f"Ask for {', '.join(WORDINGS)}")
    return Question(WORDINGS[relation][0].format(name=name), name, relation)


def example_people() -> frozenset[str]:
    """The people in the examples, who are not asked about."""
    return frozenset(name for names in EXAMPLES for name in names)


def ways(model: CausalModel, relation: str) -> tuple[Way, ...]:
    """The ways of asking for a relation ("" for any other question), the one that gives the answer first.

    The first puts question and answer by the model's chat template, where it has one. For a known relation the reply
    begins with a sentence that the answer ends; the other ways are such sentences alone.
    """
    if relation not in WORDINGS:
        return tuple(_questions_and_answers(model, pairs) for pairs in GENERAL_EXAMPLES)
    first, *others = STATEMENTS[relation]
    people = [[_person(name) for name in names] for names in EXAMPLES]
    replies = [
        (WORDINGS[relation][0].format(name=p.name), f"{first.format(name=p.name)} {_value(p, relation)}")
        for p in people[0]
    ]
    asked = _questions_and_answers(model, replies, beginning=first)
    found = [Way(asked.before, asked.template, tuple(_value(p, relation) for p in people[0]))]
    for statement, group in zip(others, people[1:], strict=True):
        lines = [f"{statement.format(name=p.name)} {_value(p, relation)}\n" for p in group]
        found.append(Way("".join(lines), statement, tuple(_value(p, relation) for p in group)))
    return tuple(found)


def _questions_and_answers(model: CausalModel, pairs: Sequence[tuple[str, str]], beginning: str = "") -> Way:
    """Questions with their replies: as turns of a chat where the tokenizer has a template, else as lines."""
    answers = tuple(answer for _, answer in pairs)
    if not model.chat:
        before = "".join(f"Question: {question}\nAnswer: {answer}\n\n" for question, answer in pairs)
        return Way(before, f"Question: {{question}}\nAnswer:{' ' * bool(beginning)}{beginning}", answers)
    mark = "\u2402question\u2403"  # stands for the question while the template is applied
    turns = [
        {"role": role, "content": text}
        for pair in (*pairs, (mark, None))
        for role, text in zip(("user", "assistant"), pair, strict=True)
        if text is not None
    ]
    try:
        text = model.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    except Exception as why:  # whatever the template of a stranger does
        detail = (str(why) or type(why).__name__).splitlines()[0]
        problem = f"its chat template does not take questions and answers in turn ({detail})"
        hint = "Mend the chat template in its folder, or remove it: then the model is asked in plain text"
        raise QkvError(f"asking {model.name}", problem, hint) from None
    if text.count(mark) != 1:
        problem = "its chat template leaves out the question, or repeats or changes it"
        raise QkvError(f"asking {model.name}", problem, "Ask another model")
    before, after = text.split(mark)
    return Way(before, f"{{question}}{_escaped(after)}{beginning}", answers)


def _filled(template: str, **values: str) -> str:
    return template.format(**values)


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _value(person: Person, relation: str) -> str:
    return str(getattr(person, relation))


@cache
def _person(name: str) -> Person:
    return next(person for person in pantheon() if person.name == name)


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Every wording as a pattern with a group for the name."""
    return tuple(
        (relation, re.compile(re.escape(wording).replace(r"\{name\}", "(?P<name>.+)"), re.IGNORECASE))
        for relation in RELATIONS
        for wording in (*WORDINGS[relation], QUESTIONS[relation])
    )
