"""The search behind harden: a few convex programs, then descent through the exact moments."""

# A blend is a set of linear ratios and one convex leak inequality (design/convex.py); under noise the
# objective is the variance of the wanted scores, qᵀ(Σ w_i Σ_i)q, plus a ridge λ‖q‖² that weighs the other
# directions. That program finds where the noise is not. It does not know what a score's variance does to the
# output, so a few ridges and leaks are tried, the exact mean squared error chooses, and L-BFGS through the
# exact moments refines, within the tolerance.

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from qkv.core.memory import Memory
from qkv.design.solvers.conic import smallest_query
from qkv.design.specs import BlendSpec
from qkv.errors import QkvError
from qkv.noise.key_noise import KeyNoise
from qkv.noise.moments.head_pairs import FINE, ROUGH, Grid
from qkv.noise.moments.mixture import spread_of

Heads = tuple[Tensor, Tensor]
"""Queries (h, d) and mix (h,)."""

RIDGES = (1e-6, 1e-4, 1e-2, 1.0)
"""Weights of ‖q‖², relative to the mean variance of the wanted keys."""
LEAKS = (0.3, 0.1, 0.01)
"""Smaller leaks worth trying, relative to tol."""
AIM = 1 - 1e-6
OPTIONS = {"maxiter": 60, "ftol": 1e-6}
PENALTY = 100.0
BACK = (1.0, 0.999, 0.99, 0.97, 0.9, 0.75, 0.5, 0.25)


@dataclass(frozen=True, eq=False)
class RobustProblem:
    """What is wanted, of which memory, under which noise."""

    memory: Memory
    keys: KeyNoise
    wanted: BlendSpec

    @property
    def target(self) -> Tensor:
        """The wanted weights of all n items."""
        out = torch.zeros(self.memory.n, dtype=torch.float64)
        out[list(self.wanted.items)] = torch.tensor(self.wanted.weights, dtype=torch.float64)
        return out

    def loss(self, heads: Heads, grid: Grid = FINE) -> Tensor:
        """E‖output − wanted output‖², differentiable."""
        found = spread_of(self.keys, self.memory, *heads, grid=grid)
        return found.squared_error(self.target @ self.memory.values)

    def value(self, heads: Heads) -> float:
        """The loss as a number."""
        with torch.no_grad():
            return float(self.loss(heads))

    def floor(self, heads: Heads) -> float:
        """Below this the loss is made of the exact moments' own error, and nothing is left to gain."""
        with torch.no_grad():
            return 10 * spread_of(self.keys, self.memory, *heads).output_error_bound

    def distance(self, heads: Heads) -> Tensor:
        """Of the reading without noise from the wanted weights, in total variation."""
        queries, mix = heads
        return 0.5 * (mix @ torch.softmax(queries @ self.memory.keys.mT, -1) - self.target).abs().sum()


def one_head(task: RobustProblem, otherwise: Heads | None = None) -> Heads:
    """The best single query: ridges first, then leaks at the best ridge; `otherwise` is tried as well."""
    wanted, memory = task.wanted, task.memory
    noise = np.zeros((memory.d, memory.d))
    for i, w in zip(wanted.items, wanted.weights, strict=True):
        noise += w * task.keys.covariance(i).numpy()
    size = float(np.trace(noise)) / memory.d or 1.0
    mix = torch.ones(1, dtype=torch.float64)
    tried: list[tuple[float, Heads, float]] = []

    def attempt(ridge: float, leak: float) -> None:
        metric = noise / size + ridge * np.eye(memory.d)
        tol = wanted.tol * leak * AIM
        found = smallest_query(memory.keys.numpy(), list(wanted.items), wanted.wanted, tol, metric)
        if found.status == "solved" and np.isfinite(found.x).all():
            heads = torch.from_numpy(found.x)[None], mix
            tried.append((task.value(heads), heads, ridge))

    for ridge in RIDGES:
        attempt(ridge, 1.0)
    if tried:
        best = min(tried, key=lambda row: row[0])[2]
        for leak in LEAKS:
            attempt(best, leak)
    if otherwise is not None:
        tried.append((task.value(otherwise), otherwise, 0.0))
    if not tried:
        raise QkvError(
            f"a head for the items {[memory.labels[i] for i in wanted.items]}",
            "no query reads them alone",
            "See what qkv.design.blend says of them",
        )
    return min(tried, key=lambda row: row[0])[1]


def dealt_out(task: RobustProblem, count: int) -> Heads | None:
    """The items dealt out to at most `count` heads, each the best for its own; None if there is none."""
    wanted = task.wanted
    count = min(count, len(wanted.items))
    if count < 2:
        return None
    queries, mix = [], []
    for h in range(count):
        own = range(h, len(wanted.items), count)
        total = sum(wanted.weights[i] for i in own)
        shares = tuple(wanted.weights[i] / total for i in own)
        part = replace(wanted, items=tuple(wanted.items[i] for i in own), weights=shares)
        try:
            queries.append(one_head(replace(task, wanted=part))[0][0])
        except QkvError:
            return None
        mix.append(total)
    return torch.stack(queries), torch.tensor(mix, dtype=torch.float64)


def repeated(heads: Heads, count: int) -> Heads:
    """The same reading by more heads: the last query again, its share divided."""
    queries, mix = heads
    more = count - len(queries) + 1
    return (
        torch.cat([queries[:-1], queries[-1:].repeat(more, 1)]),
        torch.cat([mix[:-1], mix[-1:].repeat(more) / more]),
    )


def best_of(task: RobustProblem, layouts: list[Heads]) -> Heads:
    """The one with the least loss."""
    return min(layouts, key=task.value)


def refined(task: RobustProblem, heads: Heads) -> Heads:
    """L-BFGS on the exact loss from here, with a penalty beyond tol; never worse, and never beyond it."""
    queries, mix = heads
    start, floor = task.value(heads), task.floor(heads)
    # Cross-moments of several heads cost nodes squared. Their errors of 1e-6, in units of the values' squared
    # size, tell the way down as long as the loss is far larger; what is found is judged by the fine grid.
    size = float(task.memory.values.norm(dim=1).max())
    grid = ROUGH if start > 1e-3 * size**2 else FINE
    limit = max(task.wanted.tol * AIM, float(task.distance(heads)))
    if start <= floor:
        return heads
    length = float(queries.norm()) or 1.0

    def unpack(x: Tensor) -> Heads:
        # Shares stay positive and sum to 1; that of one head is the constant 1.
        return x[: queries.numel()].reshape(queries.shape) * length, torch.softmax(x[queries.numel() :], 0)

    def value(x: Any) -> tuple[float, Any]:
        at = torch.tensor(x, dtype=torch.float64, requires_grad=True)
        there = unpack(at)
        over = (task.distance(there) / limit - 1).clamp(min=0)
        out = (task.loss(there, grid) + floor) / start + PENALTY * over**2
        (slope,) = torch.autograd.grad(out, at)
        return float(out.detach()), slope.numpy()

    first = torch.cat([(queries / length).flatten(), mix.clamp(min=1e-6).log()])
    try:
        found = minimize(value, first.numpy(), jac=True, method="L-BFGS-B", options=OPTIONS)
    except QkvError:  # a step left what can be integrated; the start is still an answer
        return heads
    # The penalty lets the distance slip a little: step back until it is within the limit.
    for back in BACK:
        there = unpack(first + back * (torch.from_numpy(found.x) - first))
        if float(task.distance(there)) <= limit and task.value(there) < start:
            return there
    return heads
