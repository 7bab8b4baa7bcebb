"""Newton's method for the query of least norm and for the query of least KL divergence; O(n d²) per step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qkv.core.types import FloatArray

MAX_STEPS = 60
RIDGES = 10.0 ** np.array([-1, -2, -3, -4, -5, -6, -7, -8, -9, -11, -13])
MAX_MULTIPLIER = 1e18
"""If even this multiplier on the leak is not enough, the constraints are taken to be infeasible."""


def centred_on(keys: FloatArray, items: list[int]) -> tuple[FloatArray, float]:
    """Keys relative to the mean of the wanted ones, divided by their median distance from it, and that distance."""
    keys = keys - keys[items].mean(axis=0)
    lengths = np.linalg.norm(keys, axis=1)
    size = float(np.median(lengths[lengths > 0])) if (lengths > 0).any() else 1.0
    return keys / size, size


def min_norm_query(
    rivals: FloatArray,
    own: FloatArray,
    edge: float,
    ratios: FloatArray,
    logs: FloatArray,
    metric: FloatArray | None,
    start: FloatArray,
) -> FloatArray | None:
    """min ½ qᵀPq subject to ratios·q = logs and f(q) = logsumexp(rivals·q) - own·q - edge <= 0.

    With a multiplier λ of f, the query is the minimum of ½qᵀPq + λf on the plane of the ratios: smooth and convex,
    found by Newton's method from the query at the last λ. f falls as λ rises, so λ is the root of a function of one
    variable, whose derivative comes from the same factorisation. Returns None if no λ is enough.
    """
    d = len(own)
    P = np.eye(d) if metric is None else metric
    base, free = _affine_solutions(ratios, logs, d)
    if base is None:
        return None
    q = base - free @ np.linalg.solve(free.T @ P @ free, free.T @ P @ base) if free.shape[1] else base
    if len(rivals) == 0 or _excess(rivals, own, edge, q) <= 0:
        return q
    if free.shape[1] == 0:
        return None
    q = base + free @ (free.T @ (start - base))
    multiplier = _first_multiplier(rivals, own, P, free, q)
    low, high = 0.0, np.inf
    for _ in range(MAX_STEPS):
        q, f, slope = _min_at_multiplier(rivals, own, edge, P, free, q, multiplier)
        if abs(f) <= 1e-12 * max(1.0, abs(edge)):
            break
        low, high = (multiplier, high) if f > 0 else (low, multiplier)
        step = multiplier * float(np.exp(np.clip(-f / (multiplier * slope), -3.0, 3.0)))
        inside = low < step < high
        multiplier = step if inside else (low + high) / 2 if np.isfinite(high) else 8 * multiplier
        if multiplier > MAX_MULTIPLIER:
            return None
        if np.isfinite(high) and high - low <= 1e-15 * high:
            break
    return q if f <= 1e-9 * max(1.0, abs(edge)) else None


def min_kl_query(keys: FloatArray, items: list[int], wanted: FloatArray) -> FloatArray:
    """The query that minimises KL(wanted ‖ weights), which is convex in the query.

    Where the infimum is only approached as the query grows, a decreasing ridge selects a long but finite one.
    """
    keys, size = centred_on(keys, items)
    return np.asarray(min_kl_queries(keys, items, wanted)[-1] / size)


def min_kl_queries(keys: FloatArray, items: list[int], wanted: FloatArray) -> FloatArray:
    """The queries that minimise KL(wanted ‖ weights) + ½ mu |q|², for mu from 0.1 down to 1e-13, as rows."""
    d = keys.shape[1]
    target = wanted @ keys[items]
    q = np.zeros(d)
    path = []
    for mu in RIDGES:

        def value(x: FloatArray, mu: float = mu) -> float:
            return _logsumexp(keys @ x) - float(target @ x) + 0.5 * mu * float(x @ x)

        def derivatives(x: FloatArray, mu: float = mu) -> tuple[FloatArray, FloatArray]:
            p = _softmax(keys @ x)
            mean = p @ keys
            return mean - target + mu * x, _covariance(keys, p, mean) + mu * np.eye(d)

        q = _minimise(value, derivatives, q)
        path.append(q)
    return np.array(path)


def _min_at_multiplier(
    rivals: FloatArray, own: FloatArray, edge: float, P: FloatArray, free: FloatArray, q: FloatArray, multiplier: float
) -> tuple[FloatArray, float, float]:
    """The minimising query at this multiplier, its excess, and the derivative of the excess by the multiplier."""

    def value(z: FloatArray) -> float:
        x = q + free @ z
        return 0.5 * float(x @ P @ x) + multiplier * _excess(rivals, own, edge, x)

    def derivatives(z: FloatArray) -> tuple[FloatArray, FloatArray]:
        x = q + free @ z
        p = _softmax(rivals @ x)
        mean = p @ rivals
        gradient = free.T @ (P @ x + multiplier * (mean - own))
        return gradient, free.T @ (P + multiplier * _covariance(rivals, p, mean)) @ free

    z = _minimise(value, derivatives, np.zeros(free.shape[1]))
    q = q + free @ z
    p = _softmax(rivals @ q)
    mean = p @ rivals
    g = free.T @ (mean - own)
    slope = -float(g @ _solve(free.T @ (P + multiplier * _covariance(rivals, p, mean)) @ free, g))
    return q, _excess(rivals, own, edge, q), min(slope, -1e-300)


def _minimise(
    value: Callable[[FloatArray], float],
    derivatives: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    x: FloatArray,
) -> FloatArray:
    """Newton's method with backtracking on a convex function."""
    here = value(x)
    for _ in range(MAX_STEPS):
        gradient, curvature = derivatives(x)
        step = -_solve(curvature, gradient)
        decrease = -float(gradient @ step)
        if not np.isfinite(decrease):
            return x
        if decrease <= 1e-11 * max(1.0, abs(here)):
            # The value is flat to rounding, the gradient is not: two undamped steps, each of which squares the error.
            gradient, curvature = derivatives(x + step)
            last = x + step - _solve(curvature, gradient)
            return last if value(last) <= here + 1e-9 * max(1.0, abs(here)) else x
        length = 1.0
        while not (there := value(x + length * step)) <= here - 1e-4 * length * decrease and length > 1e-10:
            length /= 2
        if not there <= here:
            return x
        x, here = x + length * step, there
    return x


