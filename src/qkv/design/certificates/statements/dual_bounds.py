"""Lower bounds on norms by duality: linear inequalities that every query, or every W, that reads as wanted meets."""

# Both inequalities rest on log Σ exp(s_j) >= p·s + H(p), for any distribution p with entropy H(p). A `mix` m of sum f
# stands for f p, so that sums of floats that cancel do so exactly. With scores s_i = k_i·q they read g·q >= b, hence
# |q| >= b/|g|, and where g = 0 < b no query exists at all. For W the scores are x·W k_i = <x k_iᵀ, W>, so that the sum
# over rules gives |W| >= Σ b / |Σ x gᵀ|.
#
# Exact ratios. Write a for the first wanted item, W for the sum of the wanted weights (1, but for rounding), and
# L = log(tol/(1-tol)). A leak of at most tol means lse(s_rest) - s_a <= L - log(w_a/W), so for any p on the others
#     s_a - p·s_rest >= log(w_a/W) + H(p) - L,
# and exact ratios mean s_i - s_a = log(w_i/w_a). With factors f >= 0 and ν_i of any sign,
#     g = f k_a - Σ m_j k_j + Σ ν_i (k_i - k_a),   b = f (log(w_a/W) + H(p) - L) + Σ ν_i log(w_i/w_a).
#
# Within tol in total variation. Let T be the largest sum of the shortfalls (w_i - α_i)+ that a total variation of tol
# allows: T = tol + (W - 1)/2. Let δ_i be the shortfalls, so that δ >= 0, Σ δ_i <= T, δ_i <= w_i and α_i >= w_i - δ_i.
# With Z = Σ exp(s_j) over all items the last one reads log Z - s_i <= -log(w_i - δ_i). For any λ >= 0 on the wanted
# items, with sum Λ, and any distribution p,
#     λ·s - Λ p·s >= Λ H(p) + Σ λ_i log(w_i - δ_i).
# The right side is concave in δ, hence smallest at a corner of the set of shortfalls, where one item has all of T:
#     λ·s - Λ p·s >= Λ H(p) + Σ λ_i log w_i + min_j λ_j log(1 - T/w_j),
# provided that λ_j = 0 wherever w_j <= T. Everything is multiplied by the sum of the mix.

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from flint import arb, ctx

from qkv.core.types import FloatArray
from qkv.design.certificates.ball_arithmetic import Ball, combine, flat, matrix, norm
from qkv.design.certificates.statements.base import InvalidCertificate

EXACT_BITS = 512
"""Precision of g, which is then exactly 0 where the numbers that cancel are floats of similar size."""


def exact_ratios_inequality(
    keys: FloatArray,
    items: Sequence[int],
    wanted: Sequence[float] | FloatArray,
    ratios: Sequence[Ball],
    rest: Sequence[int],
    mix: Sequence[Ball],
    tol: float,
) -> tuple[list[Ball], Ball]:
    """g and b for exact ratios and a leak of at most tol.

    Args:
        keys: The keys of all items.
        items: The wanted items.
        wanted: Their weights.
        ratios: ν of every wanted item; that of the first has no effect.
        rest: Other items.
        mix: m of those items.
        tol: Largest leak.

    Returns:
        The entries of g, and b.
    """
    logs = [arb(float(w)).log() for w in wanted]
    factor = sum(mix, arb(0))
    b = sum((v * (log - logs[0]) for v, log in zip(ratios, logs, strict=True)), arb(0))
    if len(rest):
        edge = (arb(tol) / (1 - arb(tol))).log()
        whole = sum((arb(float(w)) for w in wanted), arb(0))
        b = b + factor * (logs[0] - whole.log() - edge) + sum((_entropy_term(m, factor) for m in mix), arb(0))
    coefficients = [*ratios, factor - sum(ratios, arb(0)), *(-m for m in mix)]
    return combine(coefficients, keys[[*items, items[0], *rest]]), b


def total_variation_inequality(
    keys: FloatArray, wanted: FloatArray, multipliers: FloatArray, others: Sequence[int], mix: FloatArray, tol: float
) -> tuple[list[Ball], Ball]:
    """g and b for every query within tol in total variation.

    Args:
        keys: The keys of all items.
        wanted: Wanted weight of every item, mostly 0.
        multipliers: λ of every item, 0 where nothing is wanted.
        others: Items of the mix.
        mix: Its weights.
        tol: Largest total variation.

    Returns:
        The entries of g, and b.

    Raises:
        InvalidCertificate: If a multiplier stands on a wanted weight that is not above T.
    """
    inside = [int(i) for i in np.flatnonzero(multipliers > 0)]
    want = {i: arb(float(wanted[i])) for i in inside}
    total = sum((arb(float(w)) for w in wanted[wanted > 0]), arb(0))
    most = arb(tol) + (total - 1) / 2
    if any(not most < w for w in want.values()):
        raise InvalidCertificate("a multiplier stands on a wanted weight that is not above tol")
    lam = {i: arb(float(multipliers[i])) for i in inside}
    mu = [(j, arb(float(m))) for j, m in zip(others, mix, strict=True) if m > 0]
    with ctx.workprec(max(ctx.prec, EXACT_BITS)):
        lam_sum, mu_sum = sum(lam.values(), arb(0)), sum((m for _, m in mu), arb(0))
        coefficients = [*(mu_sum * v for v in lam.values()), *(-lam_sum * m for _, m in mu)]
        g = combine(coefficients, keys[[*lam, *(j for j, _ in mu)]])
    entropy = -sum((m * (m / mu_sum).log() for _, m in mu), arb(0))
    gain = sum((v * want[i].log() for i, v in lam.items()), arb(0))
    corners = [v * (1 - most / want[i]).log() for i, v in lam.items()]
    worst = corners[0] if corners else arb(0)
    for corner in corners[1:]:
        worst = worst.min(corner)
    return g, lam_sum * entropy + mu_sum * (gain + worst)


def norm_bound(g: Iterable[Ball], b: Ball) -> Ball:
    """The bound b/|g| on the norm: infinity where g = 0 < b."""
    with ctx.workprec(max(ctx.prec, EXACT_BITS)):
        size = norm(g)
    if size.is_zero():
        return arb.pos_inf() if b > 0 else arb(0)
    return b / size


def matrix_norm_bound(x: FloatArray, inequalities: Iterable[tuple[int, list[Ball], Ball]]) -> Ball:
    """The bound on |W| from the inequalities (token, g, b) of rules, summed: Σ b / |Σ x gᵀ|."""
    b, total = arb(0), matrix(np.zeros((x.shape[1], x.shape[1])))
    for token, g, gain in inequalities:
        b = b + gain
        with ctx.workprec(max(ctx.prec, EXACT_BITS)):
            total = total + matrix(x[token]) * type(total)(1, len(g), g)
    return norm_bound(flat(total), b)


def _entropy_term(m: Any, f: Any) -> Any:
    """-m log(m/f), also where m is so small that its ball contains 0.

    There the value lies between 0 and that at the upper end of m, since -x log x increases up to x = 1/e.
    """
    if m > 0:
        return -m * (m / f).log()
    top = (m / f).abs_upper()
    return f * arb(0).union(-top * top.log()) if 0 < top < 0.25 else arb.nan()
