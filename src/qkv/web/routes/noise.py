"""Noise page: one head, one head per wanted item, and the min-variance query, side by side."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from qkv.noise.method import Method
from qkv.web import code_snippets, limits
from qkv.web.compute_pool import ComputePool
from qkv.web.noise_scenario import NoiseScenario, layouts
from qkv.web.schemas import REFUSALS, PythonCode, RequestModel, Row, json_reply

router = APIRouter(prefix="/api", tags=["noise"], responses=REFUSALS)


class NoiseRequest(RequestModel):
    """n orthonormal keys with noise; equal parts of the first `heads` items (a, b, …) are wanted."""

    n: int = Field(default=10, ge=3, le=limits.MAX_NOISE_ITEMS, description="Items.")
    along: float = Field(default=0.5, ge=0, le=10, description="Variance of the key of a along itself.")
    isotropic: float = Field(default=1e-6, ge=0, le=1, description="Variance of every key in every direction.")
    scale: float = Field(
        default=6.0,
        ge=0,
        le=50,
        description="Factor in front of the wanted keys: their gap in score.",
    )
    heads: int = Field(
        default=2,
        ge=2,
        le=limits.MAX_NOISE_HEADS,
        description="Wanted items, each with a head of its own; fewer than n.",
    )
    radius: float = Field(default=0.1, gt=0, le=2, description="Distance of the output that counts as success.")
    n_samples: int = Field(default=200, ge=1, le=limits.MAX_NOISE_SAMPLES, description="Weights to sample.")
    seed: int = Field(default=0, ge=0, le=2**31 - 1)


class Law(BaseModel):
    """The distribution of the weight of a, as a histogram."""

    edges: Row = Field(description="Edges of the bins, from 0 to 1; the wanted weight is the middle of a bin.")
    share: Row = Field(description="Probability of each bin.")
    method: Method = Field(description="How the distribution was computed.")


class LayoutReply(BaseModel):
    """One layout of heads."""

    name: str
    heads: int
    mean: float = Field(description="Exact mean of the weight of a.")
    variance: float = Field(description="Exact variance of the weight of a.")
    probability: float = Field(description="Probability that the output is within `radius` of the wanted one.")
    low: float = Field(description="Lower bound of the probability.")
    high: float = Field(description="Upper bound of the probability.")
    method: Method = Field(description="How the probability was computed.")
    weight_samples: Row
    law: Law


class NoiseReply(BaseModel):
    """The three layouts."""

    layouts: list[LayoutReply]
    python: PythonCode


@router.post("/noise", response_model=NoiseReply)
async def noise(body: NoiseRequest, request: Request) -> Response:
    """Exact moments, probability of success, distribution and samples of the weight of a, for three layouts."""
    pool: ComputePool = request.app.state.compute_pool
    return json_reply(await pool.run_in_process("reading under noise", compute, body))


def compute(body: NoiseRequest) -> dict[str, Any]:
    """The reply to a request."""
    from qkv.noise.layout_report import layout_reports  # with torch and SciPy: imported by the first request

    scenario = NoiseScenario(body.n, body.along, body.isotropic, body.heads)
    reports = layout_reports(
        scenario.memory,
        layouts(scenario, body.scale),
        scenario.noise,
        scenario.wanted,
        body.radius,
        n_samples=body.n_samples,
        seed=body.seed,
    )
    return {
        "layouts": [
            {
                "name": report.name,
                "heads": report.heads,
                "mean": report.mean,
                "variance": report.variance,
                "probability": report.probability,
                "low": report.low,
                "high": report.high,
                "method": report.method,
                "weight_samples": report.drawn,
                "law": {"edges": report.edges, "share": report.share, "method": report.law_method},
            }
            for report in reports
        ],
        "python": code_snippets.noise(
            body.n, body.along, body.isotropic, body.scale, body.heads, body.radius, body.n_samples, body.seed
        ),
    }


def warm_up() -> None:
    """Compute one reply: the imports and tables that the first request in a process would wait for."""
    compute(NoiseRequest())
