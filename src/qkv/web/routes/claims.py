"""Claims page: documents to start from, and verdicts on a text."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from qkv.claims.catalogue import documents
from qkv.claims.verdict import KernelCheck, Step, Verdict, Verdicts
from qkv.viz.formulas import pieces
from qkv.viz.html_report import claims_page
from qkv.web import code_snippets, limits
from qkv.web.claim_examples import EXAMPLES
from qkv.web.claim_workers import ClaimWorkers, VerdictFields
from qkv.web.schemas import REFUSALS, PythonCode, RequestModel, json_reply

router = APIRouter(prefix="/api", tags=["claims"], responses=REFUSALS)


class CheckRequest(RequestModel):
    """A Markdown document with ```claim blocks."""

    text: str = Field(
        max_length=limits.MAX_CLAIM_TEXT, description="Markdown; docs/claims.md describes the language of claims."
    )


class StepReply(BaseModel):
    """One line of a derivation."""

    text: str
    latex: str


class PieceReply(BaseModel):
    """A part of a sentence: words, or a formula."""

    text: str
    latex: str = Field(description="The formula as LaTeX; empty for words.")


class KernelReply(BaseModel):
    """What Coq says of a proved claim."""

    checker: str
    accepted: bool
    form: str
    theorem: str
    because: str


class VerdictReply(BaseModel):
    """The verdict on one claim."""

    id: str
    verdict: Literal["proved", "holds", "conditional", "refuted", "malformed", "undecided"]
    says: str
    because: str
    derivation: list[StepReply]
    counterexample: str | None = Field(description="Assignments in Python syntax.")
    kernel: KernelReply | None = Field(description="What Coq says of a proved claim; null where it was not asked.")
    line: int = Field(description="Line of the statement, or of the error in it; the first line is 1.")
    column: int
    says_pieces: list[PieceReply] = Field(description="`says` as words and formulas.")
    because_pieces: list[PieceReply] = Field(description="`because` as words and formulas.")


class CheckReply(BaseModel):
    """The verdicts in the order of the text."""

    verdicts: list[VerdictReply]
    complete: bool = Field(description="False if the time limit for the text was reached before all were decided.")
    python: PythonCode


class DocumentReply(BaseModel):
    """A document to start from."""

    name: str
    topic: str
    kind: Literal["example", "answer sheet"]
    text: str


class CatalogueReply(BaseModel):
    """The documents that come with the package: short examples by topic, then whole answer sheets."""

    documents: list[DocumentReply]


@router.post("/check", response_model=CheckReply)
async def check(body: CheckRequest, request: Request) -> Response:
    """Decide every claim of a text, each within its time limit."""
    verdicts, complete = await _workers(request).check(body.text)
    code = code_snippets.check(body.text, limits.CLAIM_SECONDS)
    return json_reply({"verdicts": [{**v, **_pieces(v)} for v in verdicts], "complete": complete, "python": code})


@router.post(
    "/check/report",
    response_class=HTMLResponse,
    responses={
        200: {"description": "One self-contained page.", "content": {"text/html": {"schema": {"type": "string"}}}}
    },
)
async def report(body: CheckRequest, request: Request) -> Response:
    """The page that `qkv check --html` writes, as a download: every verdict with its derivation."""
    found, _ = await _workers(request).check(body.text)
    page = claims_page([("Your claims", Verdicts(tuple(map(_verdict, found))))])
    return HTMLResponse(page, headers={"content-disposition": 'attachment; filename="claims.html"'})


@router.get("/catalogue", response_model=CatalogueReply)
async def catalogue() -> Response:
    """Documents of claims to start from: an example for each topic, and the answer sheets of the package."""
    examples = [{"name": e.name, "topic": e.topic, "kind": "example", "text": e.text} for e in EXAMPLES]
    sheets = [
        {"name": name, "topic": _sheet_title(number, text), "kind": "answer sheet", "text": text}
        for number, (name, text) in enumerate(documents(), 1)
    ]
    return json_reply({"documents": [*examples, *sheets]})


def _sheet_title(number: int, text: str) -> str:
    statements = sum(line.startswith("then") for line in text.splitlines())
    return f"Answer sheet {number}, {statements} statements"


def _pieces(fields: VerdictFields) -> dict[str, Any]:
    """`says` and `because` as words and formulas; what was malformed stays as it was written."""
    if fields["verdict"] == "malformed":
        return {f"{name}_pieces": [{"text": fields[name], "latex": ""}] for name in ("says", "because")}
    return {f"{name}_pieces": [asdict(piece) for piece in pieces(fields[name])] for name in ("says", "because")}


def _verdict(fields: VerdictFields) -> Verdict:
    steps = tuple(Step(step["text"], step["latex"]) for step in fields["derivation"])
    kernel = None if fields["kernel"] is None else KernelCheck(**fields["kernel"])
    return Verdict(
        fields["id"], fields["verdict"], fields["says"], fields["because"], steps, fields["counterexample"], kernel
    )


def _workers(request: Request) -> ClaimWorkers:
    workers: Any = request.app.state.claim_workers
    assert isinstance(workers, ClaimWorkers)
    return workers
