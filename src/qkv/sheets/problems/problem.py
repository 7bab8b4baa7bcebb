"""Problem, Part, Question: what a problem file says, as frozen values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

QuestionKind = Literal["construction", "condition", "output", "samples", "facts", "possibility", "words"]
"""What a question asks for.

construction: values of the holes, such as a query; condition: when weights gather on one item; output: what an output
approximates; samples: what the output does as one number varies; facts: the statements of the goal themselves;
possibility: whether something can be done; words: an explanation, which is never decided.
"""

HOLE = "?"
"""What stands in a claim of a problem file for the author's construction."""

SCALE = "scale"
"""What stands in a limit of a goal for the large numbers of the author's construction."""

ROLES = ("scale", "length", "noise", "weights", "query", "key", "mean", "value", "output", "score")
"""The roles that a problem file may give letters for."""


@dataclass(frozen=True)
class Question:
    """One thing that a part asks for.

    Attributes:
        part: The id of the part, such as "c.ii".
        asked: What is asked, in a few words.
        kind: What kind of answer is expected.
        holes: The names that the author fills, such as ("q_1", "q_2"); ("c",) for an output, ("condition",) for a
            condition.
        given: The givens in the language of claims: its own, or else those of its part.
        let: Definitions that hold beside the author's, with those of its part.
        goal: Statements in the language of claims that the answer must meet; `?` is the author's expression.
        show: A number to show where the goal is missed, and its wanted value, such as ("alpha_a", "1/2"); may be empty.
        uses: The part whose construction this question takes over; empty if none.
        varies: The number that varies from sample to sample, such as "gamma"; empty if none does.
        default: The construction that is taken over where the sheet has none in the part that `uses` names.
        item: The item that a condition speaks of, such as "j".
        outcomes: For samples: pairs of a value and the condition under which it is expected, as ("v_a", "gamma > 1").
        words: Sets of words that show what an answer in words is about.
    """

    part: str
    asked: str
    kind: QuestionKind
    holes: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    let: tuple[str, ...] = ()
    goal: tuple[str, ...] = ()
    show: tuple[str, str] | tuple[()] = ()
    uses: str = ""
    varies: str = ""
    default: tuple[tuple[str, str], ...] = ()
    item: str = ""
    outcomes: tuple[tuple[str, str], ...] = ()
    words: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Part:
    """One part of a problem.

    Attributes:
        id: Such as "c.ii".
        title: Its title.
        also: Other ways to number it, such as "3.c.ii".
        titles: Other titles, in lower case.
        text: Sets of words; a paragraph with almost all words of a set is the problem's own text.
        given: The givens in the language of claims, for every statement of the part.
        let: Definitions that hold in the part.
        questions: What is asked, in order.
    """

    id: str
    title: str
    also: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()
    text: tuple[tuple[str, ...], ...] = ()
    given: tuple[str, ...] = ()
    let: tuple[str, ...] = ()
    questions: tuple[Question, ...] = ()


@dataclass(frozen=True)
class Problem:
    """A problem: its parts in order, and how its letters are customarily used.

    Attributes:
        id: Such as "attention-2021".
        title: Its title.
        family: The problem of which this is an edition, such as "attention"; the id if there is one edition only.
        parts: In order.
        letters: Roles and the letters that usually stand for them, such as ("scale", ("t", "lambda")).
        signs: Sets of words that only sheets of this edition hold.
        text: Sets of words of the problem's own text outside its parts.
    """

    id: str
    title: str
    family: str
    parts: tuple[Part, ...]
    letters: tuple[tuple[str, tuple[str, ...]], ...] = ()
    signs: tuple[tuple[str, ...], ...] = ()
    text: tuple[tuple[str, ...], ...] = ()

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions of all parts, in order."""
        return tuple(question for part in self.parts for question in part.questions)

    def part(self, id: str) -> Part | None:
        """The part of that id, or None."""
        return next((part for part in self.parts if part.id == id), None)

    def letters_for(self, role: str) -> tuple[str, ...]:
        """The letters that usually stand for a role."""
        return next((letters for name, letters in self.letters if name == role), ())

    def own_text(self) -> Iterator[tuple[str, ...]]:
        """Every set of words that marks the problem's own text."""
        yield from self.text
        for part in self.parts:
            yield from part.text
