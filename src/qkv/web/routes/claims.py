"""Claims: documents to start from, and verdicts on what was typed."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from qkv.claims.catalogue import documents
from qkv.claims.verdict import Step, Verdict, Verdicts
from qkv.viz.html_report import claims_page
from qkv.web import code_snippets, limits
from qkv.web.schemas import REFUSALS, Python, Shape, reply

router = APIRouter(prefix="/api", tags=["claims"], responses=REFUSALS)


class CheckRequest(Shape):
    """A Markdown document with ```claim blocks."""

    text: str = Field(max_length=limits.MOST_TEXT, description="Markdown; docs/claims.md says what can be claimed.")


class StepReply(BaseModel):
    """One line of a derivation."""

    text: str
    latex: str


class VerdictReply(BaseModel):
    """The verdict on one claim."""

    id: str
    verdict: Literal["proved", "holds", "conditional", "refuted", "malformed", "undecided"]
    says: str
    because: str
    derivation: list[StepReply]
    counterexample: str | None = Field(description="Assignments that Python accepts.")
    line: int = Field(description="Where the statement, or what is wrong, stands; the first line is 1.")
    column: int


class CheckReply(BaseModel):
    """The verdicts in the order of the text."""

    verdicts: list[VerdictReply]
    complete: bool = Field(description="False if the time for the whole text was up before all were decided.")
    python: Python


class DocumentReply(BaseModel):
    """A document of the catalogue."""

    name: str
    text: str


class CatalogueReply(BaseModel):
    """The shipped documents."""

    documents: list[DocumentReply]


@router.post("/check", response_model=CheckReply)
async def check(asked: CheckRequest, request: Request) -> Response:
    """Decide every claim of a text, each within its time."""
    verdicts, complete = await request.app.state.checkers.check(asked.text)
    code = code_snippets.check(asked.text, limits.CLAIM_SECONDS)
    return reply({"verdicts": verdicts, "complete": complete, "python": code})


@router.post(
    "/check/report",
    response_class=HTMLResponse,
    responses={
        200: {"description": "One self-contained page.", "content": {"text/html": {"schema": {"type": "string"}}}}
    },
)
async def report(asked: CheckRequest, request: Request) -> Response:
    """The page that `qkv check --html` writes, to be saved: every verdict with its derivation."""
    found, _ = await request.app.state.checkers.check(asked.text)
    headers = {"content-disposition": 'attachment; filename="claims.html"'}
    return HTMLResponse(claims_page([("Your claims", Verdicts(tuple(map(_verdict, found))))]), headers=headers)


def _verdict(found: dict[str, Any]) -> Verdict:
    steps = tuple(Step(step["text"], step["latex"]) for step in found["derivation"])
    return Verdict(found["id"], found["verdict"], found["says"], found["because"], steps, found["counterexample"])


@router.get("/catalogue", response_model=CatalogueReply)
async def catalogue() -> Response:
    """The attention-exploration answers, as documents of claims."""
    return reply({"documents": [{"name": name, "text": text} for name, text in documents()]})
