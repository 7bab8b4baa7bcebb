"""Newton's method for the smallest query and for the nearest one, at O(n d²) a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]

MOST_STEPS = 60
NEVER = 1e18
"""A leak's price above which no finite query is taken to meet it."""


def around(keys: Array, items: list[int]) -> tuple[Array, float]:
    """Keys seen from the middle of the wanted ones, in units of their median distance from it, and that unit."""
    keys = keys - keys[items].mean(axis=0)
    lengths = np.linalg.norm(keys, axis=1)
    size = float(np.median(lengths[lengths > 0])) if (lengths > 0).any() else 1.0
    return keys / size, size


def least_query(
    rivals: Array, own: Array, edge: float, ratios: Array, logs: Array, metric: Array | None, start: Array
) -> Array | None:
    """min ½ qᵀPq subject to ratios·q = logs and f(q) = logsumexp(rivals·q) - own·q - edge <= 0.

    With a price on f, the query is the minimum of ½qᵀPq + price·f on the plane of the ratios: smooth, strongly
    convex, found by Newton's method from the last one. f falls as the price rises, so the price is a root of one
    function of one variable, and its derivative comes from the same factorisation. None: no price is enough.
    """
    d = len(own)
    P = np.eye(d) if metric is None else metric
    base, free = _plane(ratios, logs, d)
    if base is None:
        return None
    q = base - free @ np.linalg.solve(free.T @ P @ free, free.T @ P @ base) if free.shape[1] else base
    if len(rivals) == 0 or _excess(rivals, own, edge, q) <= 0:
        return q
    if free.shape[1] == 0:
        return None
    q = base + free @ (free.T @ (start - base))
    price = _first_price(rivals, own, P, free, q)
    low, high = 0.0, np.inf
    for _ in range(MOST_STEPS):
        q, f, slope = _at_price(rivals, own, edge, P, free, q, price)
        if abs(f) <= 1e-12 * max(1.0, abs(edge)):
            break
        low, high = (price, high) if f > 0 else (low, price)
        step = price * float(np.exp(np.clip(-f / (price * slope), -3.0, 3.0)))
        inside = low < step < high
        price = step if inside else (low + high) / 2 if np.isfinite(high) else 8 * price
        if price > NEVER:
            return None
        if np.isfinite(high) and high - low <= 1e-15 * high:
            break
    return q if f <= 1e-9 * max(1.0, abs(edge)) else None


def nearest_query(keys: Array, items: list[int], wanted: Array) -> Array:
    """The query whose weights are nearest to the wanted ones: KL(wanted, weights) is convex in the query.

    Where the infimum is only approached as the query grows, a vanishing ridge picks a long but finite one.
    """
    d = keys.shape[1]
    keys, size = around(keys, items)
    target = wanted @ keys[items]
    q = np.zeros(d)
    for mu in 10.0 ** np.arange(-1, -10, -1):

        def value(x: Array, mu: float = mu) -> float:
            return _logsumexp(keys @ x) - float(target @ x) + 0.5 * mu * float(x @ x)

        def slopes(x: Array, mu: float = mu) -> tuple[Array, Array]:
            p = _softmax(keys @ x)
            mean = p @ keys
            return mean - target + mu * x, _second(keys, p, mean) + mu * np.eye(d)

        q = _descend(value, slopes, q)
    return q / size


def _at_price(
    rivals: Array, own: Array, edge: float, P: Array, free: Array, q: Array, price: float
) -> tuple[Array, float, float]:
    """The query at this price, the excess there, and how the excess falls as the price rises."""

    def value(z: Array) -> float:
        x = q + free @ z
        return 0.5 * float(x @ P @ x) + price * _excess(rivals, own, edge, x)

    def slopes(z: Array) -> tuple[Array, Array]:
        x = q + free @ z
        p = _softmax(rivals @ x)
        mean = p @ rivals
        gradient = free.T @ (P @ x + price * (mean - own))
        return gradient, free.T @ (P + price * _second(rivals, p, mean)) @ free

    z = _descend(value, slopes, np.zeros(free.shape[1]))
    q = q + free @ z
    p = _softmax(rivals @ q)
    mean = p @ rivals
    g = free.T @ (mean - own)
    slope = -float(g @ np.linalg.solve(free.T @ (P + price * _second(rivals, p, mean)) @ free, g))
    return q, _excess(rivals, own, edge, q), min(slope, -1e-300)


def _descend(value: Callable[[Array], float], slopes: Callable[[Array], tuple[Array, Array]], x: Array) -> Array:
    """Newton's method with backtracking on a convex function."""
    here = value(x)
    for _ in range(MOST_STEPS):
        gradient, curvature = slopes(x)
        step = -np.linalg.solve(curvature, gradient)
        decrease = -float(gradient @ step)
        if decrease <= 1e-11 * max(1.0, abs(here)):
            # The value no longer tells, the gradient still does: plain steps square what error is left.
            gradient, curvature = slopes(x + step)
            return x + step - np.linalg.solve(curvature, gradient)
        length = 1.0
        while (there := value(x + length * step)) > here - 1e-4 * length * decrease and length > 1e-10:
            length /= 2
        x, here = x + length * step, there
    return x


def _plane(ratios: Array, logs: Array, d: int) -> tuple[Array | None, Array]:
    """A point on ratios·q = logs and an orthonormal basis of the directions along it; None if it is empty."""
    if len(ratios) == 0:
        return np.zeros(d), np.eye(d)
    u, s, vt = np.linalg.svd(ratios, full_matrices=True)
    rank = int((s > 1e-11 * s[0]).sum()) if s[0] > 0 else 0
    point = vt[:rank].T @ ((u.T @ logs)[:rank] / s[:rank])
    if np.abs(ratios @ point - logs).max() > 1e-9 * (1 + np.abs(logs).max()):
        return None, np.zeros((d, 0))
    return point, vt[rank:].T


def _first_price(rivals: Array, own: Array, P: Array, free: Array, q: Array) -> float:
    g = free.T @ (_softmax(rivals @ q) @ rivals - own)
    size = float(g @ g)
    guess = -float((free.T @ P @ q) @ g) / size if size > 0 else 1.0
    return guess if guess > 0 else 1.0


def _excess(rivals: Array, own: Array, edge: float, q: Array) -> float:
    return _logsumexp(rivals @ q) - float(own @ q) - edge


def _second(rows: Array, p: Array, mean: Array) -> Array:
    return (rows * p[:, None]).T @ rows - np.outer(mean, mean)


def _logsumexp(s: Array) -> float:
    top = float(s.max())
    return top + float(np.log(np.exp(s - top).sum()))


def _softmax(s: Array) -> Array:
    e = np.exp(s - s.max())
    return e / e.sum()
