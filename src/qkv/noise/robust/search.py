"""The search behind harden: convex programs for starts, then L-BFGS through the moments."""

# A blend is a set of linear ratios and one convex leak inequality (design/solvers/conic.py); under noise the
# objective is the variance of the wanted scores, qᵀ(Σ w_i Σ_i)q, plus a ridge λ‖q‖² for the other directions. That
# program finds directions with little noise. It does not model how a score's variance changes the output, so a few
# ridges and leaks are tried, the mean squared error selects one, and L-BFGS through the moments refines it, within the
# tolerance.

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from qkv.core.memory import Memory
from qkv.core.types import FloatArray
from qkv.design.solvers.conic import Rule, smallest_query
from qkv.design.solvers.newton import centred_on, min_norm_query
from qkv.design.specs import BlendSpec
from qkv.errors import QkvError
from qkv.noise.comparison import weights_of_all_items
from qkv.noise.head_mix import HeadMix
from qkv.noise.key_noise import KeyNoise
from qkv.noise.moments.head_pairs import FINE, ROUGH, Grid
from qkv.noise.moments.mixture import moments_of_heads
from qkv.parallel import Progress

RIDGES = (1e-6, 1e-4, 1e-2, 1.0)
"""Weights of ‖q‖², relative to the mean variance of the wanted keys."""
LEAKS = (0.3, 0.1, 0.01)
"""Smaller leaks to try, relative to tol."""
TOL_MARGIN = 1 - 1e-6
"""Part of tol that is aimed at, so that rounding does not exceed it."""
MAX_ITERATIONS = 60
LBFGS_OPTIONS = {"maxiter": MAX_ITERATIONS, "ftol": 1e-6}
PENALTY = 100.0
"""Weight of the squared relative excess over the largest distance, beside a loss that starts at 1."""
STEP_FRACTIONS = (1.0, 0.999, 0.99, 0.97, 0.9, 0.75, 0.5, 0.25)
"""Parts of the whole step that are tried, until the distance is within the limit."""
ROUGH_GRID_LOSS = 1e-3
"""Loss, relative to the squared size of the values, above which the rough grid's gradients are accurate enough."""


@dataclass(frozen=True, eq=False)
class RobustProblem:
    """A wanted blend of a memory's items under noise."""

    memory: Memory
    keys: KeyNoise
    wanted: BlendSpec

    @property
    def target(self) -> Tensor:
        """The wanted weights of all n items."""
        return weights_of_all_items(self.wanted, self.memory.n)

    def loss(self, heads: HeadMix, grid: Grid = FINE) -> Tensor:
        """E‖output − wanted output‖², differentiable."""
        found = moments_of_heads(self.keys, self.memory, heads, grid=grid)
        return found.squared_error(self.target @ self.memory.values)

    def value(self, heads: HeadMix) -> float:
        """The loss as a number."""
        with torch.no_grad():
            return float(self.loss(heads))

    def resolution(self, heads: HeadMix) -> float:
        """Ten times the error of the moments: a smaller loss cannot be improved measurably."""
        with torch.no_grad():
            return 10 * moments_of_heads(self.keys, self.memory, heads).output_error_bound

    def distance(self, heads: HeadMix) -> Tensor:
        """Total-variation distance of the noise-free weights from the wanted ones."""
        return 0.5 * (heads.weights(self.memory.keys) - self.target).abs().sum()


def best_single_head(task: RobustProblem, alternative: HeadMix | None = None) -> HeadMix:
    """The best single query of the convex programs: ridges first, then leaks at the best ridge; or the alternative."""
    wanted, memory = task.wanted, task.memory
    noise = np.zeros((memory.d, memory.d))
    for i, w in zip(wanted.items, wanted.weights, strict=True):
        noise += w * task.keys.covariance(i).numpy()
    with np.errstate(over="ignore"):  # what exceeds float64 is refused where the moments are computed
        size = float(np.trace(noise)) / memory.d or 1.0
    tried: list[tuple[float, HeadMix, float]] = []
    last = np.zeros(memory.d) if alternative is None else alternative.queries[0].detach().numpy()

    def attempt(ridge: float, leak: float) -> None:
        nonlocal last
        metric = noise / size + ridge * np.eye(memory.d)
        found = _least_noisy_query(memory.keys.numpy(), wanted, wanted.tol * leak * TOL_MARGIN, metric, last)
        if found is not None:
            last = found
            heads = HeadMix.single(torch.from_numpy(found))
            tried.append((task.value(heads), heads, ridge))

    for ridge in RIDGES:
        attempt(ridge, 1.0)
    if tried:
        best = min(tried, key=lambda row: row[0])[2]
        for leak in LEAKS:
            attempt(best, leak)
    if alternative is not None:
        tried.append((task.value(alternative), alternative, 0.0))
    if not tried:
        raise QkvError(
            f"a head for the items {[memory.labels[i] for i in wanted.items]}",
            "no query reads only these items",
            "qkv.design.blend says why",
        )
    return min(tried, key=lambda row: row[0])[1]


