"""Rigorous float64 bounds on margins and residuals of many keys, with a-priori rounding errors."""

# Model of arithmetic: u = 2^-53 and gamma(k) = k·u / (1 − k·u). Whatever the order of summation, and with
# or without fused multiply-add, |fl(x·y) − x·y| <= gamma(d) |x|·|y|; a difference is fl(a − b) = (a − b)(1 +
# e) with |e| <= u; bounds compose by gamma(j) + gamma(k) + gamma(j) gamma(k) <= gamma(j + k). Underflow adds
# at most 2^-1022 to each operation (even where subnormals are flushed); every array is first scaled to
# entries of at most 1, so TINY = 2^-1000 covers all of it. Two things it does not cover: squares, which underflow
# far earlier, so norms are taken by `norms`; and a second scaling, which enlarges what the first one lost.

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qkv.core.types import FloatArray, IntArray

U = 2.0**-53
"""Unit roundoff of float64."""
TINY = 2.0**-1000
"""Covers what underflow adds."""
TILE_ROWS, TILE_COLUMNS = 512, 8192
"""Score matrices are computed in tiles of this size, 32 MB each, to bound memory."""


def gamma(k: int, u: float = U) -> float:
    """Bound on the relative error of k roundings; one more is counted for the rounding of the bound itself."""
    return (k + 1) * u / (1 - (k + 1) * u) if (k + 1) * u < 0.5 else float("inf")


@dataclass(frozen=True)
class ScaledKeys:
    """Keys scaled by powers of two and centred, so that products neither overflow nor underflow.

    key = 2^coarse · point, and point = centre + 2^fine · offset up to one rounding of each entry of the offset.

    Attributes:
        points: Scaled keys, entries of at most 1.
        offsets: Points less their mean, scaled again.
        norms: Euclidean norms of the offsets.
        radius: The largest of the norms.
        coarse: Exponent of the first scaling.
        fine: Exponent of the second.
    """

    points: FloatArray
    offsets: FloatArray
    norms: FloatArray
    radius: float
    coarse: int
    fine: int

    def error(self, items: IntArray) -> FloatArray:
        """Bound on the rounding error of a computed margin of a unit query, in offset coordinates.

        With x = offsets: centring and dot product cost gamma(d + 1) |x|·|q| <= gamma(d + 1) ‖x‖ ‖q‖ for each
        of the two scores, their difference one more rounding, the norm of q and the division by it gamma(d +
        4), and the norms used here are themselves low by at most gamma(d + 2). |margin| <= (‖x_j‖ + max
        ‖x_i‖) ‖q‖, so all of it is relative to that sum: gamma(3 d + 16) leaves a few roundings to spare.
        Besides, the coarse scaling moved each entry of a point by up to 2^-1074, which the fine one enlarged.
        """
        d = self.offsets.shape[1]
        lost = d * 2.0 ** min(1000, -1070 - self.fine)
        return gamma(3 * d + 16) * (self.norms[items] + self.radius) + TINY + lost


def scaled_keys(keys: FloatArray) -> ScaledKeys:
    """Scale keys by powers of two (exact, except for entries below 2^-1022 of the largest) and centre them."""
    coarse = _exponent(keys)
    points = np.ldexp(keys, -coarse)
    offsets = points - points.mean(axis=0)
    fine = _exponent(offsets)
    offsets = np.ldexp(offsets, -fine)
    lengths = norms(offsets)
    return ScaledKeys(points, offsets, lengths, float(lengths.max()), coarse, fine)


def margin_lower_bounds(
    keys: FloatArray | ScaledKeys, items: Any, queries: Any, *, claimed: Any = 0.0, slack: float = 1.0
) -> FloatArray:
    """For each pair (item j, query q): a rigorous lower bound on min over i ≠ j of (k_j − k_i)·q / ‖q‖.

    A bound computed with slack=4 is always confirmed with slack=1, in whatever order the library sums: two
    estimates differ by at most two errors. Where a first bound neither confirms nor refutes `claimed`, a sharper
    one is tried. An item out of range, or a query that is zero or not finite, gives −inf.
    """
    f = keys if isinstance(keys, ScaledKeys) else scaled_keys(keys)
    n = len(f.points)
    items, queries = np.asarray(items, dtype=np.int64), np.asarray(queries, dtype=np.float64)
    goals = np.broadcast_to(np.asarray(claimed, dtype=np.float64), items.shape)
    out = np.full(len(items), -np.inf)
    valid = (items >= 0) & (items < n) & np.isfinite(queries).all(axis=1) & (queries != 0).any(axis=1)
    if n == 1:  # there is no other key
        out[valid] = np.inf
        return out
    for rows in _pieces(np.flatnonzero(valid), TILE_ROWS):
        chosen = items[rows]
        q = _rows_to_one(queries[rows])
        size = np.sqrt(np.einsum("ij,ij->i", q, q))
        own = np.einsum("ij,ij->i", q, f.offsets[chosen])
        value = (own - best_other(f.offsets, chosen, q)) / size
        error = f.error(chosen)
        lower = rounded_down(value - slack * error, f.coarse + f.fine)
        with np.errstate(over="ignore"):
            goal = np.ldexp(goals[rows], -f.coarse - f.fine)
        # Margins below 16 errors get the sharper bound too. That band is wide enough for a claim with slack=4 and
        # its check with slack=1 to sharpen the same ones.
        sharpen = (value + error >= goal) & ((lower < goals[rows]) | (value < 16 * error)) & (value > -error)
        for k in np.flatnonzero(sharpen):
            sharp = _sharp_margin(f.points, int(chosen[k]), q[k], float(size[k]), slack)
            lower[k] = max(lower[k], rounded_down(np.array([sharp]), f.coarse)[0])
        out[rows] = lower
    return out


