"""Noise: one head, a head for each wanted item, and a hardened one, side by side."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from qkv.core.memory import Memory
from qkv.errors import QkvError
from qkv.noise.key_noise import Gaussian
from qkv.noise.layout_report import layout_reports, reference_layouts
from qkv.web import code_snippets, limits
from qkv.web.schemas import REFUSALS, Python, Row, Shape, reply

router = APIRouter(prefix="/api", tags=["noise"], responses=REFUSALS)

NAMES = "abcdefgh"


class NoiseRequest(Shape):
    """n orthonormal keys with noise; wanted are equal parts of the first items, a, b, …, as many as there are heads."""

    n: int = Field(default=10, ge=3, le=limits.MOST_NOISY, description="Items.")
    along: float = Field(default=0.5, ge=0, le=10, description="Variance of the key of a along itself.")
    isotropic: float = Field(default=1e-6, ge=0, le=1, description="Variance of every key in every direction.")
    scale: float = Field(default=6.0, ge=0, le=50, description="Gap in score between wanted and other items.")
    heads: int = Field(
        default=2, ge=2, le=limits.MOST_HEADS, description="Wanted items, each with a head of its own; fewer than n."
    )
    success: float = Field(default=0.1, gt=0, le=2, description="Distance of the output that counts as success.")
    samples: int = Field(default=200, ge=1, le=limits.MOST_SAMPLES, description="Readings to draw.")
    seed: int = Field(default=0, ge=0, le=2**31 - 1)


class Law(BaseModel):
    """The distribution of the weight of a: the chance that it lies between two edges, for each two of them."""

    edges: Row = Field(description="From 0 to 1; the wanted weight is in the middle of two of them.")
    share: Row
    method: str = Field(description="quadrature, or sampling.")


class ArmReply(BaseModel):
    """One layout of heads."""

    name: str
    heads: int
    mean: float = Field(description="Exact mean of the weight of a.")
    variance: float = Field(description="Exact variance of the weight of a.")
    probability: float = Field(description="That the output is within `success` of the wanted one.")
    low: float = Field(description="The probability is at least this,")
    high: float = Field(description="and at most this.")
    method: str = Field(description="Of the probability: integration, integration over draws, or sampling.")
    weight_samples: Row
    law: Law


class NoiseReply(BaseModel):
    """The three arms."""

    arms: list[ArmReply]
    python: Python


@router.post("/noise", response_model=NoiseReply)
async def noise(asked: NoiseRequest, request: Request) -> Response:
    """Exact moments, probability of success, law and samples of the weight of a, for three layouts."""
    return reply(await request.app.state.work.run_aside("reading under noise", figures, asked))


@lru_cache(maxsize=128)
def memory_of(n: int) -> Memory:
    """n orthonormal keys; values are the same, so that the output's error is the weights'."""
    return Memory(torch.eye(n, dtype=torch.float64), labels=[*NAMES[:n], *range(len(NAMES) + 1, n + 1)])


def wanted_of(heads: int) -> dict[str, float]:
    """Equal parts of the first items."""
    return dict.fromkeys(NAMES[:heads], 1 / heads)


@lru_cache(maxsize=128)
def layouts_of(n: int, along: float, isotropic: float, scale: float, heads: int) -> tuple[Gaussian, dict[str, Any]]:
    """Noise and layouts, kept while other sliders move."""
    model = Gaussian(isotropic=isotropic, along={"a": along})
    return model, reference_layouts(memory_of(n), wanted_of(heads), model, scale)


def check_heads(n: int, heads: int) -> None:
    """Of n items, some must be left that are not wanted."""
    if heads >= n:
        raise QkvError("reading under noise", f"{heads} heads for {n} items", "Give fewer heads than items")


def figures(asked: NoiseRequest) -> dict[str, Any]:
    """The three arms, and the Python for them."""
    check_heads(asked.n, asked.heads)
    memory, wanted = memory_of(asked.n), wanted_of(asked.heads)
    model, layouts = layouts_of(asked.n, asked.along, asked.isotropic, asked.scale, asked.heads)
    found = layout_reports(memory, layouts, model, wanted, asked.success, n_samples=asked.samples, seed=asked.seed)
    return {
        "arms": [
            {
                "name": arm.name,
                "heads": arm.heads,
                "mean": arm.mean,
                "variance": arm.variance,
                "probability": arm.probability,
                "low": arm.low,
                "high": arm.high,
                "method": arm.method,
                "weight_samples": arm.drawn,
                "law": {"edges": arm.edges, "share": arm.share, "method": arm.law},
            }
            for arm in found
        ],
        "python": code_snippets.noise(
            asked.n, asked.along, asked.isotropic, asked.scale, asked.heads, asked.success, asked.samples, asked.seed
        ),
    }
