"""Heads page: models named at start, all heads on one text, one head, and one token of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from qkv.web import limits
from qkv.web.head_tasks import rounding_reply, survey_reply, token_reply, weights_reply
from qkv.web.head_worker import HeadWorker
from qkv.web.model_registry import ModelRegistry
from qkv.web.schemas import REFUSALS, Label, PythonCode, RefusalReply, RequestModel, json_reply

NOT_FOUND: dict[int | str, dict[str, Any]] = {404: {"model": RefusalReply, "description": "There is no such model."}}
router = APIRouter(prefix="/api/heads", tags=["heads"], responses={**REFUSALS, **NOT_FOUND})

EXAMPLE = "built-in example"
"""The name of the example, which is there without a model; a model of this name takes its place."""
EXAMPLE_TEXT = "the cat saw the dog and the dog saw the cat"
DEFAULT_TEXT = (
    "Immanuel Kant was born in Königsberg in 1724. He taught there for most of his life, and when Kant walked past, "
    "people in Königsberg set their clocks by him."
)
RUN_TEXT = "Where was Immanuel Kant born?"
"""Texts to begin with; a run of qkv's own may have a short context, of letters."""
Place = Annotated[int, Field(ge=0, le=limits.MAX_LAYERS_OR_HEADS)]


class HeadModel(BaseModel):
    """A model whose heads can be looked at."""

    name: str
    source: Literal["named at start", "trained here", "kept", "built in"]
    kind: Literal["transformers", "run", "example"]
    text: str = Field(description="A text to begin with.")


class HeadModelsReply(BaseModel):
    """The models, those of the owner first, and the example last."""

    models: list[HeadModel]


class SurveyRequest(RequestModel):
    """A text for a model."""

    model: Label = Field(description="A name from /api/heads/models.")
    text: str = Field(min_length=1, max_length=limits.MAX_HEADS_TEXT)


class HeadReply(BaseModel):
    """One head on the text."""

    layer: int
    head: int
    kind: str
    score: float
    judged_on: str = Field(description='What gave kind and score: "the text", or "repeated random tokens".')
    effective: float = Field(description="How many tokens it effectively averages: exp(entropy).")
    margin: float | None = Field(description="Median difference between the largest score and the second.")
    radius: float | None = Field(
        description="Median distance that every key may move, as a share of a key's length, before another item can "
        "be on top: a lower bound."
    )
    reads: float = Field(description="Share of queries that put at least 90 % of their weight on one item.")


class SurveyReply(BaseModel):
    """All heads of a model on a text."""

    model: str
    tokens: list[str]
    layers: int
    heads: int
    causal: bool
    repeated: bool = Field(description="Whether induction and duplicates were judged on repeated random tokens.")
    rows: list[HeadReply]
    picture_size: int
    pictures: str = Field(
        description="Bytes in base64, by layer, head, row and column: the largest weight of each part, 255 for 1."
    )
    python: PythonCode


class WeightsRequest(SurveyRequest):
    """One head of a model on a text."""

    layer: Place
    head: Place


class WeightsReply(BaseModel):
    """What every token looks at, in one head."""

    layer: int
    head: int
    weights: str = Field(description="A row for each token, float32 in base64, least significant byte first.")
    python: PythonCode


class RoundingRow(BaseModel):
    """One head with its keys rounded to one number of bits, over all tokens."""

    layer: int
    head: int
    bits: int
    predicted: float = Field(description="Root mean square of the output's error over that of the output, predicted.")
    measured: float
    survives_predicted: float = Field(description="Chance that the top item stays on top, predicted.")
    survives: float
    certified: float = Field(description="Share of queries for which rounding cannot change the top item.")
    noise: float
    wide: float
    exact_queries: int
    method: Literal["first order", "exact moments", "both"]
    says: str


class RoundingReply(BaseModel):
    """One head with its keys rounded to 8 to 2 bits."""

    layer: int
    head: int
    rows: list[RoundingRow]
    python: PythonCode


class TokenRequest(WeightsRequest):
    """One token of a text, in one head."""

    token: Place = Field(description="The place of the token that looks.")
    bits: int = Field(default=4, ge=1, le=16, description="Bits of rounded keys.")
    harden: bool = Field(default=False, description="Whether to search for a hardened query, which takes seconds.")


class LookedUp(BaseModel):
    """A token that is seen."""

    position: int
    token: str
    score: float
    weight: float
    spread: float | None = Field(description="Predicted standard deviation of the weight under rounding.")
    rounded: float | None = Field(description="The weight with rounded keys.")
    hardened: float | None = Field(description="The weight with the hardened query.")


class SpreadReply(BaseModel):
    """What rounding does to the output."""

    bits: int
    predicted: float
    measured: float
    same_top: bool


class HardenedReply(BaseModel):
    """A query that resists rounding better, beside the model's own."""

    bits: int
    squared_error: float
    own_squared_error: float
    distance: float
    length: float
    cosine: float
    query: list[float]
    says: str


class TokenReply(BaseModel):
    """What one token looks at, and how firmly."""

    layer: int
    head: int
    token: int
    bits: int
    margin: float | None
    radius: float | None
    firmly: str
    looked_up: list[LookedUp]
    spread: list[SpreadReply]
    hardened: HardenedReply | None
    note: str
    python: PythonCode


@router.get("/models", response_model=HeadModelsReply)
async def models(request: Request) -> Response:
    """The models that were named at start, trained here or kept, and the built-in example."""
    registry: ModelRegistry = request.app.state.model_registry
    texts = {"run": RUN_TEXT, "transformers": DEFAULT_TEXT}
    found = [{**model, "text": texts[model["kind"]]} for model in registry.head_models()]
    if all(model["name"] != EXAMPLE for model in found):
        found.append({"name": EXAMPLE, "source": "built in", "kind": "example", "text": EXAMPLE_TEXT})
    return json_reply({"models": found})


@router.post("/survey", response_model=SurveyReply)
async def survey(body: SurveyRequest, request: Request) -> Response:
    """Kind, firmness and a small picture of every head on a text."""
    return json_reply(await _run(request, body, survey_reply))


@router.post("/weights", response_model=WeightsReply)
async def weights(body: WeightsRequest, request: Request) -> Response:
    """What every token looks at, in one head."""
    return json_reply(await _run(request, body, weights_reply, body.layer, body.head))


@router.post("/rounding", response_model=RoundingReply)
async def rounding(body: WeightsRequest, request: Request) -> Response:
    """One head with its keys rounded: output error, and whether the top item stays on top."""
    return json_reply(await _run(request, body, rounding_reply, body.layer, body.head))


@router.post("/token", response_model=TokenReply)
async def token(body: TokenRequest, request: Request) -> Response:
    """What one token looks at, with scores, and what rounding does to it."""
    settings = (body.layer, body.head, body.token, body.bits, body.harden)
    return json_reply(await _run(request, body, token_reply, *settings))


async def _run(request: Request, body: SurveyRequest, function: Any, *arguments: Any) -> bytes:
    worker: HeadWorker = request.app.state.head_worker
    registry: ModelRegistry = request.app.state.model_registry
    known = any(model["name"] == body.model for model in registry.head_models())
    folder = None if body.model == EXAMPLE and not known else str(registry.folder(body.model))
    what = f"looking at the heads of {body.model}"
    return await worker.run(what, function, body.model, folder, body.text, *arguments)