def _solve(curvature: FloatArray, gradient: FloatArray) -> FloatArray:
    """curvature⁻¹ gradient; where that is singular to float64, with its small eigenvalues raised."""
    try:
        return np.asarray(np.linalg.solve(curvature, gradient))
    except np.linalg.LinAlgError:
        if not np.isfinite(curvature).all():
            return np.full_like(gradient, np.nan)
        values, vectors = np.linalg.eigh((curvature + curvature.T) / 2)
        values = np.maximum(values, 1e-14 * max(float(values[-1]), 1e-300))
        return np.asarray(vectors @ ((vectors.T @ gradient) / values))


def _affine_solutions(ratios: FloatArray, logs: FloatArray, d: int) -> tuple[FloatArray | None, FloatArray]:
    """A solution of ratios·q = logs (None if there is none) and an orthonormal basis of the null space of ratios."""
    if len(ratios) == 0:
        return np.zeros(d), np.eye(d)
    u, s, vt = np.linalg.svd(ratios, full_matrices=True)
    rank = int((s > 1e-11 * s[0]).sum()) if s[0] > 0 else 0
    point = vt[:rank].T @ ((u.T @ logs)[:rank] / s[:rank])
    if np.abs(ratios @ point - logs).max() > 1e-9 * (1 + np.abs(logs).max()):
        return None, np.zeros((d, 0))
    return point, vt[rank:].T


def _first_multiplier(rivals: FloatArray, own: FloatArray, P: FloatArray, free: FloatArray, q: FloatArray) -> float:
    """The multiplier at which q would be stationary, as a start; 1 where that is not positive."""
    g = free.T @ (_softmax(rivals @ q) @ rivals - own)
    size = float(g @ g)
    guess = -float((free.T @ P @ q) @ g) / size if size > 0 else 1.0
    return guess if guess > 0 else 1.0


def _excess(rivals: FloatArray, own: FloatArray, edge: float, q: FloatArray) -> float:
    """The leak constraint f(q), which is met where it is at most 0."""
    return _logsumexp(rivals @ q) - float(own @ q) - edge


def _covariance(rows: FloatArray, p: FloatArray, mean: FloatArray) -> FloatArray:
    """Covariance of the rows under weights p: the Hessian of logsumexp(rows·q)."""
    return (rows * p[:, None]).T @ rows - np.outer(mean, mean)


# scipy.special.logsumexp and softmax cost ten times as much per call on a few hundred scores, and Newton's method calls
# them hundreds of times.


def _logsumexp(s: FloatArray) -> float:
    top = float(s.max())
    return top + float(np.log(np.exp(s - top).sum()))


def _softmax(s: FloatArray) -> FloatArray:
    e = np.exp(s - s.max())
    return e / e.sum()
