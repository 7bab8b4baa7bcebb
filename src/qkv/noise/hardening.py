"""harden: the query, or the heads, that keep a wanted blend in spite of the noise."""

# A blend is a set of linear ratios and one convex leak inequality (design/convex.py); under noise the objective is the
# variance of the wanted scores, qᵀ(Σ w_i Σ_i)q, plus a ridge λ‖q‖² that weighs the other directions. That program finds
# where the noise is not. It does not know what a score's variance does to the output, so a few ridges and leaks are
# tried, the exact mean squared error chooses, and L-BFGS through the exact moments refines, within the tolerance.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from qkv.core.geometry import common_norm
from qkv.core.masks import whole
from qkv.core.memory import Memory
from qkv.core.show import Card, Shown, number, vector
from qkv.design.convex import smallest_query
from qkv.design.problem import Blend
from qkv.design.query import blend, copy
from qkv.errors import QkvError
from qkv.noise.exact import Spread, spread_of
from qkv.noise.heads import Comparison, compare
from qkv.noise.models import KeyNoise, Noise

RIDGES = (1e-6, 1e-4, 1e-2, 1.0)
"""Weights of ‖q‖², relative to the mean variance of the wanted keys."""
LEAKS = (0.3, 0.1, 0.01)
"""Smaller leaks worth trying, relative to tol."""
AIM = 1 - 1e-6
STEPS = 60
PENALTY = 100.0
HELPS = 0.9
"""More heads help if they bring the squared error below this part of one head's."""


@dataclass(frozen=True, eq=False)
class Hardened(Shown):
    """Queries and mix for a wanted blend under noise, their spread, and the usual answers beside them.

    `distance` is how far the reading without noise is from the wanted weights, in total variation; `squared_error` is
    E‖output − wanted output‖² under the noise. `gain` and `gain_over_heads` are by how much it was larger for the plain
    answer and for one plain head an item (None where no head can copy an item).
    """

    queries: Tensor
    mix: Tensor
    labels: Mapping[Any, float]
    tol: float
    distance: float
    squared_error: float
    gain: float
    gain_over_heads: float | None
    advice: str
    spread: Spread = field(repr=False)
    comparison: Comparison = field(repr=False)

    @property
    def possible(self) -> bool:
        """Whether the reading without noise is within tol of what was wanted."""
        return self.distance <= self.tol

    @property
    def query(self) -> Tensor:
        """The one query (d,), or all of them (h, d)."""
        return self.queries[0] if len(self.queries) == 1 else self.queries

    def card(self) -> Card:
        wish = " + ".join(f"{number(w)} of {item}" for item, w in list(self.labels.items())[:6])
        inner = self.comparison.card()
        one = len(self.queries) == 1
        facts = [
            ("squared error", f"{number(self.squared_error)}, {number(self.gain, 3)} times less than plain"),
            ("distance without noise", f"{number(self.distance)} (tol {number(self.tol)})"),
            ("query" if one else "norms of queries", vector(self.queries[0] if one else self.queries.norm(dim=1))),
        ]
        if not one:
            facts.append(("mix", vector(self.mix)))
        heads = "1 head" if one else f"{len(self.queries)} heads"
        return Card(f"Hardened: {wish} by {heads}", tuple(facts), inner.columns, inner.rows, self.advice)


@dataclass(frozen=True, eq=False)
class _Task:
    """What is wanted, of which memory, under which noise."""

    memory: Memory
    keys: KeyNoise
    wanted: Blend

    @property
    def target(self) -> Tensor:
        out = torch.zeros(self.memory.n, dtype=torch.float64)
        out[list(self.wanted.items)] = torch.tensor(self.wanted.weights, dtype=torch.float64)
        return out

    def loss(self, queries: Tensor, mix: Tensor) -> Tensor:
        """E‖output − wanted output‖²."""
        found = spread_of(self.keys, self.memory, queries, mix)
        return found.squared_error(self.target @ self.memory.values)

    def distance(self, queries: Tensor, mix: Tensor) -> Tensor:
        """Of the reading without noise, in total variation."""
        return 0.5 * (mix @ torch.softmax(queries @ self.memory.keys.mT, -1) - self.target).abs().sum()