def _least_noisy_query(
    keys: FloatArray, wanted: BlendSpec, tol: float, metric: FloatArray, start: FloatArray
) -> FloatArray | None:
    """The query of least qᵀ metric q that reads the blend with this leak; None if there is none.

    Newton's method finds it in O(n d²) a step, and fastest from the solution of a similar problem. What it cannot solve
    goes to the conic solver, which also tells whether there is a solution.
    """
    items = list(wanted.items)
    centred, size = centred_on(keys, items)
    rest = np.setdiff1d(np.arange(len(keys)), items)
    rule = Rule.of(centred, wanted.wanted, items, rest, tol)
    scaled = metric / float(np.trace(metric))
    try:
        found = min_norm_query(
            centred[rest], centred[items[0]], rule.edge, rule.ratios, rule.logs, scaled, start * size
        )
    except np.linalg.LinAlgError:  # singular to float64
        found = None
    if found is not None and np.isfinite(found).all():
        return found / size
    solved = smallest_query(keys, items, wanted.wanted, tol, metric)
    return solved.x if solved.status == "solved" and np.isfinite(solved.x).all() else None


def split_items_among_heads(task: RobustProblem, count: int) -> HeadMix | None:
    """At most `count` heads, each the best for its part of the items; None if a part has no query, or is all items."""
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
            queries.append(best_single_head(replace(task, wanted=part)).queries[0])
        except QkvError:
            return None
        mix.append(total)
    return HeadMix(torch.stack(queries), torch.tensor(mix, dtype=torch.float64))


def with_more_heads(heads: HeadMix, count: int) -> HeadMix:
    """The same reading by `count` heads: the last query is repeated, its weight divided."""
    more = count - len(heads) + 1
    return HeadMix(
        torch.cat([heads.queries[:-1], heads.queries[-1:].repeat(more, 1)]),
        torch.cat([heads.mix[:-1], heads.mix[-1:].repeat(more) / more]),
    )


def least_loss(task: RobustProblem, layouts: list[HeadMix]) -> HeadMix:
    """The layout of least loss."""
    return min(layouts, key=task.value)


def refine(task: RobustProblem, heads: HeadMix, report: Progress | None = None) -> HeadMix:
    """L-BFGS on the loss from here, with a penalty on distances beyond tol; never worse than the start, nor beyond."""
    queries, mix = heads.queries, heads.mix
    start, resolution = task.value(heads), task.resolution(heads)
    # The cost of cross-moments grows with nodes squared. The rough grid's errors of 1e-6, relative to the values'
    # squared size, leave gradients accurate enough while the loss is far larger; the fine grid judges the result.
    size = float(task.memory.values.norm(dim=1).max())
    grid = ROUGH if start > ROUGH_GRID_LOSS * size**2 else FINE
    limit = max(task.wanted.tol * TOL_MARGIN, float(task.distance(heads)))
    if start <= resolution:
        return heads
    length = float(queries.norm()) or 1.0

    def unpack(x: Tensor) -> HeadMix:
        # A softmax keeps the mix positive with sum 1; for one head it is the constant 1.
        return HeadMix(x[: queries.numel()].reshape(queries.shape) * length, torch.softmax(x[queries.numel() :], 0))

    def value_and_gradient(x: Any) -> tuple[float, Any]:
        at = torch.tensor(x, dtype=torch.float64, requires_grad=True)
        there = unpack(at)
        excess = (task.distance(there) / limit - 1).clamp(min=0)
        out = (task.loss(there, grid) + resolution) / start + PENALTY * excess**2
        (slope,) = torch.autograd.grad(out, at)
        return float(out.detach()), slope.numpy()

    iterations = 0

    def count(_: Any) -> None:
        nonlocal iterations
        iterations += 1
        if report is not None:
            report(min(iterations, MAX_ITERATIONS), MAX_ITERATIONS)

    first = torch.cat([(queries / length).flatten(), mix.clamp(min=1e-6).log()])
    try:
        found = minimize(
            value_and_gradient, first.numpy(), jac=True, method="L-BFGS-B", options=LBFGS_OPTIONS, callback=count
        )
    except QkvError:  # a step led to queries that cannot be integrated; the start is still an answer
        return heads
    # The penalty allows a small excess of the distance: shorten the step until it is within the limit.
    for fraction in STEP_FRACTIONS:
        there = unpack(first + fraction * (torch.from_numpy(found.x) - first))
        if float(task.distance(there)) <= limit and task.value(there) < start:
            return there
    return heads
