"""Decided: an answer with the construction that it rests on."""

from __future__ import annotations

from dataclasses import dataclass

from qkv.sheets.answers.construction import Construction
from qkv.sheets.feedback import GradedAnswer
from qkv.sheets.problems.problem import Question


@dataclass(frozen=True)
class Decided:
    """An answer with the construction that it rests on, for the questions that take it over."""

    answer: GradedAnswer
    construction: Construction | None = None
    lacks_scale: bool = False


def none_found(question: Question) -> Answer:
    """The answer to a question to which nothing was found."""
    return GradedAnswer(question.part, question.asked, 0, "", "none", "no answer was found")