def top_margin_lower_bounds(
    keys: FloatArray,
    queries: FloatArray,
    items: IntArray,
    first: IntArray,
    last: IntArray,
    *,
    slack: float = 1.0,
) -> FloatArray:
    """For each query q of norm 1 that sees keys first to last: a lower bound on min over i ≠ item of (k_item − k_i)·q.

    With keys and query scaled to entries of at most 1, a computed score is off by at most gamma(d) ‖k‖ ‖q‖, and the
    norms used here are low by at most gamma(d + 2). A bound computed with slack=4 is always confirmed with slack=1, in
    whatever order the library sums. A query that is zero gives −inf, one that sees one key gives inf.

    Args:
        keys: (n, d), finite.
        queries: (m, d), finite; each is divided by its norm.
        items: The key whose margin is meant, for each query.
        first: The first key that each query sees.
        last: The last key that each query sees; the item is among them.
        slack: Factor of the rounding error.

    Returns:
        One bound for each query, rounded down.
    """
    coarse, d = _exponent(keys), keys.shape[1]
    points = np.ldexp(keys, -coarse)
    lengths = norms(points)
    columns = np.arange(len(keys))
    out = np.full(len(queries), -np.inf)
    for rows in _pieces(np.flatnonzero((queries != 0).any(axis=1)), TILE_ROWS):
        q = _rows_to_one(queries[rows])
        size = np.sqrt(np.einsum("ij,ij->i", q, q))
        error = slack * gamma(2 * d + 16)
        scores = q @ points.T
        own = scores[np.arange(len(rows)), items[rows]]
        upper = scores + error * size[:, None] * lengths
        hidden = (columns < first[rows, None]) | (columns > last[rows, None]) | (columns == items[rows, None])
        upper[hidden] = -np.inf
        gap = own - error * size * lengths[items[rows]] - upper.max(axis=1)
        gap -= error * (np.abs(own) + size * float(lengths.max())) + TINY  # roundings of these sums themselves
        relative = slack * gamma(d + 8)
        out[rows] = rounded_down(gap / (size * np.where(gap > 0, 1 + relative, 1 - relative)), coarse)
    out[(first == last) & (queries != 0).any(axis=1)] = np.inf
    return out


def best_other(points: FloatArray, items: IntArray, queries: FloatArray) -> FloatArray:
    """The largest score of each query over all points but its own item, tile by tile."""
    best = np.full(len(items), -np.inf)
    for start in range(0, len(points), TILE_COLUMNS):
        tile = queries @ points[start : start + TILE_COLUMNS].T
        mask_own_item(tile, items, start)
        np.maximum(best, tile.max(axis=1), out=best)
    return best


def mask_own_item(tile: NDArray[Any], items: IntArray, start: int) -> None:
    """Set the score of each row's own item to −inf, if it is among these columns."""
    own = np.flatnonzero((items >= start) & (items < start + tile.shape[1]))
    tile[own, items[own] - start] = -np.inf