def harden(
    memory: Memory, weights: Mapping[Any, float], noise: Noise, tol: float = 1e-2, heads: int = 1
) -> Hardened:
    """The query (or `heads` queries with a mix) of small mean squared error under the noise, within `tol` without it."""
    wanted = Blend.of(memory, weights, tol)
    heads = whole(f"hardening {len(wanted.items)} items", "heads", heads)
    task = _Task(memory, noise.on(memory), wanted)
    plain = _plain(memory, wanted)
    one = _refined(task, *_one(task, wanted, plain[0]))
    several = _several(task, plain[0], max(2, min(len(wanted.items), heads if heads > 1 else len(wanted.items))))
    if heads > 1:
        queries, mix = _refined(task, *_best(task, [_repeated(several, heads), _repeated(one, heads)]))
    else:
        queries, mix = one
    layouts: dict[str, Any] = {"plain": (plain, None)}
    copies = _copies(memory, wanted)
    if copies is not None:
        layouts[f"{len(copies[1])} plain heads"] = copies
    if heads > 1:
        layouts["hardened, 1 head"] = one
    layouts["hardened"] = (queries, mix)
    comparison = compare(memory, layouts, noise, weights)
    errors = dict(zip(comparison.names, comparison.errors, strict=True))
    return Hardened(
        queries=queries,
        mix=mix,
        labels={memory.labels[i]: w for i, w in zip(wanted.items, wanted.weights, strict=True)},
        tol=wanted.tol,
        distance=float(task.distance(queries, mix)),
        squared_error=errors["hardened"],
        gain=_ratio(errors["plain"], errors["hardened"]),
        gain_over_heads=None if copies is None else _ratio(errors[comparison.names[1]], errors["hardened"]),
        advice=_advice(task, one, (queries, mix) if heads > 1 else several),
        spread=comparison["hardened"],
        comparison=comparison,
    )


def _plain(memory: Memory, wanted: Blend) -> Tensor:
    """The answer that ignores noise: t Σ μ_i where keys are orthogonal, the smallest query elsewhere. (1, d)"""
    form = "smallest" if common_norm(memory.keys.numpy()) is None else "textbook"
    named = {memory.labels[i]: w for i, w in zip(wanted.items, wanted.weights, strict=True)}
    return blend(memory, named, wanted.tol, form).query[None]


def _copies(memory: Memory, wanted: Blend) -> tuple[Tensor, Tensor] | None:
    """One plain head an item, mixed by the wanted weights; None for a single item, or if one cannot be copied."""
    if len(wanted.items) == 1:
        return None
    form = "smallest" if common_norm(memory.keys.numpy()) is None else "textbook"
    found = [copy(memory, memory.labels[i], wanted.tol, form) for i in wanted.items]
    if not all(design.possible for design in found):
        return None
    return torch.stack([design.query for design in found]), torch.tensor(wanted.weights, dtype=torch.float64)


def _one(task: _Task, wanted: Blend, plain: Tensor) -> tuple[Tensor, Tensor]:
    """The best single query for a blend: ridges first, then leaks at the best ridge, judged by the exact error."""
    mix = torch.ones(1, dtype=torch.float64)
    whole_task = _Task(task.memory, task.keys, wanted)
    covariance = sum(w * task.keys.covariance(i) for i, w in zip(wanted.items, wanted.weights, strict=True))
    noise = torch.as_tensor(covariance).numpy()
    size = float(np.trace(noise)) / task.memory.d or 1.0

    def solve(ridge: float, leak: float) -> Tensor | None:
        metric = noise / size + ridge * np.eye(task.memory.d)
        arguments = task.memory.keys.numpy(), list(wanted.items), wanted.wanted, wanted.tol * leak * AIM, metric
        found = smallest_query(*arguments)
        return torch.from_numpy(found.x)[None] if found.status == "solved" else None

    tried: list[tuple[float, Tensor, float]] = []
    for ridge in RIDGES:
        query = solve(ridge, 1.0)
        if query is not None:
            tried.append((float(whole_task.loss(query, mix)), query, ridge))
    if tried:
        ridge = min(tried, key=lambda row: row[0])[2]
        for leak in LEAKS:
            query = solve(ridge, leak)
            if query is not None:
                tried.append((float(whole_task.loss(query, mix)), query, ridge))
    if whole_task.wanted.items == task.wanted.items:
        tried.append((float(whole_task.loss(plain[None], mix)), plain[None], 0.0))
    if not tried:
        named = [task.memory.labels[i] for i in wanted.items]
        raise QkvError(
            f"hardening a head for {named}", "no query reads these items alone", "See qkv.design.blend for the proof"
        )
    return min(tried, key=lambda row: row[0])[1], mix


