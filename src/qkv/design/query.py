"""copy and blend: the smallest query that reads wanted items, in closed form or by the convex program."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from qkv.core.display import Card, Displayable, number, vector
from qkv.core.geometry import common_norm
from qkv.core.memory import Memory
from qkv.core.validation import ArrayLike
from qkv.design.certificates.certificate import Certificate
from qkv.design.certificates.statements.weights import LARGE
from qkv.design.solvers import conic
from qkv.design.solvers.infeasibility import is_absolute, obstacle_to, selecting_query
from qkv.design.solvers.newton import nearest_query
from qkv.design.specs import BlendSpec, covariances
from qkv.errors import QkvError

Array = np.ndarray[Any, np.dtype[np.float64]]

STATUS = {
    "exact": "the wanted ratios exactly, with a leak within tol",
    "within": "the exact ratios are out of reach; the nearest reachable blend is within tol",
    "nearest": "no query found within tol; this is the nearest reachable blend",
}
FORMS = ("smallest", "textbook")
MOST_SIZE = 1e100
SLACKS = (1e-12, 1e-9, 1e-6)
"""The leak is aimed this much (relatively) below tol, so that the rounded query is certainly within it."""


@dataclasses.dataclass(frozen=True, eq=False)
class Design(Displayable):
    """A query for a wanted blend, and how far its reading surely is from it.

    `query` = `scale` · `direction`. Where status is "exact", the scale is the gap in score between the wanted items
    and the strongest other one, the t of t(k_a + k_b); it is the smallest that brings the leak down to tol.
    Elsewhere it is the norm of the query. `distance` and `output_distance` are certified bounds.
    """

    status: str
    wanted: Mapping[Any, float]
    tol: float
    query: torch.Tensor
    scale: float
    distance: float
    output_distance: float
    certificate: Certificate = dataclasses.field(repr=False)
    obstacle: Certificate | None = dataclasses.field(default=None, repr=False)
    floor: Certificate | None = dataclasses.field(default=None, repr=False)

    @property
    def possible(self) -> bool:
        """Whether the reading is within tol of what was wanted."""
        return self.status != "nearest"

    @property
    def direction(self) -> torch.Tensor:
        """The query at scale 1."""
        return self.query / self.scale if self.scale else self.query

    @property
    def certificates(self) -> list[Certificate]:
        """What there is to recheck: the reading, and what is proved of every query that could do it."""
        return [c for c in (self.certificate, self.floor, self.obstacle) if c is not None]

    @property
    def least_norm(self) -> float | None:
        """A certified bound: no query of a smaller norm does this; None where none was found."""
        holder = self.floor if self.floor is not None else self.certificate
        return float(holder.claims["norm_at_least"]) if "norm_at_least" in holder.claims else None

    def card(self) -> Card:
        blend = " + ".join(f"{number(w)} of {item}" for item, w in list(self.wanted.items())[:6])
        facts = [
            ("status", f"{self.status}: {STATUS[self.status]}"),
            ("scale", number(self.scale, 6)),
            ("norm of query", number(float(self.query.norm()), 6)),
            ("distance of weights", f"≤ {number(self.distance, 6)} (tol {number(self.tol)})"),
            ("distance of output", f"≤ {number(self.output_distance, 6 if self.output_distance > 1e-6 else 2)}"),
        ]
        if self.least_norm is not None:
            facts.append(("smallest possible norm", f"≥ {number(self.least_norm, 6)}, certified"))
        facts.append(("query", vector(self.query.tolist())))
        note = ""
        if self.obstacle:
            proved = "Proof that it cannot be done" if is_absolute(self.obstacle) else "What is proved"
            note = f"{proved}: {self._said(self.obstacle)}."
        title = f"Copy {next(iter(self.wanted))}" if len(self.wanted) == 1 else f"Read {blend}"
        return Card(title, tuple(facts), note=note)

    def to_json(self) -> dict[str, Any]:
        out = super().to_json() | {"possible": self.possible, "says": self._said(self.certificate)}
        return out | ({"obstacle": self._said(self.obstacle)} if self.obstacle else {})

    def _said(self, certificate: Certificate) -> str:
        """What a certificate says, with the labels of the wanted items."""
        wanted = np.atleast_1d(certificate.data.get("items", certificate.data.get("item", ())))
        return certificate.worded(dict(zip((int(i) for i in wanted), self.wanted, strict=False)))


def copy(
    memory: Memory | ArrayLike, item: Any, tol: float = 1e-3, form: str = "smallest", noise: ArrayLike | None = None
) -> Design:
    """The query that reads one item alone, to `tol`; see `blend`."""
    memory = memory_of(memory)
    return blend(memory, {memory.labels[memory.index(item)]: 1.0}, tol, form, noise)


def blend(
    memory: Memory | ArrayLike,
    weights: Mapping[Any, float],
    tol: float = 1e-3,
    form: str = "smallest",
    noise: ArrayLike | None = None,
) -> Design:
    """The query that reads a weighted average of items, within `tol` in total variation of the wanted weights.

    form="smallest" gives the query of least norm; form="textbook" gives t·Σk_i over the wanted items with the
    smallest t, which exists for orthogonal keys of one length. `noise`, a covariance for each key, makes the
    query prefer directions in which the wanted keys do not vary.
    """
    memory = memory_of(memory)
    wanted = BlendSpec.of(memory, weights, tol)
    if form not in FORMS:
        raise QkvError(f"a query of form {form!r}", "there is no such form", f"Use one of {', '.join(FORMS)}")
    keys = memory.keys.numpy()
    norm = common_norm(keys)
    metric = None if noise is None else _metric(noise, wanted, memory)
    if form == "textbook" and (norm is None or metric is not None):
        why = "noise was given" if metric is not None else "these keys are not orthogonal vectors of one length"
        raise QkvError("a textbook query t·Σk_i", why, "Use form='smallest', which works for any keys")
    evidence: conic.Solution | None = None
    tried: list[Design] = []
    for slack in _slacks(keys, closed=norm is not None and metric is None):
        aim = dataclasses.replace(wanted, tol=wanted.tol * (1 - slack))
        if norm is not None and metric is None:
            query: Array | None = _closed(keys, norm, aim, textbook=form == "textbook")
        else:
            query, evidence = _program(keys, aim, metric)
        if query is None:
            break
        tried.append(_design("exact", memory, wanted, query, least=form == "smallest" and metric is None))
        if tried[-1].distance <= wanted.tol:
            return tried[-1]
    near = nearest_query(keys, list(wanted.items), wanted.wanted)
    tried.append(_design("nearest", memory, wanted, near, least=False))
    # A tolerance below what float64 can hold is missed by the program's own query too, but by less than by others.
    best = min(tried, key=lambda d: d.distance)
    proof = obstacle_to(keys, wanted, evidence) if evidence is not None and evidence.status != "solved" else None
    return dataclasses.replace(best, status="within" if best.distance <= wanted.tol else "nearest", obstacle=proof)


def memory_of(given: Memory | ArrayLike) -> Memory:
    """A memory, or keys alone as one; refuses keys so large or small that squares leave the range of float64."""
    memory = given if isinstance(given, Memory) else Memory(given)
    size = float(memory.keys.abs().max())
    if size != 0 and not 1 / MOST_SIZE < size < MOST_SIZE:
        came = f"the largest entry of the keys is {size:.3g}"
        raise QkvError("designing a query", came, "Scale the keys to entries near 1; the query scales the other way")
    return memory


def _slacks(keys: Array, closed: bool) -> tuple[float, ...]:
    """The closed form is cheap to try again; the program is not, and how its certificate rounds is known."""
    return SLACKS if closed else SLACKS[2:] if keys.size > LARGE else SLACKS[1:]


def _program(keys: Array, aim: BlendSpec, metric: Array | None) -> tuple[Array | None, conic.Solution]:
    """The smallest query by the convex program; for one item, a query that selects it is always a way in."""
    items = list(aim.items)
    found = conic.smallest_query(keys, items, aim.wanted, aim.tol, metric)
    if found.status == "solved":
        return found.x, found
    way = selecting_query(keys, items[0]) if len(items) == 1 else None
    if way is None:
        return None, found
    scores = keys @ way
    gap = float(scores[items[0]] - np.delete(scores, items[0]).max())
    way = way * np.log((len(keys) - 1) * (1 - aim.tol) / aim.tol) / gap
    shorter = conic.smallest_query(keys, items, aim.wanted, aim.tol, metric, start=way)
    return (shorter.x if shorter.status == "solved" else way), dataclasses.replace(found, status="solved")


def _closed(keys: Array, norm: float, wanted: BlendSpec, textbook: bool) -> Array:
    """The query for orthogonal keys of one norm β, where score i is β² times the i-th coefficient.

    With t + log w_i on the wanted items and 0 on the n-m others, the leak is (n-m)/(n-m+e^t), so the smallest
    scale is t = log((n-m)(1-ε)/ε). Adding a constant to every score changes no weight; subtracting the mean
    makes the coefficients, and so the query, as short as can be.
    """
    n, m = len(keys), len(wanted.items)
    items, logs = list(wanted.items), np.log(wanted.wanted)
    scores = np.zeros(n)
    scores[items] = logs - logs.mean()
    free = n - m + float(np.exp(scores[items]).sum())
    if n - m <= wanted.tol * free:  # the ratios alone leave little enough to the others
        return scores @ keys / norm**2
    scores[items] = np.log((n - m) * (1 - wanted.tol) / wanted.tol) + logs
    return (scores if textbook else scores - scores.mean()) @ keys / norm**2


def _design(status: str, memory: Memory, wanted: BlendSpec, query: Array, least: bool) -> Design:
    keys = memory.keys.numpy()
    items = list(wanted.items)
    data: dict[str, Any] = {
        "keys": keys, "values": memory.values.numpy(), "query": query,
        "items": items, "wanted": wanted.wanted,
    }  # fmt: skip
    multipliers = _multipliers(keys, items, query) if least else None
    if multipliers is not None:
        data |= {"multipliers": multipliers, "tol": wanted.tol}
    certificate = Certificate.issue("weights", data)
    floor = _floor(keys, wanted, query, float(certificate.claims.get("norm_at_least", 0.0))) if least else None
    if float(certificate.claims.get("norm_at_least", 1.0)) <= 0:  # a loose tol that a zero query meets
        certificate = dataclasses.replace(
            certificate, claims={k: v for k, v in certificate.claims.items() if k != "norm_at_least"}
        )
    scores = keys @ query
    rest = np.delete(scores, items)
    gap = float(scores[items].min() - rest.max()) if len(rest) and status == "exact" else 0.0
    return Design(
        status=status,
        wanted={memory.labels[i]: w for i, w in zip(items, wanted.weights, strict=True)},
        tol=wanted.tol,
        query=torch.from_numpy(query),
        scale=gap if gap > 0 else float(np.linalg.norm(query)),
        distance=float(certificate.claims["distance"]),
        output_distance=float(certificate.claims["output"]),
        certificate=certificate,
        floor=floor,
    )


def _floor(keys: Array, wanted: BlendSpec, query: Array, known: float) -> Certificate | None:
    """Where the ratios alone bound the norm better than ratios and leak together do: that bound."""
    items = list(wanted.items)
    if len(items) == 1:
        return None
    ratios = keys[items] - keys[items[0]]
    data = {"keys": keys, "items": items, "wanted": wanted.wanted, "tol": wanted.tol}
    found = Certificate.issue("no query", data | {"multipliers": np.linalg.lstsq(ratios.T, query, rcond=None)[0]})
    return found if float(found.claims["norm_at_least"]) > max(0.0, known) else None


def _multipliers(keys: Array, items: list[int], query: Array) -> Array | None:
    """How the query is made of the gradients of its constraints, for the proof that none is smaller.

    At the optimum q = λ(k_a - Σp_i k_i) + Σν_i(k_i - k_a) with p the weights among the other items; the proof wants
    ν/λ. None where the leak's price λ is not positive: the inequality then bounds nothing.
    """
    ratios = keys[items] - keys[items[0]]
    rest = np.delete(np.arange(len(keys)), items)
    if len(rest) == 0:
        return None
    scores = keys[rest] @ query
    tilt = np.exp(scores - scores.max())
    pull = keys[items[0]] - (tilt / tilt.sum()) @ keys[rest]
    found = np.linalg.lstsq(np.vstack([pull, ratios]).T, query, rcond=None)[0]
    priced = found[0] * np.linalg.norm(pull) > 1e-12 * np.linalg.norm(query)
    return found[1:] / found[0] if priced else None


def _metric(noise: ArrayLike, wanted: BlendSpec, memory: Memory) -> Array:
    """Σ w_i Σ_i over the wanted items, the variance of their scores, with a small ridge to keep queries short."""
    spread = covariances(noise, memory.n, memory.d)[list(wanted.items)]
    mean = torch.einsum("i,ijk->jk", torch.tensor(wanted.weights, dtype=torch.float64), spread).numpy()
    ridge = 1e-6 * float(np.trace(mean)) / memory.d + 1e-12
    return mean + ridge * np.eye(memory.d)
