"""Queries that cost one product: which keys does a guess at their query already select?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from qkv.core import rounding_bounds
from qkv.core.rounding_bounds import Floats, Ints, ScaledKeys

U32 = 2.0**-24
SLACK = 4.0
"""Claims leave room for a recheck that sums in another order: see rounding.margins."""


def centred(f: ScaledKeys, items: Ints) -> Floats:
    """The direction of each key from the mean: x_j·x_j beats x_i·x_j unless x_i reaches as far that way."""
    return _unit(f.offsets[items])


def whitened(f: ScaledKeys, items: Ints) -> Floats:
    """The same guess where the cloud of keys is made round, so that no long direction drowns the others.

    Selecting in coordinates z = C^(-1/2) x by the query z_j is selecting in x by C^(-1) x_j.
    """
    covariance = f.offsets.T @ f.offsets / len(f.offsets)
    variance, axes = np.linalg.eigh(covariance)
    # Directions without spread tell keys apart by nothing but rounding.
    inverse = np.where(variance > 1e-12 * variance[-1], 1 / np.maximum(variance, 1e-300), 0.0)
    return _unit(((f.offsets[items] @ axes) * inverse) @ axes.T)


def claims(f: ScaledKeys, items: Ints, queries: Floats) -> Floats:
    """A lower bound on the margin of each unit query, good enough to claim; −inf where there is none.

    Single precision goes first, for speed: with both factors rounded to it, a score is off by at most
    gamma32(d + 2) ‖x_i‖ ‖q‖ plus underflow. That bounds all rivals but the strongest, whose score is computed
    again in double precision; so the claim is sharp though most scores are not. Rows where the second rival
    could cost more than a hundredth of the margin are done again in double precision.
    """
    d = queries.shape[1]
    blur = rounding_bounds.gamma(d + 4, U32) * f.radius * (1 + 1e-6) + d * 2.0**-120
    # Far keys are the likeliest to win, so they come first: rows that lose to one of them are done with.
    order = np.argsort(-f.norms, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    points32, queries32 = f.offsets[order].astype(np.float32), queries.astype(np.float32)
    out = np.full(len(items), -np.inf)
    for start in range(0, len(items), rounding_bounds.ROWS):
        rows = slice(start, start + rounding_bounds.ROWS)
        chosen, q = items[rows], queries[rows]
        own, error = np.einsum("ij,ij->i", q, f.offsets[chosen]), f.error(chosen)
        rival, second = _strongest(points32, place[chosen], queries32[rows], own + error + blur)
        first = np.einsum("ij,ij->i", q, f.offsets[order[rival]])
        value = own - np.maximum(first, second + blur)
        lower = rounding_bounds.to_keys(value - SLACK * error, f.coarse + f.fine)
        dull = (value < 16 * error) | (own - first > 1.01 * value)
        unclear = np.flatnonzero(dull & (own - first > -error))
        if len(unclear):
            lower[unclear] = rounding_bounds.margins(f, chosen[unclear], q[unclear], slack=SLACK)
        out[rows] = np.where(lower > 0, lower, -np.inf)
    return out


def _strongest(
    points: NDArray[np.float32], places: Ints, queries: NDArray[np.float32], lost: Floats
) -> tuple[Ints, Floats]:
    """For each query the place of its best rival and the score of the second best; or, where some rival
    scores above `lost`, the place of such a rival."""
    rival = np.zeros(len(places), dtype=np.int64)
    best = np.full(len(places), -np.inf, dtype=np.float32)
    second = best.copy()
    left = np.arange(len(places))
    for start, stop in _tiles(len(points)):
        tile = queries[left] @ points[start:stop].T
        rounding_bounds.hide(tile, places[left], start)
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
    """A narrow tile, to be rid of the losers, and then wide ones."""
    cuts = [0, *range(rounding_bounds.COLUMNS // 8, n, rounding_bounds.COLUMNS), n]
    return pairwise(cuts)


def _unit(rows: Floats) -> Floats:
    """Rows of norm 1 up to rounding; rows of zeros stay."""
    size = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return rows / np.where(size > 0, size, 1.0)[:, None]
