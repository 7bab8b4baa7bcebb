"""Arb balls (intervals that contain the true value) and exact fractions on arrays."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from flint import arb, arb_mat, fmpq, fmpq_mat

from qkv.core.types import FloatArray

Ball = arb

MAX_SPLIT_ITEMS = 64
"""Wanted items up to which each one's gap is computed from the exponentials of all others."""
CHUNK_NUMBERS = 1 << 18
"""Arrays are converted in chunks of this many numbers, since a list of Python floats is ten times as large."""


def matrix(a: FloatArray) -> Any:
    """A float64 array as an exact ball matrix; a vector becomes a column."""
    a = np.asarray(a, dtype=np.float64)
    rows, cols = a.shape if a.ndim == 2 else (a.shape[0], 1)
    return arb_mat(rows, cols, a.ravel().tolist())


def products(a: FloatArray, x: FloatArray) -> list[Ball]:
    """The entries of a @ x, for a matrix `a` and a vector `x`."""
    column = matrix(x)
    step = max(1, CHUNK_NUMBERS // max(1, a.shape[1]))
    out: list[Ball] = []
    for start in range(0, a.shape[0], step):
        out.extend((matrix(a[start : start + step]) * column).entries())
    return out


def combine(weights: Sequence[Ball], a: FloatArray) -> list[Ball]:
    """The weighted sum of the rows of `a`."""
    step = max(1, CHUNK_NUMBERS // max(1, a.shape[1]))
    total = arb_mat(1, a.shape[1])
    for start in range(0, a.shape[0], step):
        piece = list(weights[start : start + step])
        total = total + arb_mat(1, len(piece), piece) * matrix(a[start : start + step])
    return list(total.entries())


def exponentials(scores: Sequence[Ball]) -> tuple[list[Ball], Ball]:
    """Exponentials in the proportions of a softmax, and their sum: the weights are their quotients.

    Shifting by the largest midpoint changes no quotient and keeps equal scores exactly equal. Callers that divide last
    get exact results where there are any: of 12 equal scores, 9 have a weight of exactly 3/4.
    """
    shift = max(s.mid() for s in scores)
    raw = [(s - shift).exp() for s in scores]
    return raw, sum(raw, arb(0))


def weight_gaps(raw: Sequence[Ball], wanted: Mapping[int, float]) -> list[Ball]:
    """Softmax weights less the wanted ones, times the sum of the exponentials `raw`.

    e_i - w_i Σ e_j is computed as e_i (1 - w_i) - w_i Σ_{j≠i} e_j, which does not cancel where w_i is 1: a leak of
    1e-100 is then known at any precision.
    """
    outside = sum((e for i, e in enumerate(raw) if i not in wanted), arb(0))
    total = sum((raw[i] for i in wanted), outside)
    out = list(raw)
    for i, w in wanted.items():
        if len(wanted) <= MAX_SPLIT_ITEMS:
            rest = sum((raw[j] for j in wanted if j != i), outside)
            out[i] = raw[i] * (1 - arb(float(w))) - arb(float(w)) * rest
        else:
            out[i] = raw[i] - arb(float(w)) * total
    return out


def norm(entries: Iterable[Ball]) -> Ball:
    """The Euclidean norm."""
    return sum((e * e for e in entries), arb(0)).nonnegative_part().sqrt()


def flat(m: Any) -> list[Ball]:
    """The entries of a ball matrix."""
    return list(m.entries())


def above(x: Ball) -> float:
    """A float that is not below any number in `x`; `x` itself where it is a float."""
    value = float(x.upper())
    return value if x <= value else math.nextafter(value, math.inf)


def below(x: Ball) -> float:
    """A float that is not above any number in `x`; `x` itself where it is a float."""
    value = float(x.lower())
    return value if x >= value else math.nextafter(value, -math.inf)


def rational(a: FloatArray) -> Any:
    """A float64 matrix as exact fractions."""
    a = np.asarray(a, dtype=np.float64)
    return fmpq_mat(a.shape[0], a.shape[1], [fmpq(*float(v).as_integer_ratio()) for v in a.ravel()])


def in_hull_exactly(points: FloatArray, target: FloatArray) -> bool:
    """Whether `target` is a convex combination of affinely independent `points`, decided in fractions."""
    m, d = points.shape
    if m > d + 1:
        return False  # more than d + 1 points are dependent
    system = np.ones((d + 1, m + 1))
    system[:d, :m] = points.T
    system[:d, m] = target
    reduced, rank = rational(system).rref()
    if rank > m or int(rational(system[:, :m]).rank()) != rank:
        return False  # the target is outside the affine span of the points
    if rank < m:
        return False  # dependent points: their weights are not unique, so nothing is decided here
    return all(reduced[i, m] >= 0 for i in range(m))
