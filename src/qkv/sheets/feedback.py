"""Statement, Answer, Grade: the feedback on one answer sheet, with terminal, HTML and JSON views."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal

from qkv.claims.verdict import Step
from qkv.core.display import Card, Displayable

StatementVerdict = Literal["right", "limit", "wrong", "choice", "not_read"]
AnswerVerdict = Literal["meets", "limit", "misses", "prose", "none", "not_read"]


@dataclass(frozen=True)
class Statement:
    """One formula of a sheet and what it is worth.

    Attributes:
        line: The line of the sheet, from 1.
        formula: The formula as it was written.
        part: The part of the problem in which it stands, such as "c.ii"; empty if that is not known.
        verdict: "right"; "limit": right in the limit that `because` names; "wrong"; "choice": defines, chooses or
            states a goal; "not_read".
        claim: How it was read, in the language of claims (docs/claims.md), with its givens; empty if it was not read.
        because: What the verdict rests on, in one sentence.
        follows_from: The line of an earlier mistake from which this one follows, or None.
        derivation: The steps of the symbolic argument; empty without one.
        readings: Other readings that were tried and disagree; empty if all agree.
    """

    line: int
    formula: str
    part: str
    verdict: StatementVerdict
    claim: str = ""
    because: str = ""
    follows_from: int | None = None
    derivation: tuple[Step, ...] = ()
    readings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """The answer to one question of the problem, put to the question's goal.

    Attributes:
        part: The part of the problem, such as "c.ii".
        asked: What the question asks for.
        line: The line of the sheet on which the answer stands, or 0 if there is none.
        given: The author's construction or words, as read.
        verdict: "meets"; "limit": meets the goal in the limit that `because` names; "misses"; "prose": words that are
            not decided; "none": no answer; "not_read".
        because: What the verdict rests on, in one sentence for the author.
        claim: The goal with the construction put in, in the language of claims; empty if nothing was decided.
        follows_from: The line of an earlier mistake from which this one follows, or None.
    """

    part: str
    asked: str
    line: int
    given: str
    verdict: AnswerVerdict
    because: str = ""
    claim: str = ""
    follows_from: int | None = None


@dataclass(frozen=True)
class Grade(Displayable):
    """The feedback on one answer sheet.

    Attributes:
        file: The name of the sheet.
        problem: The id of the problem and its edition.
        notation: How letters were read, such as ("λ", "the scale").
        statements: Every formula that asserts, defines or chooses something, in reading order.
        answers: One entry for each question of the problem, in its order.
        remarks: What the reader should know, such as parts that were not found.
    """

    file: str
    problem: str
    notation: tuple[tuple[str, str], ...]
    statements: tuple[Statement, ...]
    answers: tuple[Answer, ...]
    remarks: tuple[str, ...] = ()

    def card(self) -> Card:
        """The answers as a table, the counts of the statements as facts."""
        counts = Counter(s.verdict for s in self.statements)
        said = ", ".join(f"{n} {verdict.replace('_', ' ')}" for verdict, n in counts.most_common()) or "none"
        facts = [("problem", self.problem), ("statements", said)]
        facts += [("read", ", ".join(f"{letter} as {role}" for letter, role in self.notation))] if self.notation else []
        rows = tuple((a.part, a.verdict.replace("_", " "), str(a.line or ""), a.given, a.because) for a in self.answers)
        return Card(self.file, tuple(facts), ("part", "verdict", "line", "given", "because"), rows, " ".join(self.remarks))

    def to_json(self) -> dict[str, Any]:
        """The grade as one JSON object, statements and answers as lists of objects."""
        return super().to_json()
