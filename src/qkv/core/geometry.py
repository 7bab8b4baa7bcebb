"""Hulls, projections and orthogonality of keys and subspaces."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from qkv.core.types import FloatArray

MAX_ORTHOGONAL_ROWS = 4096
"""Orthogonality is not looked for among more rows, since their Gram matrix is n × n."""


def common_norm(vectors: FloatArray, rtol: float = 1e-11) -> float | None:
    """β if the rows are orthogonal to each other and all of norm β > 0, else None."""
    n, d = vectors.shape
    if n > d or n > MAX_ORTHOGONAL_ROWS:
        return None
    gram = vectors @ vectors.T
    square = float(np.diag(gram).mean())
    if square <= 0 or np.abs(gram - square * np.eye(n)).max() > rtol * square:
        return None
    return float(np.sqrt(square))


def rank(columns: FloatArray, rtol: float = 1e-10) -> int:
    """Numerical rank: singular values above rtol times the largest."""
    s = np.linalg.svd(columns, compute_uv=False)
    return int((s > rtol * s[0]).sum()) if len(s) and s[0] > 0 else 0


def are_orthonormal(columns: FloatArray, rtol: float = 1e-12) -> bool:
    """Whether the columns are orthonormal."""
    return bool(np.abs(columns.T @ columns - np.eye(columns.shape[1])).max() <= rtol)


def oblique_projector(keep: FloatArray, remove: FloatArray) -> FloatArray:
    """The matrix of least norm with M keep = keep and M remove = 0, for independent columns.

    It depends on the spans alone, so both bases are made orthonormal first: a short one beside a long one is not lost.
    """
    kept, removed = np.linalg.qr(of_one_size(keep))[0], np.linalg.qr(of_one_size(remove))[0]
    return kept @ np.linalg.pinv(np.hstack([kept, removed]))[: kept.shape[1]]


def of_one_size(columns: FloatArray) -> FloatArray:
    """Columns divided by powers of two, so that their largest entries are between a half and 1."""
    return np.ldexp(columns, -np.frexp(np.abs(columns).max(axis=0))[1])


def principal_vectors(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Coefficients x, y of the first pair of principal vectors: unit vectors a x and b y at the smallest angle."""
    qa, ra = np.linalg.qr(a)
    qb, rb = np.linalg.qr(b)
    u, _, vt = np.linalg.svd(qa.T @ qb)
    return np.linalg.solve(ra, u[:, 0]), np.linalg.solve(rb, vt[0])


def min_norm_point(points: FloatArray) -> FloatArray:
    """The point of least norm in the convex hull of the rows."""
    return _hull_weights(points) @ points


def min_norm_combination(points: FloatArray, free: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Convex weights w and unrestricted coefficients c that minimise the norm of w·points + c·free."""
    if len(free) == 0:
        return _hull_weights(points), np.zeros(0)
    _, s, vt = np.linalg.svd(free, full_matrices=False)
    span = vt[s > 1e-11 * max(s[0], 1e-300)]
    weights = _hull_weights(points - points @ span.T @ span)
    return weights, -np.asarray(np.linalg.lstsq(free.T, weights @ points, rcond=None)[0])


def _hull_weights(points: FloatArray) -> FloatArray:
    """Convex weights of the point of least norm in the hull.

    Non-negative least squares on [pointsᵀ; 1ᵀ] λ = [0; 1] gives its direction, and dividing by the sum of the weights
    its length (Lawson and Hanson's reduction of least distance programming).
    """
    size = float(np.abs(points).max()) or 1.0
    system = np.vstack([points.T / size, np.ones(len(points))])
    weights, _ = nnls(system, np.concatenate([np.zeros(points.shape[1]), [1.0]]))
    return np.asarray(weights / weights.sum())
