"""Margins, hulls, projections: the geometry of keys and of subspaces."""

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


def margin(keys: Array, item: int, query: Array) -> float:
    """How far a unit query along `query` scores one key above its strongest rival."""
    scores = keys @ (query / np.linalg.norm(query))
    return float(scores[item] - np.delete(scores, item).max(initial=-np.inf))


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
    """The point of the hull of the rows that is nearest to the origin.

    Least squares with non-negative weights on [pointsᵀ; 1ᵀ] λ = [0; 1] gives its direction, and dividing by the sum
    of the weights its length (Lawson and Hanson's reduction of least distance programming).
    """
    size = float(np.abs(points).max()) or 1.0
    system = np.vstack([points.T / size, np.ones(len(points))])
    weights, _ = nnls(system, np.concatenate([np.zeros(points.shape[1]), [1.0]]))
    return weights @ points / weights.sum()
