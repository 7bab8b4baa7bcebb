"""Scores between all tokens and all positions of a vocabulary, in float64 and float32 with rounding bounds."""

# A token u at position i is x = e_u + p_i, so its score for a token v at position j is a sum of four tables:
#     (Q x)·(K y) = T[u, v] + A[u, j] + B[i, v] + C[i, j],   T = (Q e_u)·(K e_v),  A = (Q e_u)·(K p_j),  …
# Products of matrices carry |error| <= gamma(k) |x|·|y| entry by entry (core/rounding_bounds.py has the model of
# arithmetic). `Rows` keeps one bound on the Euclidean error of a row, and one on the length of a row, for all rows; the
# Cauchy-Schwarz inequality turns both into a bound on the error of every score. Underflow is covered by TINY.

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from qkv.core.rounding_bounds import TINY, U, gamma
from qkv.core.types import BoolArray, FloatArray

U32 = 2.0**-24
TINY32 = 2.0**-100
"""Covers what underflow adds to a float32 product of vectors with entries of at most 1."""
BLOCK_ROWS = 512
NEGLIGIBLE = 1e-9
"""A table whose entries are bounded by this is not computed: the bound is used for every entry."""


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """Vectors as rows, with bounds that hold for every row.

    Attributes:
        values: The computed rows, (n, h).
        error: Bound on the Euclidean distance of every true row from the computed one.
        size: Bound on the length of every true and every computed row.
    """

    values: FloatArray
    error: float
    size: float

    @classmethod
    def exact(cls, values: FloatArray) -> Rows:
        """Rows that are known exactly."""
        return cls(values, 0.0, _longest(values))

    def times(self, matrix: FloatArray) -> Rows:
        """The rows multiplied by a matrix; narrower rows stand for rows with zeros at their end."""
        m = matrix[:, : self.values.shape[1]]
        values = self.values @ m.T
        rounding = gamma(m.shape[1] + 2) * _longest(np.abs(self.values) @ np.abs(m).T)
        error = (self.error * _longest(m.reshape(1, -1)) + rounding) * (1 + 8 * U) + TINY
        return Rows(values, error, (_longest(values) + error) * (1 + 4 * U))

    def plus(self, other: Rows) -> Rows:
        """The sums of the rows of both."""
        values = self.values + other.values
        error = (self.error + other.error + 2 * U * (self.size + other.size)) * (1 + 8 * U) + TINY
        return Rows(values, error, (self.size + other.size) * (1 + 4 * U))


def _longest(values: FloatArray) -> float:
    """Bound on the length of every row, not below the true lengths."""
    scale = float(np.abs(values).max(initial=0.0))
    if not 0 < scale < np.inf:
        return scale
    unit = values / scale  # so that squares neither overflow nor underflow
    longest = float(np.sqrt(np.einsum("ij,ij->i", unit, unit).max()))
    return longest * scale * (1 + gamma(values.shape[1] + 8)) + TINY


def table_error(queries: Rows, keys: Rows) -> float:
    """Bound on the error of every computed score of these queries and keys."""
    h = queries.values.shape[1]
    crossed = queries.error * keys.size + queries.size * keys.error + queries.error * keys.error
    return (crossed + gamma(h + 4) * queries.size * keys.size) * (1 + 16 * U) + TINY


@dataclasses.dataclass(frozen=True, eq=False)
class TokenTable:
    """What the bounds need of the table T of scores between tokens, for every token u.

    Attributes:
        own: T[u, u], computed.
        rival: Bound from above on T[u, v] over all v other than u, but for the error of float64.
        lowest: Bound from below on T[u, v] over all v, but for the same error.
    """

    own: FloatArray
    rival: FloatArray
    lowest: FloatArray


def token_table(queries: Rows, keys: Rows, slack: float, others: FloatArray, reading: BoolArray) -> TokenTable:
    """The table of scores between tokens: float32 for every entry, float64 where the smallest margins are.

    Args:
        queries: Q e_u for every token.
        keys: K e_v for every token.
        slack: Factor of the float32 error.
        others: One number per token; rows where own - rival or others - rival may be smallest are computed in float64.
        reading: The tokens that are asked about.

    Returns:
        The bounds; the error of float64 is not in them, and is `table_error`.
    """
    a, c = queries.values, keys.values
    own = np.einsum("ij,ij->i", a, c)
    if queries.size * keys.size <= NEGLIGIBLE:
        every = np.full(len(a), queries.size * keys.size)
        return TokenTable(own, every, -every)
    sizes = [float(np.abs(m).max()) or 1.0 for m in (a, c)]  # rows that are all 0 stay so
    small = [(m / s).astype(np.float32) for m, s in zip((a, c), sizes, strict=True)]
    unit = sizes[0] * sizes[1]
    # Division by the size, conversion and the product: 3 more roundings in each factor than the h of the sum.
    lengths = [_longest(m) / s for m, s in zip((a, c), sizes, strict=True)]
    error = slack * (gamma(a.shape[1] + 8, U32) * lengths[0] * lengths[1] + TINY32) * unit * (1 + 16 * U)
    highest, lowest = np.empty(len(a)), np.empty(len(a))
    for start in range(0, len(a), BLOCK_ROWS):
        rows = slice(start, min(start + BLOCK_ROWS, len(a)))
        highest[rows], lowest[rows] = _extremes(small[0][rows], small[1], start)
    highest, lowest = highest * unit, lowest * unit
    for reference in (own, others):
        gap = np.where(reading, reference - highest, np.inf)
        for start in range(0, len(chosen := np.flatnonzero(gap - error <= gap.min() + error)), BLOCK_ROWS):
            rows64 = chosen[start : start + BLOCK_ROWS]
            exact = a[rows64] @ c.T
            exact[np.arange(len(rows64)), rows64] = -np.inf
            highest[rows64] = np.maximum(exact.max(axis=1), -np.finfo(np.float64).max) - error
    return TokenTable(own, highest + error, np.minimum(lowest, own) - error)


def _extremes(rows: Any, keys: Any, start: int) -> tuple[Any, Any]:
    """The largest score of each row over all keys but its own, and the smallest over all."""
    scores = rows @ keys.T
    lowest = scores.min(axis=1)
    scores[np.arange(len(rows)), np.arange(start, start + len(rows))] = -np.inf
    highest = scores.max(axis=1)
    return np.maximum(highest, np.finfo(np.float32).min), lowest
