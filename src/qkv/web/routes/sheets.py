"""Sheets page: feedback on an answer sheet, in place; the shipped problems and an example to start from."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from qkv.sheets.feedback import Grade
from qkv.sheets.problems import SHIPPED, load_problem
from qkv.sheets.source_view import SourceView
from qkv.viz.formulas import pieces
from qkv.viz.sheets_report import sheet_page
from qkv.web import code_snippets, limits
from qkv.web.schemas import REFUSALS, PythonCode, RequestModel, json_reply
from qkv.web.sheet_example import EXAMPLE_FILE, example_sheet
from qkv.web.sheet_workers import SheetWorkers

router = APIRouter(prefix="/api", tags=["sheets"], responses=REFUSALS)


class GradeRequest(RequestModel):
    """An answer sheet as its author wrote it."""

    text: str = Field(max_length=limits.MAX_SHEET_TEXT, description="LaTeX, Markdown, Typst, plain text or a notebook.")
    problem: Literal["attention-2021", "attention-2022", "attention-2024"] | None = Field(
        default=None, description="A shipped problem; null to recognise it."
    )
    file: Annotated[str, Field(max_length=limits.MAX_FILE_NAME)] = Field(
        default="", description="The name of its file, whose ending says in which form it is written."
    )


class PieceReply(BaseModel):
    """A part of a sentence: words, or a formula."""

    text: str
    latex: str = Field(description="The formula as LaTeX; empty for words.")


class StepReply(BaseModel):
    """One line of a derivation."""

    text: str
    latex: str


class StatementReply(BaseModel):
    """One formula of the sheet and what it is worth."""

    line: int
    formula: str
    part: str
    verdict: Literal["right", "limit", "wrong", "choice", "not_read"]
    claim: str
    because: str
    follows_from: int | None
    derivation: list[StepReply]
    readings: list[str]
    latex: str = Field(description="The formula as LaTeX, with the author's macros put in.")
    because_pieces: list[PieceReply] = Field(description="`because` as words and formulas.")


class AnswerReply(BaseModel):
    """The answer to one question, put to its goal."""

    part: str
    asked: str
    line: int
    given: str
    verdict: Literal["meets", "limit", "misses", "prose", "none", "not_read"]
    because: str
    claim: str
    follows_from: int | None
    latex: str = Field(description="What was given, with the author's macros put in.")
    asked_pieces: list[PieceReply] = Field(description="`asked` as words and formulas.")
    because_pieces: list[PieceReply] = Field(description="`because` as words and formulas.")


class LineReply(BaseModel):
    """A line of the sheet; of a notebook, a line of its Markdown cells."""

    number: int
    text: str


class GradeReply(BaseModel):
    """The feedback on a sheet, with the sheet line by line."""

    file: str
    problem: str
    notation: list[tuple[str, str]]
    statements: list[StatementReply]
    answers: list[AnswerReply]
    remarks: list[str]
    failed: bool
    summary: str = Field(description="The counts in one sentence.")
    lines: list[LineReply]
    python: PythonCode


class ProblemReply(BaseModel):
    """A shipped problem."""

    id: str
    title: str


class SheetStartReply(BaseModel):
    """What the page starts from."""

    problems: list[ProblemReply]
    example: str = Field(description="A sheet with some mistakes.")
    file: str


@router.post("/grade", response_model=GradeReply)
async def grade(body: GradeRequest, request: Request) -> Response:
    """Feedback on a sheet: every formula and every answer with its verdict, within the time limit."""
    found = await _workers(request).grade(body.text, body.problem, body.file)
    return json_reply({**_fields(found), "python": code_snippets.grade(body.text, body.problem, body.file)})


@router.post(
    "/grade/report",
    response_class=HTMLResponse,
    responses={
        200: {"description": "One self-contained page.", "content": {"text/html": {"schema": {"type": "string"}}}}
    },
)
async def report(body: GradeRequest, request: Request) -> Response:
    """The page that `qkv grade --html` writes, as a download: the sheet with the feedback in place."""
    found = await _workers(request).grade(body.text, body.problem, body.file)
    return HTMLResponse(sheet_page(found), headers={"content-disposition": 'attachment; filename="feedback.html"'})


@router.get("/sheets", response_model=SheetStartReply)
async def start() -> Response:
    """The shipped problems, and a sheet to start from."""
    problems = [{"id": name, "title": load_problem(name).title} for name in SHIPPED]
    return json_reply({"problems": problems, "example": example_sheet(), "file": EXAMPLE_FILE})


def _fields(grade: Grade) -> dict[str, Any]:
    """The fields of `GradeReply`, without the Python code."""
    view = SourceView.of(grade)
    fields: dict[str, Any] = grade.to_json()
    for statement, one in zip(grade.statements, fields["statements"], strict=True):
        one |= {"latex": view.latex(statement.formula), "because_pieces": _pieces(statement.because)}
    for answer, one in zip(grade.answers, fields["answers"], strict=True):
        one |= {"latex": view.latex(answer.given), "asked_pieces": _pieces(answer.asked)}
        one |= {"because_pieces": _pieces(answer.because)}
    lines = [{"number": number, "text": text} for number, text in view.lines]
    return {**fields, "summary": grade.summary(), "lines": lines}


def _pieces(sentence: str) -> list[dict[str, str]]:
    return [asdict(piece) for piece in pieces(sentence)]


def _workers(request: Request) -> SheetWorkers:
    workers: Any = request.app.state.sheet_workers
    assert isinstance(workers, SheetWorkers)
    return workers
