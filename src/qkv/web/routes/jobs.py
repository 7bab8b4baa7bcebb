"""Jobs: long computations outside of a request, with progress events and cancellation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Path, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from qkv.web import limits
from qkv.web.job_manager import JobManager
from qkv.web.model_registry import ModelRegistry
from qkv.web.noise_scenario import NoiseScenario
from qkv.web.schemas import REFUSALS, Label, RefusalReply, RequestModel, json_reply

router = APIRouter(prefix="/api/jobs", tags=["jobs"], responses=REFUSALS)

JobId = Annotated[str, Path(min_length=1, max_length=40, pattern="^[a-z0-9-]+$", description="The id of a job.")]
NOT_FOUND: dict[int | str, dict[str, Any]] = {404: {"model": RefusalReply, "description": "There is no such job."}}


class TrainRequest(RequestModel):
    """Train a small model on people's birthplaces, which can be asked afterwards."""

    kind: Literal["train"]
    people: int = Field(default=50, ge=4, le=2000, description="People whose birthplaces it reads, best known first.")
    steps: int = Field(default=600, ge=10, le=5000, description="Training steps.")
    n_layer: int = Field(default=2, ge=1, le=4)
    d_model: Literal[32, 64, 96, 128] = 64
    attention: Literal["causal", "rope"] = "rope"
    seed: int = Field(default=0, ge=0, le=2**31 - 1)


class StudyRequest(RequestModel):
    """The figures of the noise page against scale."""

    kind: Literal["noise-study"]
    n: int = Field(default=10, ge=3, le=limits.MAX_NOISE_ITEMS)
    along: float = Field(default=0.5, ge=0, le=10)
    isotropic: float = Field(default=1e-6, ge=0, le=1)
    heads: int = Field(default=2, ge=2, le=limits.MAX_NOISE_HEADS, description="Wanted items, fewer than n.")
    radius: float = Field(default=0.1, gt=0, le=2, description="Distance of the output that counts as success.")
    scales: list[Annotated[float, Field(gt=0, le=50)]] = Field(
        default=[1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20], min_length=1, max_length=100
    )
    refine: int = Field(
        default=0, ge=0, le=100, description="Scales to add at most, between those where a probability changes fast."
    )
    n_draws: int = Field(default=100_000, ge=100, le=1_000_000, description="Draws where a probability is sampled.")
    seed: int = Field(default=0, ge=0, le=2**31 - 1)


class HeadsRequest(RequestModel):
    """The table of heads of a model, with the effect of removing each of them."""

    kind: Literal["heads"]
    model: Label = Field(description="A name from /api/heads/models, but not the example, which has no table.")
    text: str = Field(min_length=1, max_length=limits.MAX_HEADS_TEXT)
    effect_tokens: int = Field(
        default=32, ge=2, le=limits.MAX_EFFECT_TOKENS, description="Tokens on which the effect of removing is measured."
    )


JobRequest = Annotated[TrainRequest | StudyRequest | HeadsRequest, Field(discriminator="kind")]


class JobReply(BaseModel):
    """The state of a job."""

    id: str
    kind: Literal["train", "noise-study", "heads"]
    status: Literal["running", "done", "failed", "cancelled"]
    settings: dict[str, Any]
    seconds: float = Field(description="How long it has been running, or ran.")
    progress: dict[str, Any] | None = Field(description="Data of the last progress event: done, total, and figures.")
    result: dict[str, Any] | None
    error: dict[str, str] | None = Field(description="request, problem and hint, as in a refusal.")


class Created(BaseModel):
    """The id of a job that was started."""

    id: str


class JobsReply(BaseModel):
    """The jobs since the server started, the latest first."""

    jobs: list[JobReply]


@router.post(
    "",
    status_code=202,
    response_model=Created,
    responses={404: {"model": RefusalReply, "description": "There is no such model."}},
)
async def start(body: JobRequest, request: Request) -> Response:
    """Start a job; follow it by its events."""
    if isinstance(body, StudyRequest):
        NoiseScenario(
            body.n, body.along, body.isotropic, body.heads
        )  # refuses what it cannot be, before the job starts
    inputs = {}
    if isinstance(body, HeadsRequest):
        registry: ModelRegistry = request.app.state.model_registry
        inputs["folder"] = str(registry.folder(body.model))
    settings = body.model_dump()
    return json_reply({"id": _jobs(request).start(settings.pop("kind"), settings, inputs)}, 202)


@router.get("", response_model=JobsReply)
async def all_jobs(request: Request) -> Response:
    """All jobs, the latest first."""
    return json_reply({"jobs": [job.to_json() for job in _jobs(request).latest()]})


@router.get("/{id}", response_model=JobReply, responses=NOT_FOUND)
async def job_state(id: JobId, request: Request) -> Response:
    """The state of one job."""
    return json_reply(_jobs(request).find(id).to_json())


@router.delete("/{id}", response_model=JobReply, responses=NOT_FOUND)
async def cancel(id: JobId, request: Request) -> Response:
    """Cancel a job that is running; one that has ended stays as it is."""
    jobs = _jobs(request)
    jobs.cancel(id)
    return json_reply(jobs.find(id).to_json())


@router.get(
    "/{id}/events",
    response_class=StreamingResponse,
    responses={
        **NOT_FOUND,
        200: {
            "description": "Server-sent events progress, done, failed and cancelled, each with JSON data and an id.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
    },
)
async def events(
    id: JobId,
    request: Request,
    last_event_id: Annotated[str | None, Header(max_length=20, description="Only events after this one.")] = None,
) -> Response:
    """The events of a job, from the first one or after the one in Last-Event-ID, until it ends."""
    jobs = _jobs(request)
    job = jobs.find(id)
    after = int(last_event_id) if last_event_id is not None and last_event_id.isdecimal() else 0
    jobs.check_streams()
    stream = jobs.follow(job, after)
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(_encode(stream), media_type="text/event-stream", headers=headers)


async def _encode(stream: AsyncIterator[str]) -> AsyncIterator[bytes]:
    async for part in stream:
        yield part.encode()


def _jobs(request: Request) -> JobManager:
    manager: JobManager = request.app.state.job_manager
    return manager
