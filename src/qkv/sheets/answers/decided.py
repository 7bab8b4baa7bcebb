"""Decided: an answer with the construction that it rests on."""

from __future__ import annotations

from dataclasses import dataclass

from qkv.sheets.answers.construction import Construction
from qkv.sheets.feedback import GradedAnswer
from qkv.sheets.problems.problem import Question


@dataclass(frozen=True)
class Decided:
    """An answer with the construction that it rests on, for the questions that take it over.

    Attributes:
        answer: The answer.
        construction: The author's values, or None.
        lacks_scale: Whether a large number would mend it.
        example: Values of what is arbitrary with which the construction fails, in words; empty if it needs none.
        for_items: The number of items for which its numbers are large enough, or 0 if it holds for any number.
    """

    answer: GradedAnswer
    construction: Construction | None = None
    lacks_scale: bool = False
    for_items: int = 0
    example: str = ""


def none_found(question: Question) -> GradedAnswer:
    """The answer to a question to which nothing was found."""
    return GradedAnswer(question.part, question.asked, 0, "", "none", "no answer was found")
