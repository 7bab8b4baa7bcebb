"""JSON Schema models of `qkv grade`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from qkv.cli.json_fields import Fields


class DerivationStep(Fields):
    """One line of a derivation."""

    text: str
    latex: str


class SheetStatement(Fields):
    """One formula of a sheet."""

    line: Annotated[int, Field(description="Line of the sheet, from 1.")]
    formula: str
    part: Annotated[str, Field(description="Part of the problem; empty if it is not known.")]
    verdict: Literal["right", "limit", "wrong", "choice", "not_read"]
    claim: Annotated[str, Field(description="How it was read, in the language of claims; empty if it was not read.")]
    because: str
    follows_from: Annotated[int | None, Field(description="Line of the mistake that it follows from.")]
    derivation: list[DerivationStep]
    readings: Annotated[list[str], Field(description="Other readings that disagree.")]


class SheetAnswer(Fields):
    """The answer to one question."""

    part: str
    asked: str
    line: Annotated[int, Field(description="Line of the sheet; 0 if there is no answer.")]
    given: str
    verdict: Literal["meets", "limit", "misses", "prose", "none", "not_read"]
    because: str
    claim: Annotated[str, Field(description="The goal with the construction put in; empty if nothing was decided.")]
    follows_from: Annotated[int | None, Field(description="Line of the mistake that it follows from.")]


class SheetGrade(Fields):
    """The feedback on one sheet."""

    file: str
    problem: Annotated[str, Field(description="Problem and edition; empty if the sheet was not graded.")]
    notation: Annotated[
        list[Annotated[list[str], Field(min_length=2, max_length=2)]], Field(description="Letters and their roles.")
    ]
    statements: list[SheetStatement]
    answers: list[SheetAnswer]
    remarks: list[str]
    failed: Annotated[bool, Field(description="Whether the sheet could not be graded; `remarks` say why.")]


class Sheets(Fields):
    """qkv grade: the feedback on every sheet, in their order."""

    sheets: list[SheetGrade]
