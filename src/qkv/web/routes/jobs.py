"""Jobs: what takes long runs outside the request, tells how far it is, and can be cancelled."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Path, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from qkv.web import limits
from qkv.web.job_manager import Jobs
from qkv.web.routes.noise import check_heads
from qkv.web.schemas import REFUSALS, Error, Shape, reply

router = APIRouter(prefix="/api/jobs", tags=["jobs"], responses=REFUSALS)

Id = Annotated[str, Path(min_length=1, max_length=40, pattern="^[a-z0-9-]+$", description="A job's id.")]
MISSING: dict[int | str, dict[str, Any]] = {404: {"model": Error, "description": "There is no such job."}}


class TrainRequest(Shape):
    """Train a small model on where people were born, to be asked afterwards."""

    kind: Literal["train"]
    people: int = Field(default=50, ge=4, le=2000, description="People whose birthplaces it reads, best known first.")
    steps: int = Field(default=600, ge=10, le=5000, description="Steps of pretraining.")
    layers: int = Field(default=2, ge=1, le=4)
    width: Literal[32, 64, 96, 128] = 64
    attention: Literal["causal", "rope"] = "rope"
    seed: int = Field(default=0, ge=0, le=2**31 - 1)


class StudyRequest(Shape):
    """The noise page's figures against scale, from many draws."""

    kind: Literal["noise-study"]
    n: int = Field(default=10, ge=3, le=limits.MOST_NOISY)
    along: float = Field(default=0.5, ge=0, le=10)
    isotropic: float = Field(default=1e-6, ge=0, le=1)
    heads: int = Field(default=2, ge=2, le=limits.MOST_HEADS, description="Wanted items, fewer than n.")
    success: float = Field(default=0.1, gt=0, le=2)
    scales: list[Annotated[float, Field(gt=0, le=50)]] = Field(
        default=[1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20], min_length=1, max_length=100
    )
    draws: int = Field(default=100_000, ge=100, le=1_000_000)
    seed: int = Field(default=0, ge=0, le=2**31 - 1)


JobRequest = Annotated[TrainRequest | StudyRequest, Field(discriminator="kind")]


class JobReply(BaseModel):
    """A job as it stands."""

    id: str
    kind: Literal["train", "noise-study"]
    status: Literal["running", "done", "failed", "cancelled"]
    settings: dict[str, Any]
    seconds: float = Field(description="How long it has been running, or ran.")
    progress: dict[str, Any] | None = Field(description="The last progress event's data: done, total, and figures.")
    result: dict[str, Any] | None
    error: dict[str, str] | None = Field(description="asked, came, try; as in a refusal.")


class Created(BaseModel):
    """A job was started."""

    id: str


class JobsReply(BaseModel):
    """The jobs since the server started, the latest first."""

    jobs: list[JobReply]


@router.post("", status_code=202, response_model=Created)
async def start(asked: JobRequest, request: Request) -> Response:
    """Start a job; its events tell how it goes."""
    if isinstance(asked, StudyRequest):
        check_heads(asked.n, asked.heads)
    settings = asked.model_dump()
    return reply({"id": _jobs(request).start(settings.pop("kind"), settings)}, 202)


@router.get("", response_model=JobsReply)
async def listed(request: Request) -> Response:
    """All jobs, the latest first."""
    return reply({"jobs": [job.to_json() for job in _jobs(request).latest()]})


@router.get("/{id}", response_model=JobReply, responses=MISSING)
async def one(id: Id, request: Request) -> Response:
    """One job as it stands."""
    return reply(_jobs(request).find(id).to_json())


@router.delete("/{id}", response_model=JobReply, responses=MISSING)
async def cancel(id: Id, request: Request) -> Response:
    """Cancel a job that runs; one that has ended stays as it is."""
    jobs = _jobs(request)
    jobs.cancel(id)
    return reply(jobs.find(id).to_json())


@router.get(
    "/{id}/events",
    response_class=StreamingResponse,
    responses={
        **MISSING,
        200: {
            "description": "Server-sent events progress, done, failed and cancelled, each with JSON data and an id.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
    },
)
async def events(
    id: Id,
    request: Request,
    last_event_id: Annotated[str | None, Header(max_length=20, description="Go on after this event.")] = None,
) -> Response:
    """What happens to a job, from the start or after the event that was seen last."""
    jobs = _jobs(request)
    job = jobs.find(id)
    after = int(last_event_id) if last_event_id is not None and last_event_id.isdecimal() else 0
    jobs.check_streams()
    stream = jobs.follow(job, after)
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(_text(stream), media_type="text/event-stream", headers=headers)


async def _text(stream: AsyncIterator[str]) -> AsyncIterator[bytes]:
    async for part in stream:
        yield part.encode()


def _jobs(request: Request) -> Jobs:
    found: Jobs = request.app.state.jobs
    return found
