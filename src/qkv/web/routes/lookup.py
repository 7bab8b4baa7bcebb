"""Lookup page: reading a memory, and designing a query for wanted weights."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from qkv.errors import QkvError
from qkv.web import code_snippets, limits
from qkv.web.compute_pool import ComputePool
from qkv.web.schemas import (
    REFUSALS,
    Entry,
    Label,
    PythonCode,
    RequestModel,
    Row,
    Tolerance,
    Vector,
    Vectors,
    json_reply,
)

if TYPE_CHECKING:
    from qkv.core.memory import Memory
    from qkv.design.certificates.certificate import Certificate
    from qkv.design.query import Design

router = APIRouter(prefix="/api", tags=["lookup"], responses=REFUSALS)

CURVE_POINTS = 126
"""Points of the leak against scale where the current scale lies beyond the scales that the library chooses."""

Labels = Annotated[list[Label], Field(min_length=1, max_length=limits.MAX_ITEMS)]


WantedWeights = Annotated[
    dict[Label, Annotated[Entry, Field(ge=0, le=1)]], Field(min_length=1, max_length=limits.MAX_ITEMS)
]


class MemoryRequest(RequestModel):
    """A memory: as many values and labels as keys."""

    keys: Vectors = Field(description="One key per item, all of one length.")
    values: Vectors = Field(description="One value per item, all of one length.")
    labels: Labels = Field(description="One name per item, all different.")

    def memory(self) -> Memory:
        """The memory.

        Raises:
            QkvError: Rows differ in length, or a label is repeated.
        """
        from qkv.core.memory import Memory  # with torch: imported by the first request, so that the server starts early

        for name, rows in (("keys", self.keys), ("values", self.values)):
            lengths = sorted({len(row) for row in rows})
            if len(lengths) > 1:
                raise QkvError("making a memory", f"the {name} have lengths {lengths}", "Give vectors of one length")
        return Memory(self.keys, self.values, self.labels)


class LookupRequest(MemoryRequest):
    """Read a memory with a query."""

    query: Vector = Field(description="As long as a key.")
    scale: float = Field(default=1.0, ge=0, le=limits.MAX_SCALE, description="Factor in front of the scores.")
    wanted: Labels | WantedWeights | None = Field(
        default=None,
        description="Items outside of which weight is leak: labels, or weights by label that sum to 1; by default the "
        "heaviest item.",
    )


class Curve(BaseModel):
    """Leak against scale, from 0 to beyond the scale of the request."""

    scales: Row
    leaks: Row


class LookupReply(BaseModel):
    """Scores, weights and output of the query, and its leak."""

    scores: Row = Field(description="scale · k_i·q")
    weights: Row
    output: Row
    leak: float = Field(description="Weight outside the wanted items.")
    distance: float | None = Field(
        description="Total variation between the weights and the wanted ones; null where no weights are wanted."
    )
    wanted: list[str]
    curve: Curve
    tol: float = Field(description="The leak that certified_scale is for.")
    certified_scale: float | None = Field(
        description="From this scale on the leak is proved to be at most tol; null where a wanted item does not score "
        "above every other item, or the scale would exceed a million."
    )
    limit: float = Field(
        description="What the leak tends to as the scale grows: the share of items that are not wanted among those "
        "with the highest score."
    )
    python: PythonCode


class CopyRequest(MemoryRequest):
    """Design a query that reads one item alone."""

    item: Label
    leak: Tolerance = 1e-3


class BlendRequest(MemoryRequest):
    """Design a query that reads a weighted average."""

    weights: WantedWeights = Field(description="Wanted weights by label; they sum to 1.")
    leak: Tolerance = 1e-3


class Obstacle(BaseModel):
    """Why no query exists: a convex combination of other keys that scores at least as high."""

    combination: dict[str, float] = Field(description="Weights by label, positive, that sum to 1; may be empty.")
    says: str
    kind: str
    excludes_every_query: bool = Field(description="Whether it excludes every query, not only those up to some norm.")


class DesignReply(BaseModel):
    """A query with its certificate, or the nearest query and the reason why none exists."""

    possible: bool
    status: str
    query: Row
    scale: float
    weights: Row
    output: Row
    leak: float
    bound: float = Field(
        description="Certified bound on the distance of the weights of `query` from the wanted ones, in total "
        "variation."
    )
    tol: float = Field(description="The largest such distance that was allowed.")
    certificate: str = Field(description="The statement of the certificate.")
    obstacle: Obstacle | None
    python: PythonCode


@router.post("/lookup", response_model=LookupReply)
async def lookup(body: LookupRequest, request: Request) -> Response:
    """Scores, weights, output, and the leak against scale."""
    return json_reply(await _pool(request).run("reading a memory", _lookup, body))


@router.post("/design/copy", response_model=DesignReply)
async def design_copy(body: CopyRequest, request: Request) -> Response:
    """The shortest query that reads one item alone, or why there is none."""
    return json_reply(await _pool(request).run("copying an item", _design, body, "copy", body.item))


@router.post("/design/blend", response_model=DesignReply)
async def design_blend(body: BlendRequest, request: Request) -> Response:
    """The shortest query that reads a weighted average, or why there is none."""
    return json_reply(await _pool(request).run_in_process("blending items", _design, body, "blend", body.weights))


def _pool(request: Request) -> ComputePool:
    pool: ComputePool = request.app.state.compute_pool
    return pool


def _lookup(body: LookupRequest) -> dict[str, Any]:
    from qkv.design import leak

    memory = body.memory()
    reading = memory.read(body.query, scale=body.scale)
    wanted = list(body.wanted) if isinstance(body.wanted, dict) else body.wanted
    found = leak(memory, body.query, wanted)
    end = None
    if body.scale > float(found.scales[-1]):
        end = 1.25 * body.scale
        found = leak(memory, body.query, wanted, scales=np.linspace(0.0, end, CURVE_POINTS))
    here = leak(memory, body.query, wanted, scales=[body.scale], tol=None)
    return {
        "scores": body.scale * (memory.keys @ memory.keys.new_tensor(body.query)),
        "weights": reading.weights,
        "output": reading.output,
        "leak": float(here.leaks[0]),
        "distance": _distance(memory, reading.weights.tolist(), body.wanted),
        "wanted": found.items,
        "curve": {"scales": found.scales, "leaks": found.leaks},
        "tol": found.tol,
        "certified_scale": found.scale,
        "limit": leak_limit(body.keys, body.query, {memory.index(item) for item in found.items}),
        "python": code_snippets.lookup(
            body.keys, body.values, body.labels, body.query, body.scale, found.items, (end, CURVE_POINTS)
        ),
    }


def _distance(memory: Memory, weights: list[float], wanted: Any) -> float | None:
    """Total variation between the weights of a reading and the wanted ones; None if items are wanted, but no weights.

    Raises:
        QkvError: The wanted weights do not sum to 1.
    """
    if not isinstance(wanted, dict):
        return None
    from qkv.design.specs import BlendSpec

    spec = BlendSpec.of(memory, wanted, 0.5)
    parts = dict(zip(spec.items, spec.weights, strict=True))
    return sum(abs(w - parts.get(i, 0.0)) for i, w in enumerate(weights)) / 2


def leak_limit(keys: list[list[float]], query: list[float], wanted: set[int]) -> float:
    """What the leak tends to as the scale grows: the share of unwanted items among those with the highest score.

    Scores are compared exactly: two that agree in float64 may still differ, and then one of them takes all.
    """
    k, q = np.array(keys), np.array(query)
    scores = k @ q
    rounding = 1e-9 * float((np.abs(k) @ np.abs(q)).max())
    near = [int(i) for i in np.flatnonzero(scores >= scores.max() - rounding)]
    exact = {i: sum(Fraction(a) * Fraction(b) for a, b in zip(keys[i], query, strict=True)) for i in near}
    best = [i for i in near if exact[i] == max(exact.values())]
    return sum(i not in wanted for i in best) / len(best)


def _design(body: CopyRequest | BlendRequest, verb: str, wanted: Any) -> dict[str, Any]:
    from qkv.design import blend, copy, leak

    memory = body.memory()
    found: Design = (copy if verb == "copy" else blend)(memory, wanted, body.leak)
    reading = memory.read(found.query)
    return {
        "possible": found.possible,
        "status": found.status,
        "query": found.query,
        "scale": found.scale,
        "weights": reading.weights,
        "output": reading.output,
        "leak": float(leak(memory, found.query, list(found.wanted), scales=[1.0], tol=None).leaks[0]),
        "bound": found.distance,
        "tol": found.tol,
        "certificate": found.certificate.worded(dict(enumerate(memory.labels))),
        "obstacle": None if found.obstacle is None else _obstacle(memory, found.obstacle),
        "python": code_snippets.design(verb, body.keys, body.values, body.labels, wanted, body.leak),
    }


def _obstacle(memory: Memory, certificate: Certificate) -> dict[str, Any]:
    """The convex combination in the certificate by label, so that the page can draw it; empty if it has none."""
    data = certificate.data
    index_field, weight_field = ("indices", "weights") if certificate.kind == "inside" else ("others", "mix")
    indices, weights = data.get(index_field), data.get(weight_field)
    combination = {}
    if indices is not None and weights is not None:
        total = float(sum(float(w) for w in weights)) or 1.0
        combination = {str(memory.labels[int(i)]): float(w) / total for i, w in zip(indices, weights, strict=True)}
    return {
        "combination": combination,
        "says": certificate.worded(dict(enumerate(memory.labels))),
        "kind": certificate.kind,
        "excludes_every_query": certificate.excludes_all,
    }
