"""Projector and nearest vectors of two spans, in float64 or, for nearly dependent columns, in ball arithmetic."""

# The spans of A and B are as near as the smallest λ with K z = λ D z, K = [A -B]ᵀ[A -B], D = diag(AᵀA, BᵀB): for z =
# (x, y) with |A x| = |B y| = 1, λ is |A x - B y|²/2. Inverse iteration finds it; a small multiple of D keeps K
# invertible where the spans share a vector. The projector is M = A C, with C the first rows of ([A B]ᵀ[A B])⁻¹ [A B]ᵀ.

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from flint import arb, arb_mat, ctx

from qkv.core import geometry
from qkv.core.types import FloatArray
from qkv.design.certificates.ball_arithmetic import flat, matrix, norm

BITS = 1024
SHIFT_BITS = 400
"""K is shifted by 2^-400 of D: far below what bases of float64 numbers have, and far above the precision."""
STEPS = 60


class Nearest(NamedTuple):
    """Coefficients of unit vectors A x and B y that are as near as any, and the distance of the two."""

    x: FloatArray
    y: FloatArray
    distance: float


def nearest_vectors(a: FloatArray, b: FloatArray, in_balls: bool) -> Nearest:
    """The nearest unit vectors of span A and span B."""
    m = a.shape[1]
    both, sizes = _scaled(np.hstack([a, b]))
    if not in_balls:
        x, y = geometry.principal_vectors(both[:, :m], both[:, m:])
        apart = float(np.linalg.norm(both[:, :m] @ x - both[:, m:] @ y))
        return Nearest(_unscaled(x, sizes[:m]), _unscaled(y, sizes[m:]), apart)
    with ctx.workprec(BITS):
        columns = matrix(both)
        gram = columns.transpose() * columns
        rows = range(gram.nrows())
        inside = [[(i < m) == (j < m) for j in rows] for i in rows]
        d = arb_mat([[gram[i, j] if inside[i][j] else 0 for j in rows] for i in rows])
        shift = arb(2) ** -SHIFT_BITS
        k = arb_mat([[gram[i, j] * (1 + shift) if inside[i][j] else -gram[i, j] for j in rows] for i in rows])
        step = (k.inv() * d).mid()
        z = matrix(np.random.default_rng(0).standard_normal(gram.nrows()))
        for _ in range(STEPS):
            z = (step * z).mid()
            z = (z / norm(flat(z))).mid()
        z = flat(z)
        of_a, x = _unit(both[:, :m], z[:m])
        of_b, y = _unit(both[:, m:], z[m:])
        return Nearest(_unscaled(x, sizes[:m]), _unscaled(y, sizes[m:]), float(norm(flat(of_a - of_b)).mid()))


def _unit(columns: FloatArray, part: list[Any]) -> tuple[Any, FloatArray]:
    """The unit vector in the direction of a combination of columns, and its coefficients."""
    vector = matrix(columns) * arb_mat(len(part), 1, part)
    length = norm(flat(vector))
    return vector / length, _floats([c / length for c in part])


def projector(a: FloatArray, b: FloatArray, in_balls: bool) -> tuple[FloatArray, FloatArray]:
    """The matrix M of least norm with M A = A and M B = 0, and the coordinates C, for which M is A C."""
    both, sizes = _scaled(np.hstack([a, b]))
    k = a.shape[1]
    if not in_balls:
        m = geometry.oblique_projector(both[:, :k], both[:, k:])
        return m, _unscaled(np.linalg.pinv(both[:, :k]) @ m, sizes[:k, None])
    with ctx.workprec(BITS):
        columns = matrix(both)
        found = (columns.transpose() * columns).solve(columns.transpose())
        c = arb_mat([[found[i, j] for j in range(found.ncols())] for i in range(k)])
        m = matrix(both[:, :k]) * c
        shape = (k, len(a))
        return _floats(flat(m)).reshape(len(a), -1), _unscaled(_floats(flat(c)).reshape(shape), sizes[:k, None])


def vector_of(a: FloatArray, x: FloatArray) -> FloatArray:
    """A x, correct to the last bits where its terms cancel."""
    with ctx.workprec(BITS):
        return _floats(flat(matrix(a) * matrix(x)))


def _scaled(columns: FloatArray) -> tuple[FloatArray, Any]:
    """Columns divided by powers of two, with the exponents."""
    exponents = np.frexp(np.abs(columns).max(axis=0))[1]
    return np.ldexp(columns, -exponents), exponents


def _unscaled(coefficients: FloatArray, exponents: Any) -> FloatArray:
    """Coefficients of the columns before they were divided; infinite where columns are too short for float64."""
    with np.errstate(over="ignore"):
        return np.asarray(np.ldexp(coefficients, -exponents))


def _floats(balls: list[Any]) -> FloatArray:
    return np.array([float(each.mid()) for each in balls])
