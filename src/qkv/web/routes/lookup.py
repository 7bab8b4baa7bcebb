"""Lookup: reading a memory, and designing the query that reads what is wanted."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from qkv.core.memory import Memory
from qkv.design import blend, copy, leak
from qkv.design.certificates.certificate import Certificate
from qkv.design.query import Design
from qkv.errors import QkvError
from qkv.web import code_snippets, limits
from qkv.web.schemas import REFUSALS, Entry, Label, Python, Row, Shape, Tolerance, Vector, Vectors, reply

router = APIRouter(prefix="/api", tags=["lookup"], responses=REFUSALS)

Labels = Annotated[list[Label], Field(min_length=1, max_length=limits.MOST_ITEMS)]


class Items(Shape):
    """A memory: as many keys as values and labels."""

    keys: Vectors = Field(description="One key an item, all of one length.")
    values: Vectors = Field(description="One value an item, all of one length.")
    labels: Labels = Field(description="One name an item, all different.")

    def memory(self) -> Memory:
        """The memory they make; refuses ragged rows and repeated labels."""
        for name, rows in (("keys", self.keys), ("values", self.values)):
            lengths = sorted({len(row) for row in rows})
            if len(lengths) > 1:
                raise QkvError("making a memory", f"the {name} have lengths {lengths}", "Give vectors of one length")
        return Memory(self.keys, self.values, self.labels)


class LookupRequest(Items):
    """Read a memory with a query."""

    query: Vector = Field(description="As long as a key.")
    scale: float = Field(default=1.0, ge=0, le=limits.MOST_SCALE, description="Factor in front of the scores.")
    wanted: Labels | None = Field(
        default=None, description="Items whose others' weight is the leak; else the heaviest."
    )


class Curve(BaseModel):
    """Leak against scale."""

    scales: Row
    leaks: Row


class LookupReply(BaseModel):
    """What the query reads."""

    scores: Row = Field(description="scale · k_i·q")
    weights: Row
    output: Row
    leak: float = Field(description="Weight outside the wanted items.")
    wanted: list[str]
    curve: Curve
    tol: float = Field(description="The leak that certified_scale is for.")
    certified_scale: float | None = Field(description="From here on the leak is proved to be within tol.")
    python: Python


class CopyRequest(Items):
    """Design a query that reads one item alone."""

    item: Label
    leak: Tolerance = 1e-3


class BlendRequest(Items):
    """Design a query that reads a weighted average."""

    weights: dict[Label, Annotated[Entry, Field(ge=0, le=1)]] = Field(
        min_length=1, max_length=limits.MOST_ITEMS, description="Wanted weights by label; they sum to 1."
    )
    leak: Tolerance = 1e-3


class Obstacle(BaseModel):
    """Why it cannot be done: a combination of other keys that stands in the way."""

    combination: dict[str, float] = Field(description="Weights by label, positive, that sum to 1; may be empty.")
    says: str
    kind: str


class DesignReply(BaseModel):
    """A query, what it surely does, and what it cannot."""

    possible: bool
    status: str
    query: Row
    scale: float
    weights: Row
    output: Row
    leak: float
    bound: float = Field(description="Certified: the weights are at most this far from the wanted ones.")
    certificate: str = Field(description="What the certificate says.")
    obstacle: Obstacle | None
    python: Python


@router.post("/lookup", response_model=LookupReply)
async def lookup(asked: LookupRequest, request: Request) -> Response:
    """Scores, weights, output, and the leak against scale."""
    return reply(await request.app.state.work.run("reading a memory", _lookup, asked))


@router.post("/design/copy", response_model=DesignReply)
async def design_copy(asked: CopyRequest, request: Request) -> Response:
    """The smallest query that reads one item alone, or why there is none."""
    return reply(await request.app.state.work.run("copying an item", _design, asked, "copy", asked.item))


@router.post("/design/blend", response_model=DesignReply)
async def design_blend(asked: BlendRequest, request: Request) -> Response:
    """The smallest query that reads a weighted average, or the nearest there is."""
    return reply(await request.app.state.work.run("blending items", _design, asked, "blend", asked.weights))


def _lookup(asked: LookupRequest) -> dict[str, Any]:
    memory = asked.memory()
    reading = memory.read(asked.query, scale=asked.scale)
    found = leak(memory, asked.query, asked.wanted)
    here = leak(memory, asked.query, asked.wanted, scales=[asked.scale], tol=None)
    return {
        "scores": asked.scale * (memory.keys @ memory.keys.new_tensor(asked.query)),
        "weights": reading.weights,
        "output": reading.output,
        "leak": float(here.leaks[0]),
        "wanted": found.items,
        "curve": {"scales": found.scales, "leaks": found.leaks},
        "tol": found.tol,
        "certified_scale": found.scale,
        "python": code_snippets.lookup(asked.keys, asked.values, asked.labels, asked.query, asked.scale, found.items),
    }


def _design(asked: CopyRequest | BlendRequest, verb: str, wish: Any) -> dict[str, Any]:
    memory = asked.memory()
    found: Design = (copy if verb == "copy" else blend)(memory, wish, asked.leak)
    reading = memory.read(found.query)
    wanted = list(found.wanted)
    return {
        "possible": found.possible,
        "status": found.status,
        "query": found.query,
        "scale": found.scale,
        "weights": reading.weights,
        "output": reading.output,
        "leak": float(leak(memory, found.query, wanted, scales=[1.0], tol=None).leaks[0]),
        "bound": found.distance,
        "certificate": found.certificate.worded(dict(enumerate(memory.labels))),
        "obstacle": None if found.obstacle is None else obstacle(memory, found.obstacle),
        "python": code_snippets.design(verb, asked.keys, asked.values, asked.labels, wish, asked.leak),
    }


def obstacle(memory: Memory, certificate: Certificate) -> dict[str, Any]:
    """The certificate's combination by label, so that it can be drawn."""
    data = certificate.data
    names, weights = ("indices", "weights") if certificate.kind == "inside" else ("others", "mix")
    places, parts = data.get(names), data.get(weights)
    mixed = {}
    if places is not None and parts is not None:
        total = float(sum(float(w) for w in parts)) or 1.0
        mixed = {str(memory.labels[int(i)]): float(w) / total for i, w in zip(places, parts, strict=True)}
    return {"combination": mixed, "says": certificate.worded(dict(enumerate(memory.labels))), "kind": certificate.kind}