def _several(task: _Task, plain: Tensor, count: int) -> tuple[Tensor, Tensor] | None:
    """The items dealt out to `count` heads, each hardened for its own; None where that cannot be."""
    wanted = task.wanted
    count = min(count, len(wanted.items))
    if count < 2:
        return None
    queries, mix = [], []
    for h in range(count):
        own = range(h, len(wanted.items), count)
        total = sum(wanted.weights[i] for i in own)
        part = Blend(
            tuple(wanted.items[i] for i in own), tuple(wanted.weights[i] / total for i in own), wanted.tol
        )
        try:
            queries.append(_one(task, part, plain)[0][0])
        except QkvError:
            return None
        mix.append(total)
    return torch.stack(queries), torch.tensor(mix, dtype=torch.float64)


def _repeated(layout: tuple[Tensor, Tensor] | None, heads: int) -> tuple[Tensor, Tensor] | None:
    """A layout spread over more heads: the last query again, its share divided."""
    if layout is None:
        return None
    queries, mix = layout
    more = heads - len(queries)
    share = mix[-1:].repeat(more + 1) / (more + 1)
    return torch.cat([queries[:-1], queries[-1:].repeat(more + 1, 1)]), torch.cat([mix[:-1], share])


def _best(task: _Task, layouts: list[tuple[Tensor, Tensor] | None]) -> tuple[Tensor, Tensor]:
    there = [layout for layout in layouts if layout is not None]
    with torch.no_grad():
        return min(there, key=lambda layout: float(task.loss(*layout)))


def _refined(task: _Task, queries: Tensor, mix: Tensor) -> tuple[Tensor, Tensor]:
    """L-BFGS on the exact error from here, with a penalty beyond tol; never worse, and never further than tol."""
    with torch.no_grad():
        start = float(task.loss(queries, mix))
        limit = max(task.wanted.tol * AIM, float(task.distance(queries, mix)))
    if not start > 0:
        return queries, mix
    size = float(queries.norm()) or 1.0
    shape = queries.shape

    def unpack(x: Tensor) -> tuple[Tensor, Tensor]:
        # Shares stay positive and sum to 1; those of one head are the constant 1.
        return x[: queries.numel()].reshape(shape) * size, torch.softmax(x[queries.numel() :], 0)

    def value(x: Any) -> tuple[float, Any]:
        at = torch.tensor(x, dtype=torch.float64, requires_grad=True)
        q, shares = unpack(at)
        over = (task.distance(q, shares) / limit - 1).clamp(min=0)
        out = task.loss(q, shares) / start + PENALTY * over**2
        (slope,) = torch.autograd.grad(out, at)
        return float(out.detach()), slope.numpy()

    first = torch.cat([(queries / size).flatten(), mix.clamp(min=1e-6).log()])
    try:
        found = minimize(value, first.numpy(), jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    except QkvError:  # a step left what can be integrated; the start is still an answer
        return queries, mix
    # The penalty lets the distance slip a little: step back until it is within the limit.
    with torch.no_grad():
        for back in (1.0, 0.999, 0.99, 0.97, 0.9, 0.75, 0.5, 0.25):
            q, shares = unpack(first + back * (torch.from_numpy(found.x) - first))
            if float(task.distance(q, shares)) <= limit and float(task.loss(q, shares)) < start:
                return q, shares
    return queries, mix


def _advice(task: _Task, one: tuple[Tensor, Tensor], several: tuple[Tensor, Tensor] | None) -> str:
    if several is None:
        return "More heads were not tried: the wanted items cannot be dealt out to them."
    with torch.no_grad():
        try:
            single, many = float(task.loss(*one)), float(task.loss(*several))
        except QkvError:
            return "More heads were not tried: their exact spread is out of reach here."
    count = len(several[1])
    if many < HELPS * single:
        return f"More heads help: {count} hardened heads bring the squared error from {number(single)} to {number(many)}."
    return f"More heads do not help: with {count} hardened heads the squared error is {number(many)}, with one {number(single)}."


def _ratio(a: float, b: float) -> float:
    return a / b if b > 0 else float("inf")
