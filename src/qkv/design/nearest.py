"""Is the origin in the hull of a few directions? Weights if it is, a separating query if not."""

# Non-negative least squares answers both ways (Lawson and Hanson, Solving Least Squares Problems, ch. 23). For unit rows y_i
# let A = [Y'; 1 … 1], b = (0, …, 0, 1), w >= 0 minimise ‖A w − b‖, and r = b − A w. Either r = 0: Σ w_i y_i = 0 and
# Σ w_i = 1, with at most d + 1 affinely independent y_i in use. Or, since A'r <= 0 at the minimum and the last entry
# of r is b·r = ‖r‖² (r is orthogonal to A w), the first d entries q of r have y_i·q <= −‖r‖² < 0 for every i.

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog, nnls

from qkv.core.rounding import Floats

CLEAR = 1e-7
"""Above this gap, r has enough correct digits for q to be used as it stands."""


def directions(differences: Floats) -> tuple[Floats, Floats]:
    """Rows at unit norm (scaling rows moves no half-space that holds them all), and the norms they had."""
    largest = np.abs(differences).max(axis=1)
    safe = np.where(largest > 0, largest, 1.0)
    scaled = differences / safe[:, None]
    sizes = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
    return scaled / np.where(sizes > 0, sizes, 1.0)[:, None], sizes * largest


def least(y: Floats) -> tuple[Floats, Floats, float]:
    """The weights, the query q and the gap ‖r‖ of the least-squares problem above."""
    a, b = _system(y)
    try:
        weights, gap = nnls(a, b)
    except RuntimeError:  # too many exchanges: nearly dependent rows
        return program(y)
    return weights, (b - a @ weights)[:-1], float(gap)


def program(y: Floats) -> tuple[Floats, Floats, float]:
    """The same by linear programming: the largest t with y_i·q + t <= 0, |q| <= 1; its multipliers are the weights."""
    m, d = y.shape
    cost = np.append(np.zeros(d), -1.0)
    found = linprog(
        cost, np.column_stack([y, np.ones(m)]), np.zeros(m), bounds=[(-1, 1)] * d + [(None, None)], method="highs"
    )
    if found.x is None:
        return np.full(m, 1 / m), -y.mean(axis=0), float(np.linalg.norm(y.mean(axis=0)))
    weights = np.maximum(-found.ineqlin.marginals, 0.0)
    return weights, found.x[:-1], float(max(found.x[-1], 0.0))


def balance(y: Floats, weights: Floats) -> tuple[Floats, float]:
    """Weights improved until Σ w_i y_i is zero to rounding if it can be, and the norm of that sum.

    On the rows in use the system A w = b is square or overdetermined with full rank; one correction by its own
    residual takes what the solver left. Rows that the correction makes negative had no business there.
    """
    a, b = _system(y)
    best, size = weights / weights.sum(), float(np.linalg.norm(weights @ y) / weights.sum())
    trial = best
    for _ in range(3):
        if size <= 4e-16:
            break
        used = np.flatnonzero(trial > 0)
        part = a[:, used]
        step = trial[used] + np.linalg.lstsq(part, b - part @ trial[used], rcond=None)[0]
        trial = np.zeros_like(best)
        trial[used] = np.maximum(step, 0.0)
        if not trial.any():
            break
        trial /= trial.sum()
        left = float(np.linalg.norm(trial @ y))
        if left < size:
            best, size = trial, left
    return best, size


def sharpen(y: Floats, weights: Floats) -> Floats:
    """The query again, when r is too small to carry it: q with y_i·q = −1 on the rows in use, of least norm.

    At the minimum all rows in use have the same y_i·q and q lies in their span, so this is the same direction;
    solving for it costs digits by the condition of those rows only.
    """
    used = y[weights > 0]
    return np.linalg.lstsq(used, -np.ones(len(used)), rcond=None)[0]


def _system(y: Floats) -> tuple[Floats, Floats]:
    m, d = y.shape
    a = np.ones((d + 1, m))
    a[:d] = y.T
    b = np.zeros(d + 1)
    b[d] = 1.0
    return a, b
