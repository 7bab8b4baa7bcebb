"""Knowledge page: the models that can be asked, and their answers."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, Field

from qkv.web import limits
from qkv.web.compute_pool import ComputePool
from qkv.web.model_registry import ModelRegistry
from qkv.web.schemas import REFUSALS, Label, PythonCode, RefusalReply, RequestModel, json_reply

router = APIRouter(prefix="/api", tags=["knowledge"], responses=REFUSALS)


ModelName = Annotated[str, Path(min_length=1, max_length=limits.MAX_LABEL_LENGTH, description="A name of a model.")]


class ModelReply(BaseModel):
    """A model that can be asked."""

    name: str
    source: Literal["named at start", "trained here", "kept"] = Field(
        description="A model that was trained here is gone when the server stops, or after eight newer ones."
    )
    folder: str | None = Field(description="Where the model stays; null for one that was trained here.")
    attention: str
    n_layer: int
    n_head: int
    d_model: int
    parameters: int


class ModelsReply(BaseModel):
    """The models by name."""

    models: list[ModelReply]
    runs: str = Field(
        description="The folder into which a model that was trained here can be copied, as given by --runs."
    )


class AskRequest(RequestModel):
    """A question for a model."""

    model: Label = Field(description="A name from /api/models.")
    question: str = Field(min_length=1, max_length=limits.MAX_QUESTION_LENGTH)


class AttentionRequest(AskRequest):
    """One head of the model that is asked."""

    layer: int = Field(ge=0, le=limits.MAX_LAYERS_OR_HEADS)
    head: int = Field(ge=0, le=limits.MAX_LAYERS_OR_HEADS)


class AttentionReply(BaseModel):
    """What each token of a question looks at, in one head."""

    tokens: list[str] = Field(description="The tokens of the question; the last stands where the answer begins.")
    weights: str = Field(description="A row for each token, float32 in base64, least significant byte first.")


class Alternative(BaseModel):
    """A possible answer and its probability."""

    text: str
    probability: float


class HeadReply(BaseModel):
    """The attention weight of a head on the name in the question."""

    layer: int
    head: int
    weight: float


class AskReply(BaseModel):
    """An answer, and how far to trust it."""

    question: str
    answer: str
    alternatives: list[Alternative]
    badge: Literal["remembered", "made up", "unsure"] | None = Field(description="Null where the answer is empty.")
    guarantee: str | None = Field(
        description="How often answers with this badge are right, or wrong if made up; null if nothing is guaranteed."
    )
    why: str
    evidence: dict[str, float | None] = Field(description="The signals behind the badge; null where not measured.")
    heads: list[HeadReply] = Field(description="Attention of the heads on the name, the largest first.")
    name: str = Field(description="The name that was found in the question; empty if none was found.")
    python: PythonCode


@router.get("/models", response_model=ModelsReply)
async def models(request: Request) -> Response:
    """The models named on the command line, and those trained by jobs."""
    registry = _registry(request)
    return json_reply({"models": registry.descriptions(), "runs": str(registry.runs)})


@router.post(
    "/models/{name}/keep",
    response_model=ModelReply,
    responses={404: {"model": RefusalReply, "description": "There is no such model."}},
)
async def keep(name: ModelName, request: Request) -> Response:
    """Copy a model that was trained here into the folder of `--runs`, where the next server finds it."""
    pool: ComputePool = request.app.state.compute_pool
    return json_reply(await pool.run("keeping a model", _registry(request).keep, name))


@router.post(
    "/ask", response_model=AskReply, responses={404: {"model": RefusalReply, "description": "There is no such model."}}
)
async def ask(body: AskRequest, request: Request) -> Response:
    """The answer of a model, the alternatives, and the badge with its evidence."""
    pool: ComputePool = request.app.state.compute_pool
    return json_reply(await pool.run("asking a model", _registry(request).ask, body.model, body.question))


@router.post(
    "/ask/attention",
    response_model=AttentionReply,
    responses={404: {"model": RefusalReply, "description": "There is no such model."}},
)
async def attention(body: AttentionRequest, request: Request) -> Response:
    """What the tokens of a question look at, in one head."""
    pool: ComputePool = request.app.state.compute_pool
    arguments = (body.model, body.question, body.layer, body.head)
    return json_reply(await pool.run("looking at a question", _registry(request).attention, *arguments))


def _registry(request: Request) -> ModelRegistry:
    registry: ModelRegistry = request.app.state.model_registry
    return registry