def residual_upper_bounds(
    keys: FloatArray, items: Any, offsets: Any, indices: Any, weights: Any, *, slack: float = 1.0
) -> FloatArray:
    """For each item j with weights w: a rigorous upper bound on ‖Σ w_i (k_i − k_j)‖ / Σ w_i, so on any margin of j.

    For any unit q, min over i of (k_j − k_i)·q <= Σ w_i (k_j − k_i)·q / Σ w_i <= that residual
    (Cauchy–Schwarz). Row r owns indices[offsets[r]:offsets[r + 1]]. Weights that are negative, not finite or
    all zero, and indices out of range or equal to the item, prove nothing: inf.
    """
    items, offsets, indices = (np.asarray(a, dtype=np.int64) for a in (items, offsets, indices))
    weights = np.asarray(weights, dtype=np.float64)
    n, d = keys.shape
    coarse = _exponent(keys)
    points = np.ldexp(keys, -coarse)
    out = np.full(len(items), np.inf)
    counts = np.diff(offsets)
    if len(offsets) != len(items) + 1 or (counts < 0).any() or offsets[0] or offsets[-1] != len(indices):
        return out
    owner = np.repeat(np.arange(len(items)), counts)
    bad = ~np.isfinite(weights) | (weights < 0) | (indices < 0) | (indices >= n) | (indices == items[owner])
    valid = (counts > 0) & (items >= 0) & (items < n)
    valid[owner[bad]] = False
    valid[valid] = np.maximum.reduceat(np.append(weights, 0.0), offsets[:-1])[valid] > 0
    longest = int(counts.max(initial=1))
    for rows in _pieces(np.flatnonzero(valid), max(1, 2**21 // (longest * d))):
        starts = np.concatenate([[0], np.cumsum(counts[rows])])
        entry = np.repeat(offsets[rows] - starts[:-1], counts[rows]) + np.arange(starts[-1])
        item, other, w = np.repeat(items[rows], counts[rows]), indices[entry], weights[entry]
        w = np.ldexp(w, -np.repeat(_exponents(np.maximum.reduceat(w, starts[:-1])), counts[rows]))
        y = points[other] - points[item]
        total = np.add.reduceat(w, starts[:-1])
        # Each entry of Σ w y: one rounding for y, one for the product, m − 1 for the sum.
        shift = np.abs(np.add.reduceat(w[:, None] * y, starts[:-1]))
        spread = np.add.reduceat(w[:, None] * np.abs(y), starts[:-1])
        shift += slack * gamma(longest + 4) * spread + TINY
        largest = shift.max(axis=1)
        size = largest * np.sqrt(np.einsum("ij,ij->i", shift / largest[:, None], shift / largest[:, None]))
        size *= (1 + slack * gamma(d + longest + 12)) / total
        # Compare with the weights as given: scaling may have made a small one underflow, but its key still counts.
        same = np.logical_and.reduceat((keys[other] == keys[item]).all(axis=1) | (weights[entry] == 0), starts[:-1])
        out[rows] = np.where(same, 0.0, np.nextafter(np.ldexp(size, coarse), np.inf))
    return out


def _sharp_margin(points: FloatArray, item: int, q: FloatArray, size: float, slack: float) -> float:
    """The margin from differences: the error is then relative to the distance of the other key.

    fl((p_i − p_j)·q) is off by gamma(d + 1) |p_i − p_j|·|q|, which is small for near neighbours of p_j and
    for queries that are nonzero in small coordinates only.
    """
    worst = np.inf
    for start in range(0, len(points), TILE_COLUMNS):
        y = points[start : start + TILE_COLUMNS] - points[item]
        gap = -(y @ q) - slack * gamma(len(q) + 4) * (np.abs(y) @ np.abs(q)) - TINY
        if start <= item < start + TILE_COLUMNS:
            gap[item - start] = np.inf
        worst = min(worst, float(gap.min()))
    relative = slack * gamma(len(q) + 6)
    return worst / (size * (1 + relative)) if worst > 0 else worst / (size * (1 - relative))


def rounded_down(values: FloatArray, exponent: int) -> FloatArray:
    """2^exponent times values, rounded down: below the largest float64 where the values are finite."""
    top = np.finfo(np.float64).max
    with np.errstate(over="ignore", under="ignore"):
        return np.nextafter(np.clip(np.ldexp(values, exponent), -np.inf, top), -np.inf)


def norms(rows: FloatArray) -> FloatArray:
    """Euclidean norms of rows with a relative error of at most gamma(d + 4) and an absolute one of 2^-1022.

    Each row is scaled by a power of two first. Squares that underflow then are of entries below 2^-511 of the largest.
    A norm beyond the largest float64 is infinite.
    """
    exponents = _exponents(np.abs(rows).max(axis=1, initial=0.0))
    unit = np.ldexp(rows, -exponents[:, None])
    with np.errstate(over="ignore"):  # a norm beyond the largest number is infinite
        return np.ldexp(np.sqrt(np.einsum("ij,ij->i", unit, unit)), exponents)


def _exponent(array: FloatArray) -> int:
    return int(np.frexp(np.abs(array).max(initial=0.0))[1])


def _exponents(array: FloatArray) -> NDArray[np.intc]:
    return np.frexp(array)[1]


def _rows_to_one(array: FloatArray) -> FloatArray:
    return np.ldexp(array, -_exponents(np.abs(array).max(axis=1))[:, None])


def _pieces(rows: IntArray, size: int) -> Iterator[IntArray]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]
