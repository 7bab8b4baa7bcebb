"""Rigorous float64 path for wirings of many tokens: distances, outputs and norm bounds with rounding bounds."""

# The model of arithmetic is that of core/rounding_bounds.py: u = 2^-53, gamma(k) bounds k roundings in whatever order,
# and underflow adds at most 2^-1022 to an operation. Tokens and matrices are first scaled by powers of two, which is
# exact but for entries below 2^-1022 of the largest, to entries below 2, so UNDERFLOW covers what it adds to a score or
# a sum of up to 2^20 terms; squares underflow far earlier, so each norm is that of a scaled row (`norms`). Multipliers
# are scaled to at most 1 too: the inequality that they make is the same, and any nonnegative numbers make one. Every
# bound is doubled, which covers the roundings made while computing the bounds themselves. Where a number overflows, the
# result is NaN and proves nothing.
#
# Scores. Adding one vector to all keys of a sequence changes no weight, so the tokens on the side of the keys are
# taken relative to their mean: y_j = fl(x_j - c), with a relative error of u. For q_i = Q x_i and k_j = K y_j the
# errors have norms of at most gamma(d) ‖|Q||x_i|‖ and gamma(d+1) ‖|K||y_j|‖, and their product has one of at most
# gamma(h) ‖q_i‖‖k_j‖.
#
# Weights. exp of a score with an absolute error e has a relative one of expm1(e) and a few ulps, a quotient by the sum
# twice that and m roundings. The total variation of weights α from wanted ones w, of sum ω, is
#     ½Σ|α_j - w_j| = Σ (α_j - w_j)+ + (ω - 1)/2,
# a sum of small positive terms: of the leak, and of the wanted items that get too much.

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from flint import arb

from qkv.core.rounding_bounds import U, gamma, norms
from qkv.core.types import BoolArray, FloatArray, IntArray
from qkv.design.certificates.ball_arithmetic import Ball
from qkv.design.certificates.statements.float_bounds import EXP_ULPS, MAX_SCORE_ERROR
from qkv.design.certificates.statements.rules import Rules

UNDERFLOW = 2.0**-940
TILE_NUMBERS = 1 << 21
"""Scores are computed in tiles of this many numbers, 16 MB, to bound memory."""
MAX_EXPONENT = 750.0
"""exp of less than minus this is 0 in float64."""


@dataclasses.dataclass(frozen=True, eq=False)
class Tile:
    """Some rules of one sequence.

    Attributes:
        rows: The rules.
        readers: Their tokens.
        start: First token of the sequence.
        stop: The token after its last.
        wanted: Wanted weights, (rules, tokens of the sequence).
        rest: True for the tokens that are seen and not wanted.
        seen: True for the tokens that are seen.
    """

    rows: IntArray
    readers: IntArray
    start: int
    stop: int
    wanted: FloatArray
    rest: BoolArray
    seen: BoolArray


