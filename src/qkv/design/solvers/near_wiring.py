"""W for blends whose exact ratios cannot be had: a local search for weights within tol in total variation.

The set of such W is not convex. With the weights α of some W that is within tol, "every weight is at least min(w, α)"
is a convex restriction of it, whose smallest W is found by the kernel machine.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from qkv.core.types import FloatArray
from qkv.design.solvers.kernel_machine import smallest_matrix_above
from qkv.design.solvers.score_constraints import ReducedTokens
from qkv.design.solvers.sequence_rules import SequenceRules

RIDGES = 10.0 ** np.arange(-1, -13, -1.0)
"""Weights of |W|² beside the KL divergences, from the first to the last search."""
SMOOTHINGS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
"""Widths, relative to tol, over which the corners of the total variation are rounded."""
MAX_DROPPED = 0.9
ROUNDS = 4
"""Times that the norm is reduced with the floors of the last W."""


def nearest_matrix(rules: SequenceRules, tol: float, starts: list[FloatArray]) -> FloatArray | None:
    """A W with which every rule is within tol in total variation, made as small as the search can; or None.

    Args:
        rules: The rules of one sequence.
        tol: Largest total variation.
        starts: Matrices to start from besides those of the search.
    """
    W = _matrix_above(rules, _floors(rules, tol, drop=False))
    if W is None:
        W = _matrix_above(rules, _floors(rules, tol, drop=True))
    if W is None:
        W = _search(rules, tol, starts)
    if W is None or not np.isfinite(W).all():
        return None
    for _ in range(ROUNDS):
        shorter = _shorten(rules, tol, W)
        if shorter is None or not np.linalg.norm(shorter) < (1 - 1e-6) * np.linalg.norm(W):
            break
        W = shorter
    return W


def _matrix_above(rules: SequenceRules, floors: FloatArray) -> FloatArray | None:
    found = smallest_matrix_above([rules], [floors])
    return found.W if found.status == "solved" else None


def _floors(rules: SequenceRules, tol: float, drop: bool) -> FloatArray:
    """Bounds from below on the weights whose shortfalls add up to tol: in proportion to the wanted weights.

    With `drop`, the smallest wanted weights that make up at most most of tol need not be read at all.
    """
    out = np.zeros(len(rules.items))
    for a, b in zip(rules.offsets[:-1], rules.offsets[1:], strict=True):
        w = rules.weights[a:b]
        kept = w.copy()
        if drop:
            order = np.argsort(w)
            kept[order[np.cumsum(w[order]) <= MAX_DROPPED * tol]] = 0.0
        left = tol - float(w.sum() - kept.sum())
        out[a:b] = kept * (1 - left / kept.sum())
    return out


def total_variations(rules: SequenceRules, W: FloatArray) -> FloatArray:
    """The total variation of every rule's weights from the wanted ones."""
    alpha = _weights(rules, (rules.queries[rules.readers] @ W) @ rules.keys.T)
    return np.asarray(0.5 * np.abs(alpha - _wanted(rules)).sum(axis=1))


def _wanted(rules: SequenceRules) -> FloatArray:
    out = np.zeros((len(rules.readers), len(rules.keys)))
    out[np.repeat(np.arange(len(rules.readers)), np.diff(rules.offsets)), rules.items] = rules.weights
    return out


def _weights(rules: SequenceRules, scores: FloatArray) -> FloatArray:
    if rules.mask is not None:
        scores = np.where(rules.mask[rules.readers], scores, -np.inf)
    with np.errstate(all="ignore"):
        raw = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(raw / raw.sum(axis=1, keepdims=True))


