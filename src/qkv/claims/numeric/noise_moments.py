"""Statistics of weights at fixed numbers, by the exact moments of qkv.noise instead of draws."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from qkv.claims.numeric.evaluator import Array, CannotEvaluate, Instance, evaluate, key_law, weights_name
from qkv.claims.syntax import nodes as L
from qkv.errors import QkvError

if TYPE_CHECKING:
    from qkv.core.memory import Memory
    from qkv.noise.key_noise import Gaussian

N_DRAWS = 100_000  # where the noise cannot be integrated
CONFIDENCE = 1 - 1e-7  # that a probability by draws lies in its interval


def applies(inst: Instance) -> bool:
    """Whether all randomness of an instance is in keys with a distribution of their own."""
    context = inst.context
    return bool(context.noise) and not (
        context.random or context.tokens or any(x.name.base == "k" for x in context.claim.lets)
    )


def moment(inst: Instance, expr: L.Stat) -> tuple[Array, float] | None:
    """E, Var, Cov or Corr of what is linear in the weights, and its error; None for anything else.

    A linear function of all heads' weights is its constant and its slopes; with the identity as values, the moments
    of the heads' outputs are those of the weights.
    """
    lines = [_line(inst, e) for e in expr.inner]
    if not applies(inst) or any(line is None for line in lines):
        return None
    from qkv.noise import reading_moments  # here, since it imports torch, which few claims need

    try:
        found = reading_moments(_memory(inst, np.eye(inst.n)), _queries(inst), _gaussian(inst))
    except QkvError as why:
        raise CannotEvaluate(str(why)) from None
    mean = found.heads_mean.detach().numpy().reshape(-1)
    both = found.heads_output_cov.detach().numpy().transpose(0, 2, 1, 3).reshape(len(mean), len(mean))
    error = max(found.error_bound, found.output_error_bound)
    (constant, slope), (_, other) = lines[0], lines[-1]  # type: ignore[misc]
    if expr.function == "E":
        return (constant + slope @ mean)[None, :, None], float(np.abs(slope).sum(axis=1).max() * error)
    value = slope @ both @ other.T
    off = float(np.abs(slope).sum(axis=1).max() * np.abs(other).sum(axis=1).max() * error)
    if expr.function == "Corr":
        spans = [float((s @ both @ s.T)[0, 0]) for s in (slope, other)]
        if min(spans) <= 100 * off:
            raise CannotEvaluate("a correlation with something that hardly varies")
        size = float(np.sqrt(spans[0] * spans[1]))
        return value[None] / size, off / size * (1 + abs(float(value[0, 0])) / min(spans))
    return value[None], off


def event(inst: Instance, expr: L.Chance) -> tuple[float, float] | None:
    """The ends between which the probability of x > y lies, for x - y linear in the weights of one head.

    Such a difference is one entry of an output: P(entry > 0) is computed as P(|entry − R| < R) for an R above all
    values.
    """
    line = _line(inst, L.Op("-", expr.event.sides[0], expr.event.sides[1], expr.at))
    heads = inst.context.heads()
    if line is None or len(heads) != 1 or line[1].shape[0] != 1 or not applies(inst):
        return None
    values = line[1][0] + line[0][0]  # the weights sum to 1, so the constant is added to each value
    far = float(np.abs(values).max()) + 1.0
    (low, high), drawn = _near(inst, values[:, None], np.array([far]), far, N_DRAWS)
    inst.sampled |= drawn
    return (low, high) if expr.event.ops[0] in (">", ">=") else (1 - high, 1 - low)


def nearness(inst: Instance, core: L.Within) -> tuple[tuple[float, float], bool] | None:
    """An interval for the probability of an output near a target, and whether it rests on draws.

    It is narrowed if it holds the claimed value.
    """
    line, target = _line(inst, core.left), evaluate(inst, core.target)
    heads = inst.context.heads()
    if line is None or target.shape[0] != 1 or not applies(inst):
        return None
    slopes = line[1].reshape(len(line[0]), len(heads), inst.n)
    if any(not np.allclose(slopes[:, h], slopes[:, 0]) for h in range(1, len(heads))):
        return None
    values = (slopes.sum(axis=1) + line[0][:, None]).T
    radius, wanted = (float(evaluate(inst, e)[0, 0, 0]) for e in (core.radius, core.probability))
    (low, high), drawn = _near(inst, values, target[0, :, 0], radius, N_DRAWS // 10)
    return ((low, high), drawn) if not low < wanted < high else _near(inst, values, target[0, :, 0], radius, N_DRAWS)


def _near(inst: Instance, values: Array, target: Array, radius: float, draws: int) -> tuple[tuple[float, float], bool]:
    from qkv.noise import success_probability  # here, since it imports torch

    try:
        memory, queries, noise = _memory(inst, values), _queries(inst), _gaussian(inst)
        found = success_probability(memory, queries, noise, target, radius, n_draws=draws, confidence=CONFIDENCE)
    except QkvError as why:
        raise CannotEvaluate(str(why)) from None
    return (found.low, found.high), found.n_draws > 0


def _line(inst: Instance, expr: L.Expr) -> tuple[Array, Array] | None:
    """Constant (rows,) and slopes (rows, heads·n) of what is linear in the weights and random in nothing else."""
    heads = inst.context.heads()
    size = len(heads) * inst.n

    def at(weights: Array) -> Array:
        table = weights.reshape(len(heads), 1, inst.n)
        known = {weights_name(h): table[j] for j, h in enumerate(heads)}
        return evaluate(replace(inst, cache=known), expr)

    if not heads:
        return None
    middle = at(np.zeros(size))
    if middle.shape[0] != 1 or middle.shape[2] != 1:
        return None
    constant: Array = middle[0, :, 0]
    slopes = np.stack([at(row)[0, :, 0] - constant for row in np.eye(size)], axis=1)
    probe = np.random.default_rng(0).uniform(0, 1, size)
    straight = np.allclose(at(probe)[0, :, 0], constant + slopes @ probe, rtol=1e-9, atol=1e-9)
    return (constant, slopes) if straight and np.isfinite(slopes).all() else None


def _memory(inst: Instance, values: Array) -> Memory:
    from qkv.core.memory import Memory  # here, since it imports torch

    return Memory(np.stack([key_law(inst, item)[0][0, :, 0] for item in inst.items]), values)


def _queries(inst: Instance) -> Any:
    rows = [evaluate(inst, L.Name("q", (h,) if h else (), (0, 0))) for h in inst.context.heads()]
    if any(row.shape[0] != 1 for row in rows):
        raise CannotEvaluate("a query that is random")
    return np.stack([row[0, :, 0] for row in rows])


def _gaussian(inst: Instance) -> Gaussian:
    from qkv.noise.key_noise import Gaussian  # here, since it imports torch

    return Gaussian(full={j: key_law(inst, item)[1] for j, item in enumerate(inst.items)})
