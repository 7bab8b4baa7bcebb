"""Hulls, projections, orthogonality: the geometry of keys and of subspaces."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import nnls

Array = np.ndarray[Any, np.dtype[np.float64]]

MOST_ORTHOGONAL = 4096


def common_norm(vectors: Array, rtol: float = 1e-11) -> float | None:
    """β if the rows are orthogonal to each other and all of norm β > 0, else None."""
    n, d = vectors.shape
    if n > d or n > MOST_ORTHOGONAL:
        return None
    gram = vectors @ vectors.T
    square = float(np.diag(gram).mean())
    if square <= 0 or np.abs(gram - square * np.eye(n)).max() > rtol * square:
        return None
    return float(np.sqrt(square))


def rank(columns: Array, rtol: float = 1e-10) -> int:
    """How many of the columns' directions are independent, beyond rounding."""
    s = np.linalg.svd(columns, compute_uv=False)
    return int((s > rtol * s[0]).sum()) if len(s) and s[0] > 0 else 0


def are_orthonormal(columns: Array, rtol: float = 1e-12) -> bool:
    """Whether the columns are unit vectors at right angles."""
    return bool(np.abs(columns.T @ columns - np.eye(columns.shape[1])).max() <= rtol)


def oblique_projector(keep: Array, remove: Array) -> Array:
    """The matrix of least norm with M keep = keep and M remove = 0, for independent columns."""
    both = np.hstack([keep, remove])
    target = np.hstack([keep, np.zeros_like(remove)])
    return target @ np.linalg.pinv(both)


def meeting(a: Array, b: Array) -> tuple[Array, Array]:
    """Coefficients x, y of unit vectors a x and b y in two spans that are as close as the spans come."""
    qa, ra = np.linalg.qr(a)
    qb, rb = np.linalg.qr(b)
    u, _, vt = np.linalg.svd(qa.T @ qb)
    return np.linalg.solve(ra, u[:, 0]), np.linalg.solve(rb, vt[0])


def nearest_to_origin(points: Array) -> Array:
    """The point of the hull of the rows that is nearest to the origin."""
    return _hull_weights(points) @ points


def balance(points: Array, free: Array) -> tuple[Array, Array]:
    """Convex weights w and any coefficients c with which w·points + c·free is as near to zero as can be."""
    if len(free) == 0:
        return _hull_weights(points), np.zeros(0)
    _, s, vt = np.linalg.svd(free, full_matrices=False)
    span = vt[s > 1e-11 * max(s[0], 1e-300)]
    weights = _hull_weights(points - points @ span.T @ span)
    return weights, -np.asarray(np.linalg.lstsq(free.T, weights @ points, rcond=None)[0])


def _hull_weights(points: Array) -> Array:
    """Weights of the point of the hull that is nearest to the origin.

    Least squares with non-negative weights on [pointsᵀ; 1ᵀ] λ = [0; 1] gives its direction, and dividing by the sum
    of the weights its length (Lawson and Hanson's reduction of least distance programming).
    """
    size = float(np.abs(points).max()) or 1.0
    system = np.vstack([points.T / size, np.ones(len(points))])
    weights, _ = nnls(system, np.concatenate([np.zeros(points.shape[1]), [1.0]]))
    return np.asarray(weights / weights.sum())
