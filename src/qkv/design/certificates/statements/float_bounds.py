"""Rigorous float64 path for large inputs: the quantities of a reading with a-priori rounding bounds."""

# The model of arithmetic is that of core/rounding_bounds.py: u = 2^-53, and gamma(k) bounds k roundings. In whatever
# order sums are taken, |fl(x·y) - x·y| <= gamma(d) |x|·|y| for vectors of d numbers. Underflow adds at most 2^-1074 to
# each operation; values, keys and multipliers are first scaled by a power of two to entries below 2, so TINY
# covers all of it, and TINY_NORM the squares in a norm. Where a number or its error overflows, the ball is NaN and
# proves nothing.

from __future__ import annotations

import math
from typing import Any

import numpy as np
from flint import arb

from qkv.core.rounding_bounds import TINY, U, gamma

TINY_NORM = 2.0**-500
EXP_ULPS = 8.0
"""Assumed error of numpy's exp and log: twice the 4 units in the last place that it keeps on every platform."""
MAX_SCORE_ERROR = 2.0**-6
"""Scores must be known to this; beyond it, 2.1 times the error of exp no longer bounds that of a quotient of two."""


def weights_in_float64(p: dict[str, Any]) -> dict[str, Any]:
    """Distance of the weights, distance of the output and norm bound, as balls that contain the true values.

    Scores carry |error| <= gamma_d |k|·|q|, and so exp(score) a relative error of that size plus a few ulps;
    a quotient of two such numbers has at most twice that, plus n roundings of the sum. Every bound below is
    doubled, which covers the roundings made while computing the bounds themselves.
    """
    with np.errstate(all="ignore"):
        return _weights(p)


def _weights(p: dict[str, Any]) -> dict[str, Any]:
    keys, query, items, wanted = (p[k] for k in ("keys", "query", "items", "wanted"))
    n, d = keys.shape
    scores = keys @ query
    score_error = 2 * gamma(d + 2) * (np.abs(keys) @ np.abs(query)) + TINY
    alpha, kappa = _softmax(scores, score_error)
    gap = alpha.copy()
    gap[items] -= wanted
    # A weight that underflows is off by at most itself, which is less than TINY.
    error = 2 * (kappa * alpha + 2 * U * np.abs(gap)) + TINY
    total = 0.5 * float(np.abs(gap).sum())
    out = {"distance": _ball(total, float(error.sum()) + 2 * gamma(n + 2) * total)}
    values, unit = _scaled(p["values"])
    residual = gap @ values
    spread = error @ np.abs(values) + 2 * gamma(n + 2) * (np.abs(gap) @ np.abs(values)) + TINY
    out["output"] = _norm(residual, spread) * unit
    if "multipliers" in p:
        out["norm_at_least"] = _least_norm(p, scores, score_error)
    return out


def _ball(middle: float, radius: float) -> arb:
    """A ball; NaN, which proves nothing, where float64 overflowed."""
    return arb(middle, radius) if math.isfinite(middle) and math.isfinite(radius) else arb.nan()


def _scaled(a: Any) -> tuple[Any, arb]:
    """The array scaled to entries below 2 in size, and the power of two by which it was divided."""
    exponent = int(np.frexp(np.abs(a).max())[1]) - 1
    return np.ldexp(a, -exponent), arb(math.ldexp(1.0, exponent))


def _norm(entries: Any, error: Any) -> arb:
    """The norm of a vector whose entries are known to `error`."""
    size = float(np.linalg.norm(entries))
    return _ball(size, 2 * float(np.linalg.norm(error)) + 2 * gamma(len(entries) + 4) * size + TINY_NORM)


def _softmax(scores: Any, score_error: Any) -> tuple[Any, float]:
    """Weights, and a bound on their relative errors."""
    top = float(scores.max())
    raw = np.exp(scores - top)
    total = float(raw.sum())
    each = float((score_error + U * np.abs(scores - top)).max())
    if not each < MAX_SCORE_ERROR:
        return raw / total, math.inf
    rho = math.expm1(each) + EXP_ULPS * 2 * U
    return raw / total, 2.1 * rho + 2 * gamma(len(scores) + 2)


def _least_norm(p: dict[str, Any], scores: Any, score_error: Any) -> arb:
    """The bound |q| >= b/|g| that `weights.least_norm` derives, with rounding errors propagated.

    All multipliers, that of the leak too, are divided by a power of two, so that none is above 1: any nonnegative
    numbers make an inequality. Keys have entries below 2, so TINY covers what scaling either of them loses.
    """
    items, wanted = p["items"], p["wanted"]
    keys, unit = _scaled(p["keys"])
    exponent = max(0, int(np.frexp(np.abs(p["multipliers"]).max(initial=0.0))[1]))
    nu, leak = np.ldexp(p["multipliers"], -exponent), float(np.ldexp(1.0, -exponent))
    first = keys[items[0]]
    logs = np.log(wanted)
    b = float(nu @ (logs - logs[0]))
    b_error = 4 * gamma(len(nu) + 10) * float(np.abs(nu) @ (np.abs(logs) + abs(logs[0]))) + TINY
    g = nu @ (keys[items] - first)
    g_error = 4 * gamma(len(nu) + 2) * (np.abs(nu) @ (np.abs(keys[items]) + np.abs(first))) + TINY
    rest = np.ones(len(keys), dtype=bool)
    rest[items] = False
    if rest.any():
        k = keys[rest]
        p_rest, kappa = _softmax(scores[rest], score_error[rest])
        weight = np.abs(np.log(np.where(p_rest > 0, p_rest, 1.0)))
        entropy = float(p_rest @ weight)
        # -x log x changes by (|log x| + 1) times the relative error of x; one that underflowed adds almost nothing.
        b_error += leak * 2 * (kappa + 2 * gamma(len(p_rest) + 12)) * (1 + entropy)
        whole = math.log(math.fsum(wanted))
        edge = float(np.log(p["tol"] / (1 - p["tol"])))
        b += leak * (logs[0] - whole + entropy - edge)
        b_error += leak * 40 * U * (1 + abs(logs[0]) + abs(whole) + abs(entropy) + abs(edge))
        g = g + leak * (first - p_rest @ k)
        g_error = g_error + leak * (
            2 * (kappa + 2 * gamma(len(p_rest) + 4)) * (p_rest @ np.abs(k)) + 4 * U * np.abs(first)
        )
    return _ball(b, 2 * b_error + 8 * U * abs(b)) / (_norm(g, g_error) * unit)