def tiles(rules: Rules) -> Iterator[Tile]:
    """All rules, sequence by sequence, in pieces that bound memory."""
    for all_rows, start, stop in rules.sequences():
        step = max(1, TILE_NUMBERS // (stop - start))
        for at in range(0, len(all_rows), step):
            rows = all_rows[at : at + step]
            seen = rules.visible(rows, start, stop)
            wanted = np.zeros(seen.shape)
            for place, row in enumerate(rows):
                entries = rules.entries(int(row))
                wanted[place, rules.items[entries] - start] = rules.weights[entries]
            yield Tile(rows, rules.readers[rows], start, stop, wanted, seen & (wanted == 0), seen)


class Readings:
    """The weights that Q and K give, tile by tile, with bounds on their relative errors."""

    def __init__(self, x: FloatArray, q: FloatArray, k: FloatArray) -> None:
        self.x, self.exponent = scaled(x)
        self.q, q_exponent = scaled(q)
        self.k, k_exponent = scaled(k)
        self.score_exponent = 2 * self.exponent + q_exponent + k_exponent
        self._home: tuple[int, int] | None = None

    def tokens(self, tile: Tile) -> FloatArray:
        """The tokens of the tile's sequence relative to their mean, in units of 2^exponent."""
        if self._home != (tile.start, tile.stop):
            self._home = (tile.start, tile.stop)
            self._centred, self.lengths = centred(self.x[tile.start : tile.stop])
            self._keys = self._centred @ self.k.T
            self._key_size = _largest_norm(self._keys)
            self._key_spread = _largest_norm(np.abs(self._centred) @ np.abs(self.k).T)
        return self._centred

    def raw(self, tile: Tile) -> tuple[FloatArray, FloatArray]:
        """Exponentials of the scores relative to the largest, 0 where nothing is seen, and their relative errors."""
        self.tokens(tile)
        d, h = self.x.shape[1], len(self.q)
        readers = self.x[tile.readers]
        queries = readers @ self.q.T
        size, spread = norms(queries), norms(np.abs(readers) @ np.abs(self.q).T)
        error = gamma(h + 2) * size * self._key_size
        error += gamma(d + 4) * (spread * (self._key_size + self._key_spread) + self._key_spread * size)
        error = np.ldexp(2 * error + UNDERFLOW, self.score_exponent)
        scores = np.ldexp(queries @ self._keys.T, self.score_exponent)
        scores[~tile.seen] = -np.inf
        scores -= scores.max(axis=1, keepdims=True)
        lowest = -np.min(scores, axis=1, where=tile.seen, initial=0.0)
        error += U * np.minimum(lowest, MAX_EXPONENT)
        relative = np.where(error < MAX_SCORE_ERROR, np.expm1(error) + 2 * EXP_ULPS * U, np.inf)
        return np.exp(scores, out=scores), relative


def scaled(a: FloatArray) -> tuple[FloatArray, int]:
    """The array with entries below 2, and the exponent of the power of two by which it was divided."""
    exponent = int(np.frexp(np.abs(a).max())[1]) - 1
    return np.ldexp(a, -exponent), exponent


def centred(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rows relative to their mean, and bounds on their norms from above."""
    y = x - x.mean(axis=0)
    return y, norms(y) * (1 + 2 * gamma(x.shape[1] + 4)) + UNDERFLOW


def _largest_norm(a: FloatArray) -> float:
    return float(norms(a).max()) * (1 + 2 * gamma(a.shape[1] + 4))


def distances(
    tile: Tile, raw: FloatArray, relative: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Weights, bounds on their relative errors, total variation of each rule, and its error."""
    m = raw.shape[1]
    alpha = raw / raw.sum(axis=1, keepdims=True)
    kappa = 2.1 * relative + 2 * gamma(m + 4)
    leak = np.sum(alpha, axis=1, where=tile.rest)
    inside = tile.wanted > 0
    over = np.where(inside, alpha - tile.wanted, 0.0)
    over_error = np.where(inside, 2 * (kappa[:, None] * alpha + 2 * U * np.abs(over)), 0.0)
    counted = inside & (over > -over_error)
    count = inside.sum(axis=1)
    excess = tile.wanted.sum(axis=1) - 1  # exact for one item, by Sterbenz
    value = leak + np.sum(over, axis=1, where=counted & (over > 0)) + 0.5 * excess
    error = 2 * kappa * leak + np.sum(over_error, axis=1, where=counted)
    error += np.where(count > 1, 2 * gamma(int(count.max()) + 4), 0.0) + 4 * gamma(m + 8) * np.abs(value) + UNDERFLOW
    return alpha, kappa, value, error


class Outputs:
    """What V makes of weights, and its distance from what should be written."""

    def __init__(self, x: FloatArray, exponent: int, v: FloatArray, writes: FloatArray) -> None:
        self.v, v_exponent = scaled(v)
        self.exponent = exponent + v_exponent
        self.values = x @ self.v.T
        self.sizes = norms(self.values)
        self.errors = 2 * gamma(x.shape[1] + 4) * norms(np.abs(x) @ np.abs(self.v).T) + UNDERFLOW
        self.writes = np.ldexp(writes, -self.exponent)

    def distance(self, tile: Tile, weights: FloatArray, relative: FloatArray | float) -> tuple[FloatArray, FloatArray]:
        """|Σ weights_j V x_j - y| of each rule in units of 2^exponent, and its error; that of weights is `relative`."""
        part = slice(tile.start, tile.stop)
        m = tile.stop - tile.start
        off = weights @ self.values[part] - self.writes[tile.rows]
        value = norms(off)
        error = (relative + 2 * gamma(m + 4)) * (weights @ self.sizes[part]) + weights @ self.errors[part]
        return value, 2 * error + 4 * gamma(off.shape[1] + 8) * value + UNDERFLOW


class MatrixBound:
    """The sum over rules of inequalities <x gᵀ, W> >= b, with g = Σ c_j y_j and Σ c_j = 0, and its bound on |W|."""

    def __init__(self, x: FloatArray, exponent: int, rules: int) -> None:
        self.x, self.exponent, self.rules = x, exponent, rules
        self.total = np.zeros((x.shape[1], x.shape[1]))
        self.error = 0.0
        self.b, self.b_error, self.b_size = 0.0, 0.0, 0.0

    def add(
        self,
        tile: Tile,
        tokens: FloatArray,
        lengths: FloatArray,
        coefficients: FloatArray,
        doubt: FloatArray,
        b: FloatArray,
        b_error: FloatArray,
    ) -> None:
        """Add the rules of a tile.

        Args:
            tile: The rules.
            tokens: Tokens of the sequence, relative to their mean.
            lengths: Bounds on their norms.
            coefficients: c_j, each with a relative error of at most gamma(m + 12).
            doubt: Bounds on further errors of the coefficients, each times the norm of its token, summed per rule.
            b: Right side of each rule.
            b_error: Bounds on its errors.
        """
        m = len(tokens)
        g = coefficients @ tokens
        readers = self.x[tile.readers]
        sizes = norms(readers) * (1 + 2 * gamma(readers.shape[1] + 4))
        error = 2 * gamma(2 * m + 40) * (np.abs(coefficients) @ lengths) + 2 * doubt + UNDERFLOW
        error += 2 * gamma(2 * self.rules + 40) * norms(g)
        self.total += readers.T @ g
        self.error += 2 * float(sizes @ error)
        self.b += float(b.sum())
        self.b_error += 2 * float(b_error.sum())
        self.b_size += float(np.abs(b).sum())

    def at_least(self) -> float:
        """A number below the bound b/|G|; NaN where it proves nothing."""
        size = float(norms(self.total.reshape(1, -1))[0])
        size = size * (1 + 2 * gamma(self.total.size + 8)) + 2 * self.error + UNDERFLOW
        b = self.b - 2 * self.b_error - 4 * gamma(2 * self.rules + 40) * self.b_size - UNDERFLOW
        if not (math.isfinite(size) and math.isfinite(b) and b > 0):
            return math.nan
        quotient = b / size * (1 - 16 * U)
        try:
            return math.nextafter(math.ldexp(quotient, -2 * self.exponent), 0.0)
        except OverflowError:
            return math.nan


def exact_ratios(
    tile: Tile, rules: Rules, raw: FloatArray, multipliers: FloatArray, tol: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Coefficients, extra errors (without the tokens' norms), b and its error, for exact ratios and a leak within tol.

    The mix of a rule is the softmax of its scores over the other tokens as it was computed: any distribution will do.
    The multiplier of a rule's first item is that of the leak; the others are those of the ratios.
    """
    m = raw.shape[1]
    p = np.where(tile.rest, raw, 0.0)
    total = p.sum(axis=1, keepdims=True)
    p = np.divide(p, total, out=np.zeros_like(p), where=total > 0)
    usable = (total[:, 0] > 0) | ~tile.rest.any(axis=1)
    edge = math.log(tol) - math.log1p(-tol)
    logs = np.log(np.where(p > 0, p, 1.0))
    entropy = -np.einsum("ij,ij->i", p, logs)
    leak = np.zeros(len(p))
    coefficients = np.zeros_like(p)
    doubt, b, b_error = np.zeros(len(p)), np.zeros(len(p)), np.zeros(len(p))
    for place, row in enumerate(tile.rows):
        entries = rules.entries(int(row))
        items, weights, values = rules.items[entries] - tile.start, rules.weights[entries], multipliers[entries]
        leak[place] = values[0] if tile.rest[place].any() else 0.0
        if not usable[place]:
            b[place] = np.nan
            continue
        ratios, log = values[1:], np.log(weights)
        coefficients[place, items[1:]] = ratios
        coefficients[place, items[0]] = leak[place] - float(ratios.sum())
        whole = math.log1p(math.fsum([*weights.tolist(), -1.0]))
        b[place] = leak[place] * (log[0] - whole + entropy[place] - edge) + float(ratios @ (log[1:] - log[0]))
        size = leak[place] * (abs(log[0]) + abs(whole) + entropy[place] + abs(edge) + 1)
        size += float(np.abs(ratios) @ (np.abs(log[1:]) + abs(log[0])))
        b_error[place] = 2 * gamma(m + len(items) + 80) * size
        if len(ratios):
            doubt[place] = gamma(len(items) + 4) * (leak[place] + float(np.abs(ratios).sum()))
    coefficients -= leak[:, None] * p
    return coefficients, doubt, b, b_error


def within_tol(
    tile: Tile, mix: FloatArray, multipliers: FloatArray, tol: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """As `exact_ratios`, for every W within tol in total variation; with mix and multipliers of the tile as tables."""
    m = mix.shape[1]
    total = mix.sum(axis=1, keepdims=True)
    p = np.divide(mix, total, out=np.zeros_like(mix), where=total > 0)
    lam = multipliers.sum(axis=1)
    used = multipliers > 0
    whole = tile.wanted.sum(axis=1)
    most = tol + (whole - 1) / 2
    logs = np.log(np.where(p > 0, p, 1.0))
    entropy = -np.einsum("ij,ij->i", p, logs)
    log_wanted = np.log(np.where(used, tile.wanted, 1.0))
    z = np.divide(most[:, None], tile.wanted, out=np.zeros_like(mix), where=used)
    z_error = np.where(used, 2 * (gamma(m + 8) / np.where(used, tile.wanted, 1.0) + 4 * U * z), 0.0)
    room = 1 - z - 2 * z_error
    corner = multipliers * np.log1p(-np.where(room > 0, z, 0.0))
    corner_error = np.where(
        room > 0, 2 * multipliers * (z_error / np.where(room > 0, room, 1.0)), np.where(used, np.inf, 0.0)
    )
    corner_error = np.where(used, corner_error + 2 * gamma(40) * np.abs(corner), 0.0)
    worst = (corner - np.where(used, corner_error, 0.0)).min(axis=1)
    gain = np.einsum("ij,ij->i", multipliers, log_wanted)
    b = lam * entropy + gain + worst
    size = lam * (entropy + 1) + np.einsum("ij,ij->i", multipliers, np.abs(log_wanted)) + np.abs(worst)
    coefficients = multipliers - lam[:, None] * p
    # A token may have both a multiplier and a share of the mix: the error is relative to the sum of both, not to the
    # difference. The sum of the multipliers is rounded too.
    doubt = gamma(m + 12) * 2 * lam
    silent = lam == 0
    b[silent] = 0.0
    coefficients[silent] = 0.0
    return coefficients, doubt, b, np.where(silent, 0.0, 2 * gamma(m + 80) * size)


def balls(value: FloatArray, error: FloatArray, exponent: int = 0) -> list[Ball]:
    """Balls around numbers in units of 2^exponent; NaN, which proves nothing, where float64 overflowed."""
    unit = arb(2) ** exponent
    return [arb(float(v), float(e)) * unit if np.isfinite(v) and np.isfinite(e) else arb.nan()
            for v, e in zip(value, error, strict=True)]  # fmt: skip


def lower_bound_ball(low: float, claims: list[float]) -> Any:
    """A proved lower bound where it proves the claim; elsewhere NaN, which proves nothing."""
    proves = math.isfinite(low) and low > 0 and all(low >= c for c in claims)
    return arb(low) if proves else arb.nan()
