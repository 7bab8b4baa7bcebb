"""Queries that cost one product: which keys does a guess at their query already select?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qkv.core import rounding
from qkv.core.rounding import Floats, Frame, Ints

U32 = 2.0**-24
SLACK = 4.0
"""Claims leave room for a recheck that sums in another order: see rounding.margins."""


def centred(f: Frame, items: Ints) -> Floats:
    """The direction of each key from the mean: x_j·x_j beats x_i·x_j unless x_i reaches as far that way."""
    return _unit(f.offsets[items])


def whitened(f: Frame, items: Ints) -> Floats:
    """The same guess where the cloud of keys is made round, so that no long direction drowns the others.

    Selecting in coordinates z = C^(-1/2) x by the query z_j is selecting in x by C^(-1) x_j.
    """
    covariance = f.offsets.T @ f.offsets / len(f.offsets)
    variance, axes = np.linalg.eigh(covariance)
    # Directions without spread tell keys apart by nothing but rounding.
    inverse = np.where(variance > 1e-12 * variance[-1], 1 / np.maximum(variance, 1e-300), 0.0)
    return _unit(((f.offsets[items] @ axes) * inverse) @ axes.T)


def claims(f: Frame, items: Ints, queries: Floats) -> Floats:
    """A lower bound on the margin of each unit query, good enough to claim; −inf where there is none.

    Single precision goes first, for speed: with both factors rounded to it, a score is off by at most
    gamma32(d + 2) ‖x_i‖ ‖q‖ plus underflow. That bounds all rivals but the strongest, whose score is computed
    again in double precision; so the claim is sharp though most scores are not. Rows where the second rival
    could cost more than a hundredth of the margin are done again in double precision.
    """
    d = queries.shape[1]
    blur = rounding.gamma(d + 4, U32) * f.radius * (1 + 1e-6) + d * 2.0**-120
    points32, queries32 = f.offsets.astype(np.float32), queries.astype(np.float32)
    out = np.full(len(items), -np.inf)
    for start in range(0, len(items), rounding.ROWS):
        rows = slice(start, start + rounding.ROWS)
        chosen, q = items[rows], queries[rows]
        rival, second = _strongest(points32, chosen, queries32[rows])
        own = np.einsum("ij,ij->i", q, f.offsets[chosen])
        first = np.einsum("ij,ij->i", q, f.offsets[rival])
        value = own - np.maximum(first, second + blur)
        error = f.error(chosen)
        lower = rounding.to_keys(value - SLACK * error, f.coarse + f.fine)
        dull = (value < 16 * error) | (own - first > 1.01 * value)
        unclear = np.flatnonzero(dull & (own - first > -error))
        if len(unclear):
            lower[unclear] = rounding.margins(f, chosen[unclear], q[unclear], slack=SLACK)
        out[rows] = np.where(lower > 0, lower, -np.inf)
    return out


def _strongest(points: NDArray[np.float32], items: Ints, queries: NDArray[np.float32]) -> tuple[Ints, Floats]:
    """For each query: the index of its best rival, and the score of the second best."""
    every = np.arange(len(items))
    rival = np.zeros(len(items), dtype=np.int64)
    best = np.full(len(items), -np.inf, dtype=np.float32)
    second = best.copy()
    for start in range(0, len(points), rounding.COLUMNS):
        tile = queries @ points[start : start + rounding.COLUMNS].T
        rounding.hide(tile, items, start)
        here = tile.argmax(axis=1)
        score = tile[every, here].copy()
        tile[every, here] = -np.inf
        runner_up = np.maximum(np.minimum(best, score), tile.max(axis=1))
        second = np.maximum(second, runner_up)
        rival = np.where(score > best, here + start, rival)
        best = np.maximum(best, score)
    return rival, second.astype(np.float64)


def _unit(rows: Floats) -> Floats:
    """Rows of norm 1 up to rounding; rows of zeros stay."""
    size = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return rows / np.where(size > 0, size, 1.0)[:, None]
