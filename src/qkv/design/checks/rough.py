"""The quantities of a reading in float64, each with a bound on its rounding error."""

from __future__ import annotations

from typing import Any

import numpy as np
from flint import arb

U = 2.0**-53
EXP_ULPS = 8.0
"""numpy's exp and log stay within 4 units in the last place on every platform it supports; twice that is assumed."""


def gamma(k: int) -> float:
    """k·u/(1-k·u): the relative error of k roundings, in any order of summation."""
    return k * U / (1 - k * U)


def rough_weights(p: dict[str, Any]) -> dict[str, Any]:
    """Distance of the weights, distance of the output and the norm bound, as balls around float64 results.

    Scores carry |error| <= gamma_d |k|·|q|, and so exp(score) a relative error of that size plus a few ulps;
    a quotient of two such numbers has at most twice that, plus n roundings of the sum. Every bound below is
    doubled, which pays for the roundings made while computing the bounds themselves.
    """
    keys, values, query, items, wanted = (p[k] for k in ("keys", "values", "query", "items", "wanted"))
    n, d = keys.shape
    scores = keys @ query
    slack = 2 * gamma(d + 2) * (np.abs(keys) @ np.abs(query)) + 1e-300
    alpha, kappa = _softmax(scores, slack)
    gap = alpha.copy()
    gap[items] -= wanted
    error = 2 * (kappa * alpha + 2 * U * np.abs(gap)) + 1e-300
    total = 0.5 * float(np.abs(gap).sum())
    out = {"distance": arb(total, float(error.sum()) + 2 * gamma(n + 2) * total)}
    residual = gap @ values
    spread = error @ np.abs(values) + 2 * gamma(n + 2) * (np.abs(gap) @ np.abs(values))
    size = float(np.linalg.norm(residual))
    out["output"] = arb(size, 2 * float(np.linalg.norm(spread)) + 2 * gamma(len(residual) + 4) * size)
    if "multipliers" in p:
        out["norm_at_least"] = _least_norm(p, scores, slack)
    return out


def _softmax(scores: Any, slack: Any) -> tuple[Any, float]:
    """Weights, and a bound on their relative errors."""
    top = float(scores.max())
    raw = np.exp(scores - top)
    total = float(raw.sum())
    # A score's error counts where its weight counts; far below the top, exp itself underflows harmlessly.
    each = float((slack + U * np.abs(scores - top)).max())
    rho = float(np.expm1(each)) + EXP_ULPS * 2 * U
    kappa = 2.1 * rho + 2 * gamma(len(scores) + 2)
    return raw / total, kappa


def _least_norm(p: dict[str, Any], scores: Any, slack: Any) -> arb:
    """The bound |q| >= b/|g| that `weights.least_norm` derives, with errors carried along."""
    keys, items, wanted, nu = p["keys"], p["items"], p["wanted"], p["multipliers"]
    logs = np.log(wanted)
    b = float(nu @ (logs - logs[0]))
    b_error = 4 * gamma(len(nu) + 10) * float(np.abs(nu) @ (np.abs(logs) + abs(logs[0])))
    g = nu @ (keys[items] - keys[items[0]])
    g_error = 4 * gamma(len(nu) + 2) * (np.abs(nu) @ (np.abs(keys[items]) + np.abs(keys[items[0]])))
    rest = np.ones(len(keys), dtype=bool)
    rest[items] = False
    if rest.any():
        s, k = scores[rest], keys[rest]
        tilt, kappa = _softmax(s, slack[rest])
        positive = tilt > 0
        entropy = -float(tilt[positive] @ np.log(tilt[positive]))
        weight = np.abs(np.log(np.where(positive, tilt, 1.0)))
        b_error += 2 * (kappa + 2 * gamma(len(tilt) + 12)) * (1 + float(tilt @ weight))
        edge = float(np.log(p["tol"] / (1 - p["tol"])))
        b += logs[0] + entropy - edge
        b_error += 40 * U * (abs(logs[0]) + abs(entropy) + abs(edge))
        g = g + keys[items[0]] - tilt @ k
        g_error = g_error + 2 * (kappa + 2 * gamma(len(tilt) + 4)) * (tilt @ np.abs(k)) + 4 * U * np.abs(keys[items[0]])
    size = float(np.linalg.norm(g))
    ball_g = arb(size, 2 * float(np.linalg.norm(g_error)) + 2 * gamma(len(g) + 4) * size)
    return arb(b, 2 * b_error + 8 * U * abs(b)) / ball_g
