"""Statement, GradedAnswer, Grade: the feedback on one answer sheet, with terminal, HTML and JSON views."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

from qkv.claims.verdict import Step
from qkv.core.display import Card, Displayable

StatementVerdict = Literal["right", "limit", "wrong", "choice", "not_read"]
AnswerVerdict = Literal["meets", "limit", "misses", "prose", "none", "not_read"]

SIGNS = {
    "right": "✓", "limit": "→", "wrong": "✗", "choice": "·", "not_read": "?", "meets": "✓", "misses": "✗", "prose": "…",
    "none": "–",
}  # fmt: skip
"""A sign for each verdict on a statement or an answer."""

MEANINGS = {
    "right": "holds for all values in range",
    "limit": "holds in the limit that is named",
    "wrong": "false in every reading of it, as the numbers show",
    "choice": "defines, chooses or states a goal, which is neither right nor wrong",
    "not_read": "not understood, or readable in ways that disagree: look at it yourself",
    "meets": "the construction does what the question asks for",
    "misses": "the construction does not do what the question asks for, as the numbers show",
    "prose": "an answer in words, which is not decided",
    "none": "no answer was found",
}
"""What each verdict means, in one line."""


def words(verdict: str) -> str:
    """A verdict as it is printed: "not read" for "not_read", "no answer" for "none"."""
    return "no answer" if verdict == "none" else verdict.replace("_", " ")


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

    @property
    def is_mistake(self) -> bool:
        """Whether it is wrong, and does not only follow from an earlier mistake."""
        return self.verdict == "wrong" and self.follows_from is None


@dataclass(frozen=True)
class GradedAnswer:
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

    @property
    def is_mistake(self) -> bool:
        """Whether it misses its goal, and does not only follow from an earlier mistake."""
        return self.verdict == "misses" and self.follows_from is None


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
        failed: Whether the sheet could not be graded, or not to its end; `remarks` say why.
        text: The sheet as it was given, for views that show it with the feedback in place; not part of the JSON.
    """

    file: str
    problem: str
    notation: tuple[tuple[str, str], ...]
    statements: tuple[Statement, ...]
    answers: tuple[GradedAnswer, ...]
    remarks: tuple[str, ...] = ()
    failed: bool = False
    text: str = field(default="", repr=False)

    @property
    def is_empty(self) -> bool:
        """Whether nothing of it was read: no formula, and no answer."""
        found = any(a.verdict != "none" for a in self.answers)
        return self.failed or not (self.statements or found)

    @property
    def mistakes(self) -> tuple[Statement | GradedAnswer, ...]:
        """The wrong statements and the answers that miss their goal, without what follows from others, by line."""
        found: list[Statement | GradedAnswer] = [a for a in self.answers if a.is_mistake]
        told = {(a.line, a.given) for a in self.answers if a.is_mistake}
        found += [s for s in self.statements if s.is_mistake and (s.line, s.formula) not in told]
        return tuple(sorted(found, key=lambda one: one.line))

    @property
    def nothing_wrong(self) -> bool | None:
        """Whether nothing is wrong or missed; None where nothing was read."""
        wrong = any(s.verdict == "wrong" for s in self.statements) or any(a.verdict == "misses" for a in self.answers)
        return None if self.is_empty else not wrong

    def counts(self) -> dict[str, int]:
        """How many statements got each verdict; "follows" counts wrong ones that follow from an earlier mistake."""
        kinds = Counter("follows" if s.verdict == "wrong" and not s.is_mistake else s.verdict for s in self.statements)
        order = ("right", "limit", "wrong", "follows", "choice", "not_read")
        return {kind: kinds[kind] for kind in order if kinds[kind]}

    def answer_counts(self) -> dict[str, int]:
        """How many answers got each verdict; "follows" counts those that miss because of an earlier mistake."""
        kinds = Counter("follows" if a.verdict == "misses" and not a.is_mistake else a.verdict for a in self.answers)
        order = ("meets", "limit", "misses", "follows", "prose", "none", "not_read")
        return {kind: kinds[kind] for kind in order if kinds[kind]}

    def summary(self) -> str:
        """The counts in one sentence."""
        if self.failed:
            return "Only the answers were decided." if self.answers else "Not graded."
        parts = [_counted(len(self.answers), "question", self.answer_counts())] if self.answers else []
        parts.append(_counted(len(self.statements), "formula", self.counts()))
        return " ".join(parts)

    def card(self) -> Card:
        """The answers as a table, the counts and the notation as facts."""
        facts = [("problem", self.problem), ("counts", self.summary())]
        facts += [("read", ", ".join(f"{letter} as {role}" for letter, role in self.notation))] if self.notation else []
        rows = [
            (a.part, f"{SIGNS[a.verdict]} {words(a.verdict)}", str(a.line or ""), a.given, said(a))
            for a in self.answers
        ]
        rows += [
            (s.part, f"{SIGNS[s.verdict]} {words(s.verdict)}", str(s.line), s.formula, said(s))
            for s in self.statements
            if s.verdict == "wrong"
        ]
        columns = ("part", "verdict", "line", "written", "because") if rows else ()
        return Card(self.file, tuple(facts), columns, tuple(rows), " ".join(self.remarks))

    def to_json(self) -> dict[str, Any]:
        """The grade as one JSON object, statements and answers as lists of objects."""
        return super().to_json()


def counted(kind: str, count: int) -> str:
    """A verdict after a number: "in a limit" for "limit"; "follows" is what follows from an earlier mistake."""
    names = {"follows": "from an earlier mistake", "none": "without an answer", "limit": "in a limit"}
    names["choice"] = "choice" if count == 1 else "choices"
    return names.get(kind, words(kind))


def said(one: Statement | GradedAnswer) -> str:
    """The reason, after the earlier mistake that it follows from."""
    if one.follows_from is None:
        return one.because
    return f"follows from line {one.follows_from}" + (f": {one.because}" if one.because else "")


def _counted(many: int, noun: str, counts: dict[str, int]) -> str:
    plural = {"formula": "formulas"}.get(noun, f"{noun}s")
    each = ", ".join(f"{count} {counted(kind, count)}" for kind, count in counts.items())
    return f"{many} {noun if many == 1 else plural}{f': {each}' if each else ''}."
