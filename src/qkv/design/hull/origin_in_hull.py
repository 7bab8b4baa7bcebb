"""Is the origin in the hull of a few directions? Weights if it is, a separating query if not."""

# Non-negative least squares answers both ways (Lawson and Hanson, Solving Least Squares Problems, ch. 23).
# For unit rows y_i let A = [Y'; 1 … 1], b = (0, …, 0, 1), w >= 0 minimise ‖A w − b‖, and r = b − A w. Either
# r = 0: Σ w_i y_i = 0 and Σ w_i = 1, with at most d + 1 affinely independent y_i in use. Or, since A'r <= 0
# at the minimum and the last entry of r is b·r = ‖r‖² (r is orthogonal to A w), the first d entries q of r
# have y_i·q <= −‖r‖² < 0 for every i.

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog, nnls

from qkv.core.rounding_bounds import Floats

CLEAR = 1e-7
"""Above this gap, r has enough correct digits for q to be used as it stands."""


def lift(differences: Floats) -> tuple[Floats, Floats]:
    """Rows (y, 1) with y at unit norm (a half-space holds y if it holds t·y, t > 0), and the old norms."""
    largest = np.abs(differences).max(axis=1)
    rows = np.ones((len(differences), differences.shape[1] + 1))
    y = np.divide(differences, np.where(largest > 0, largest, 1.0)[:, None], out=rows[:, :-1])
    sizes = np.sqrt(np.einsum("ij,ij->i", y, y))
    y /= np.where(sizes > 0, sizes, 1.0)[:, None]
    return rows, sizes * largest


def least(rows: Floats) -> tuple[Floats, Floats, float]:
    """The weights, the query q and the gap ‖r‖ of the least-squares problem above."""
    b = np.zeros(rows.shape[1])
    b[-1] = 1.0
    try:
        weights, gap = nnls(rows.T, b)
    except RuntimeError:  # too many exchanges: nearly dependent rows
        return program(rows)
    return weights, -(weights @ rows)[:-1], float(gap)


def program(rows: Floats) -> tuple[Floats, Floats, float]:
    """The same by linear programming: the largest t with y_i·q + t <= 0, |q| <= 1; the duals are weights."""
    m, d = len(rows), rows.shape[1] - 1
    cost = np.append(np.zeros(d), -1.0)
    found = linprog(cost, rows, np.zeros(m), bounds=[(-1, 1)] * d + [(None, None)], method="highs")
    if found.x is None:
        mean = rows[:, :-1].mean(axis=0)
        return np.full(m, 1 / m), -mean, float(np.linalg.norm(mean))
    return np.maximum(-found.ineqlin.marginals, 0.0), found.x[:-1], max(float(found.x[-1]), 0.0)


def balance(rows: Floats, weights: Floats) -> tuple[Floats, float]:
    """Weights improved until Σ w_i y_i is zero to rounding if it can be, and the norm of that sum.

    On the rows in use A w = b has full column rank; one correction by its own residual takes what the solver
    left. Rows that a correction makes negative had no business there, and the next one does without them.
    """
    b = np.zeros(rows.shape[1])
    b[-1] = 1.0
    best = trial = weights / weights.sum()
    size = float(np.linalg.norm((best @ rows)[:-1]))
    for _ in range(3):
        if size <= 4e-16:
            break
        used = np.flatnonzero(trial > 0)
        part = rows[used].T
        step = trial[used] + np.linalg.lstsq(part, b - part @ trial[used], rcond=None)[0]
        trial = np.zeros_like(best)
        trial[used] = np.maximum(step, 0.0)
        if not trial.any():
            break
        trial /= trial.sum()
        left = float(np.linalg.norm((trial @ rows)[:-1]))
        if left < size:
            best, size = trial, left
    return best, size


def sharpen(rows: Floats, weights: Floats) -> Floats:
    """The query again, when r is too small to carry it: q with y_i·q = −1 on the rows in use, of least norm.

    At the minimum all rows in use have the same y_i·q and q lies in their span, so this is the same
    direction; solving for it costs digits by the condition of those rows only.
    """
    used = rows[weights > 0, :-1]
    return np.asarray(np.linalg.lstsq(used, -np.ones(len(used)), rcond=None)[0], dtype=np.float64)
