"""Knowledge: the models that the owner named or trained here, and what they answer."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from qkv.web import limits
from qkv.web.model_registry import Models
from qkv.web.schemas import REFUSALS, Error, Label, Python, Shape, reply

router = APIRouter(prefix="/api", tags=["knowledge"], responses=REFUSALS)


class ModelReply(BaseModel):
    """A model that can be asked."""

    name: str
    source: Literal["named at start", "trained here"]
    attention: str
    layers: int
    heads: int
    width: int
    parameters: int


class ModelsReply(BaseModel):
    """The models by name."""

    models: list[ModelReply]


class AskRequest(Shape):
    """A question for a model."""

    model: Label = Field(description="A name from /api/models.")
    question: str = Field(min_length=1, max_length=limits.MOST_QUESTION)


class Alternative(BaseModel):
    """What it might have answered."""

    text: str
    probability: float


class LookingHead(BaseModel):
    """A head, and how much it looked at the name in the question."""

    layer: int
    head: int
    weight: float


class AskReply(BaseModel):
    """An answer, and whether to trust it."""

    question: str
    answer: str
    alternatives: list[Alternative]
    badge: Literal["remembered", "made up", "unsure"]
    why: str
    evidence: dict[str, float | None] = Field(description="The signals behind the badge; null where not measured.")
    heads: list[LookingHead] = Field(description="The heads that look at the name, most first.")
    name: str = Field(description="The name that was found in the question.")
    python: Python


@router.get("/models", response_model=ModelsReply)
async def models(request: Request) -> Response:
    """The models that were named at start, and those trained here."""
    return reply({"models": _models(request).listed()})


@router.post(
    "/ask", response_model=AskReply, responses={404: {"model": Error, "description": "There is no such model."}}
)
async def ask(asked: AskRequest, request: Request) -> Response:
    """The model's answer, the alternatives, and the badge with its evidence."""
    found = _models(request)
    return reply(await request.app.state.work.run("asking a model", found.ask, asked.model, asked.question))


def _models(request: Request) -> Models:
    found: Models = request.app.state.models
    return found
