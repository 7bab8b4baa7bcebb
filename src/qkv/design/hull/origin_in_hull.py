"""Is 0 in the convex hull of a few directions? By non-negative least squares, with an LP fallback."""

# Non-negative least squares gives convex weights if it is and a separating query if not (Lawson and Hanson, Solving
# Least Squares Problems, ch. 23).
# For unit rows y_i let A = [Y'; 1 … 1], b = (0, …, 0, 1), w >= 0 minimise ‖A w − b‖, and r = b − A w. Either
# r = 0: Σ w_i y_i = 0 and Σ w_i = 1, with at most d + 1 affinely independent y_i in use. Or, since A'r <= 0
# at the minimum and the last entry of r is b·r = ‖r‖² (r is orthogonal to A w), the first d entries q of r
# have y_i·q <= −‖r‖² < 0 for every i.

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog, nnls

from qkv.core.types import FloatArray

ACCURATE_GAP = 1e-7
"""If ‖r‖ is above this, q has enough correct digits to be used without refinement."""


def unit_rows(differences: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rows (y, 1) with each difference y scaled to unit norm, and the original norms.

    Scaling vectors by positive factors does not change whether 0 is in their hull.
    """
    largest = np.abs(differences).max(axis=1)
    rows = np.ones((len(differences), differences.shape[1] + 1))
    y = np.divide(differences, np.where(largest > 0, largest, 1.0)[:, None], out=rows[:, :-1])
    sizes = np.sqrt(np.einsum("ij,ij->i", y, y))
    y /= np.where(sizes > 0, sizes, 1.0)[:, None]
    return rows, sizes * largest


def least_squares(rows: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Weights w, query q and gap ‖r‖ of the least-squares problem above."""
    b = np.zeros(rows.shape[1])
    b[-1] = 1.0
    try:
        weights, gap = nnls(rows.T, b)
    except RuntimeError:  # iteration limit, for nearly dependent rows
        return linear_program(rows)
    return weights, -(weights @ rows)[:-1], float(gap)


def linear_program(rows: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """The same by linear programming: maximise t with y_i·q + t <= 0 and |q| <= 1; the dual values are the weights."""
    m, d = len(rows), rows.shape[1] - 1
    cost = np.append(np.zeros(d), -1.0)
    found = linprog(cost, rows, np.zeros(m), bounds=[(-1, 1)] * d + [(None, None)], method="highs")
    if found.x is None:
        mean = rows[:, :-1].mean(axis=0)
        return np.full(m, 1 / m), -mean, float(np.linalg.norm(mean))
    return np.maximum(-found.ineqlin.marginals, 0.0), found.x[:-1], max(float(found.x[-1]), 0.0)


def refine_weights(rows: FloatArray, weights: FloatArray) -> tuple[FloatArray, float]:
    """Iterative refinement of the weights towards Σ w_i y_i = 0, and the norm of that sum.

    On the rows with positive weight A w = b has full column rank, so one least-squares correction by the residual
    removes the solver's error. Rows whose weight turns negative are dropped before the next correction.
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


def refine_query(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """The query to full accuracy where r is too small: the q of least norm with y_i·q = −1 on the rows in use.

    At the minimum all rows in use have the same y_i·q and q lies in their span, so this is the same direction; its
    error depends on the condition number of those rows only.
    """
    used = rows[weights > 0, :-1]
    return np.asarray(np.linalg.lstsq(used, -np.ones(len(used)), rcond=None)[0], dtype=np.float64)