def _shorten(rules: SequenceRules, tol: float, W: FloatArray) -> FloatArray | None:
    """The smallest W whose weights are at least those of the given one, lowered by what is left of tol."""
    wanted = _wanted(rules)
    alpha = np.minimum(_weights(rules, (rules.queries[rules.readers] @ W) @ rules.keys.T), wanted)
    left = tol - (wanted - alpha).sum(axis=1)
    if not (left >= 0).all():
        return None
    alpha *= (1 - left / alpha.sum(axis=1))[:, None]
    owner = np.repeat(np.arange(len(rules.readers)), np.diff(rules.offsets))
    found = smallest_matrix_above([rules], [alpha[owner, rules.items]])
    if found.status != "solved" or total_variations(rules, found.W).max() > tol * (1 + 1e-7):
        return None
    return found.W


def _search(rules: SequenceRules, tol: float, starts: list[FloatArray]) -> FloatArray | None:
    """Minimise KL divergences, then the excess of total variations over tol, from several starts."""
    reduced = ReducedTokens.of([rules])
    x, keys, wanted = reduced.queries[0], reduced.keys[0], _wanted(rules)
    shape = (x.shape[1], keys.shape[1])
    unit = reduced.q_size * reduced.k_size

    def back(z: FloatArray) -> FloatArray:
        return np.asarray(reduced.q_basis.T @ z.reshape(shape) @ reduced.k_basis / unit)

    def worst(z: FloatArray) -> float:
        return float(0.5 * np.abs(_weights(rules, (x @ z.reshape(shape)) @ keys.T) - wanted).sum(axis=1).max())

    points = [(reduced.q_basis @ W @ reduced.k_basis.T * unit).ravel() for W in starts if np.isfinite(W).all()]
    z = np.zeros(shape[0] * shape[1])
    log_wanted = np.log(np.where(wanted > 0, wanted, 1.0))
    for ridge in RIDGES:

        def divergence(z: FloatArray, ridge: float = ridge) -> tuple[float, FloatArray]:
            alpha = _weights(rules, (x @ z.reshape(shape)) @ keys.T)
            logs = np.log(np.maximum(alpha, 1e-300))
            value = float((wanted * (log_wanted - logs)).sum()) + 0.5 * ridge * float(z @ z)
            return value, (x.T @ ((alpha - wanted) @ keys)).ravel() + ridge * z

        z = minimize(divergence, z, jac=True, method="L-BFGS-B", options={"maxiter": 300, "maxcor": 20}).x
        points.append(z)
        if worst(z) <= tol:
            return back(z)
    points.sort(key=worst)
    for start in points[:4]:
        z = start
        for width in SMOOTHINGS:
            z = _minimise_excess(rules, x, keys, wanted, tol, width * tol, z)
            if worst(z) <= tol:
                return back(z)
    return None


def _minimise_excess(
    rules: SequenceRules, x: FloatArray, keys: FloatArray, wanted: FloatArray, tol: float, width: float, z: FloatArray
) -> FloatArray:
    """L-BFGS on Σ over rules of the smoothed excess of the total variation over 0.999 tol, squared."""
    shape = (x.shape[1], keys.shape[1])
    size = max(1.0, float(np.linalg.norm(z)))

    def excess(u: FloatArray) -> tuple[float, FloatArray]:
        alpha = _weights(rules, (x @ (size * u).reshape(shape)) @ keys.T)
        gap = np.where(wanted > 0, wanted - alpha, 0.0)
        root = np.sqrt(gap**2 + width**2)
        over = np.where(wanted > 0, 0.5 * (gap + root), 0.0).sum(axis=1) - 0.999 * tol
        over = np.maximum(over, 0.0) / tol
        slope = np.where(wanted > 0, -0.5 * (1 + gap / root), 0.0) * (2 * over / tol)[:, None]
        pull = alpha * (slope - (alpha * slope).sum(axis=1, keepdims=True))
        return float((over**2).sum()), size * (x.T @ (pull @ keys)).ravel()

    with np.errstate(all="ignore"):
        found = minimize(excess, z / size, jac=True, method="L-BFGS-B", options={"maxiter": 400, "maxcor": 20})
    return np.asarray(size * found.x)
