"""Candidate queries for all keys, centred and whitened, each verified by one matrix product."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from qkv.core import rounding_bounds
from qkv.core.rounding_bounds import ScaledKeys
from qkv.core.types import FloatArray, IntArray

U32 = 2.0**-24
"""Unit roundoff of float32."""
CLAIM_SLACK = 4.0
"""Claims leave room for a recheck that sums in another order: see rounding_bounds.margin_lower_bounds."""


def centred(f: ScaledKeys, items: IntArray) -> FloatArray:
    """The direction of each key from the mean: x_j·x_j is above x_i·x_j unless x_i extends as far that way."""
    return _unit(f.offsets[items])


def whitened(f: ScaledKeys, items: IntArray) -> FloatArray:
    """The same in coordinates in which the covariance of the keys is the identity.

    Selecting in coordinates z = C^(-1/2) x by the query z_j is selecting in x by C^(-1) x_j.
    """
    covariance = f.offsets.T @ f.offsets / len(f.offsets)
    variance, axes = np.linalg.eigh(covariance)
    # In directions without variance, keys differ by rounding errors only.
    inverse = np.where(variance > 1e-12 * variance[-1], 1 / np.maximum(variance, 1e-300), 0.0)
    return _unit(((f.offsets[items] @ axes) * inverse) @ axes.T)


def certified_margins(f: ScaledKeys, items: IntArray, queries: FloatArray) -> FloatArray:
    """A rigorous lower bound on the margin of each unit query, with CLAIM_SLACK; −inf where it is not positive.

    Scores are computed in float32 first, for speed: with both factors rounded, a score is off by at most
    gamma32(d + 2) ‖x_i‖ ‖q‖ plus underflow. That bounds all rivals but the strongest, whose score is computed
    again in float64; so the bound is sharp although most scores are not. Rows where the second rival could lower
    the bound by more than a hundredth of the margin are computed again in float64.
    """
    d = queries.shape[1]
    float32_error = rounding_bounds.gamma(d + 4, U32) * f.radius * (1 + 1e-6) + d * 2.0**-120
    # Keys of large norm are the likeliest to score highest, so they come first: rows that lose to one need no more.
    order = np.argsort(-f.norms, kind="stable")
    column = np.empty_like(order)
    column[order] = np.arange(len(order))
    points32, queries32 = f.offsets[order].astype(np.float32), queries.astype(np.float32)
    out = np.full(len(items), -np.inf)
    for start in range(0, len(items), rounding_bounds.TILE_ROWS):
        rows = slice(start, start + rounding_bounds.TILE_ROWS)
        chosen, q = items[rows], queries[rows]
        own, error = np.einsum("ij,ij->i", q, f.offsets[chosen]), f.error(chosen)
        rival, second = _strongest(points32, column[chosen], queries32[rows], own + error + float32_error)
        first = np.einsum("ij,ij->i", q, f.offsets[order[rival]])
        value = own - np.maximum(first, second + float32_error)
        lower = rounding_bounds.rounded_down(value - CLAIM_SLACK * error, f.coarse + f.fine)
        inaccurate = (value < 16 * error) | (own - first > 1.01 * value)
        unclear = np.flatnonzero(inaccurate & (own - first > -error))
        if len(unclear):
            lower[unclear] = rounding_bounds.margin_lower_bounds(f, chosen[unclear], q[unclear], slack=CLAIM_SLACK)
        out[rows] = np.where(lower > 0, lower, -np.inf)
    return out


def _strongest(
    points: NDArray[np.float32], own_columns: IntArray, queries: NDArray[np.float32], lost: FloatArray
) -> tuple[IntArray, FloatArray]:
    """For each query the column of its strongest rival and the score of the second strongest.

    Where a rival scores above `lost`, the search stops early, and the column is that of such a rival.
    """
    rival = np.zeros(len(own_columns), dtype=np.int64)
    best = np.full(len(own_columns), -np.inf, dtype=np.float32)
    second = best.copy()
    left = np.arange(len(own_columns))
    for start, stop in _tiles(len(points)):
        tile = queries[left] @ points[start:stop].T
        rounding_bounds.mask_own_item(tile, own_columns[left], start)
        every, here = np.arange(len(left)), tile.argmax(axis=1)
        score = tile[every, here].copy()
        tile[every, here] = -np.inf
        runner_up = np.maximum(np.minimum(best[left], score), tile.max(axis=1))
        second[left] = np.maximum(second[left], runner_up)
        rival[left] = np.where(score > best[left], here + start, rival[left])
        best[left] = np.maximum(best[left], score)
        left = left[best[left] <= lost[left]]
        if not len(left):
            break
    return rival, second.astype(np.float64)


def _tiles(n: int) -> Iterator[tuple[int, int]]:
    """A narrow tile, after which most losing rows are dropped, then wide ones."""
    cuts = [0, *range(rounding_bounds.TILE_COLUMNS // 8, n, rounding_bounds.TILE_COLUMNS), n]
    return pairwise(cuts)


def _unit(rows: FloatArray) -> FloatArray:
    """Rows of norm 1 up to rounding; rows of zeros stay."""
    size = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return rows / np.where(size > 0, size, 1.0)[:, None]
