"""Health, and the initial states of the pages."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel

from qkv import __version__
from qkv.web.schemas import REFUSALS, json_reply

router = APIRouter(prefix="/api", tags=["defaults"], responses=REFUSALS)

LOOKUP: dict[str, Any] = {
    "keys": [[1.0, 0.1], [0.3, 0.95], [-0.8, 0.5], [-0.6, -0.8], [0.5, -0.85], [0.05, 0.0]],
    "values": [
        [0.9, 0.62, 0.0],
        [0.0, 0.45, 0.7],
        [0.0, 0.62, 0.45],
        [0.84, 0.37, 0.0],
        [0.34, 0.71, 0.91],
        [0.6, 0.6, 0.6],
    ],
    "labels": ["a", "b", "c", "d", "e", "middle"],
    "query": [0.8, 0.6],
    "scale": 4.0,
    "wanted": ["a", "b"],
}
NOISE: dict[str, Any] = {
    "n": 10, "along": 0.5, "isotropic": 1e-6, "scale": 6.0, "heads": 2, "radius": 0.1, "n_samples": 200, "seed": 0,
}  # fmt: skip
WIRING: dict[str, Any] = {
    "tokens": [
        {"name": "x_1", "is": {"u_d": 1.0, "u_b": 1.0}},
        {"name": "x_2", "is": {"u_a": 1.0}},
        {"name": "x_3", "is": {"u_c": 1.0, "u_b": 1.0}},
    ],
    "rules": [
        {"token": "x_1", "reads": "x_3", "writes": {"u_b": 1.0, "u_c": -1.0}},
        {"token": "x_2", "reads": "x_1", "writes": {"u_b": 1.0}},
    ],
    "beta": 1.0,
    "tol": 0.05,
}
DEFAULTS = {"lookup": LOOKUP, "noise": NOISE, "wiring": WIRING}


class Health(BaseModel):
    """The server is up."""

    status: Literal["ok"]
    version: str


@router.get("/health", response_model=Health)
async def health() -> Response:
    """Whether the server replies, and the version of qkv."""
    return json_reply({"status": "ok", "version": __version__})


@router.get("/example/{page}", response_model=dict[str, Any])
async def example(page: Literal["lookup", "noise", "wiring"]) -> Response:
    """An initial state of a page: a body for its POST."""
    return json_reply(DEFAULTS[page])
