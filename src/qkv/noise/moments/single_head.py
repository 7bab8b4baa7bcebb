"""Moments of one head's reading: one outer integral of products of smoothed Gumbel functions."""

# With Z = Σ e^(s_j): 1/Z = ∫ e^(−xZ) dx and 1/Z² = ∫ x e^(−xZ) dx. Scores are independent between keys, so
# with x = e^u and the functions L, P, Q of smoothed_gumbel.py, Λ = Π_j L_j, r = P/L and q = Q/L:
#     E α_a = ∫ Λ r_a du,      E α_a α_b = ∫ Λ r_a r_b du (a ≠ b),      E α_a² = ∫ Λ q_a du.
# The output o = Σ α_a v_a needs no n × n matrix:  E o oᵀ = ∫ Λ ρ ρᵀ du + Σ_a (∫ Λ (q_a − r_a²) du) v_a v_aᵀ
# with ρ(u) = Σ_a r_a(u) v_a.
#
# The outer rule and its own error are derived in outer_rule.py: equal steps in u for few keys, a rule with fewer nodes
# for many, and longer steps where the noise on every score is wide. What is left are the errors of L, P and Q, each
# below FUNCTION_ERROR: changing one factor of Λ r_a by δ changes an integral by at most δ ∫ P_a = δ, and changing P_a
# (or Q_a) itself by at most δ times the sum of the rule's weights, which is the length of the interval.

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from qkv.errors import QkvError
from qkv.noise.moments.outer_rule import (
    MAX_COMPRESSED_STEP,
    MAX_ENTRIES,
    OuterRule,
    compressed_rule,
    compression,
    log_product,
    outer_error,
    shift_variance,
    widest_step,
)
from qkv.noise.moments.smoothed_gumbel import (
    FUNCTION_ERROR,
    GUMBEL_END,
    NORMAL_TAIL,
    REACH,
    distinct_scores,
    left_tail,
    logs_and_ratios,
)

STEP = 0.25
"""Step of the outer integral in u."""
MIN_COMPRESSED_ENTRIES = 2**16
"""Keys × nodes from which a rule with fewer nodes saves more than it costs."""
MAX_COMPRESSION = 0.7
"""Part of the interval that may be left for it."""
MAX_NODES = 2**21
"""Outer nodes at most; standard deviations of a score up to 1e4 need fewer."""
LONG_RULE, MAX_LONG_ENTRIES = 2**13, 2**23
"""For more nodes than the first, noisy keys × nodes at most: some ten seconds."""
LONG_INTERVAL = 160
"""Length of the outer interval from which its upper end is first located by evaluating Λ at a few nodes."""


@dataclass(frozen=True, eq=False)
class HeadMoments:
    """Raw moments of one head: E α, E α², E o, E o oᵀ, and E α αᵀ if it was asked for.

    `error` bounds the error of each entry of E α and E α², `total_error` the sum of the errors of all entries.
    """

    mean: Tensor
    square: Tensor
    output: Tensor
    output_square: Tensor
    product: Tensor | None
    error: float
    total_error: float


def head_moments(
    m: Tensor, v: Tensor, values: Tensor, full: bool = False, step: float = STEP, reach: float = REACH
) -> HeadMoments:
    """The moments of a head with independent scores of means m and variances v, (n,); differentiable in both."""
    m = m - m.detach().max()  # the weights stay the same, and phases stay small
    rule = outer_rule(m.detach(), v.detach(), step, reach)
    u = rule.u
    n, G = len(m), len(u)
    recorded = torch.is_grad_enabled() and (m.requires_grad or v.requires_grad)
    single = recorded or n * G <= MAX_ENTRIES
    parts = (logs_and_ratios if recorded else _for_distinct_scores)(m, v, u) if single else None
    weight = rule.weight * torch.exp(log_product(m, v, u) if parts is None else parts[0].sum(0))

    means, squares, own = [], [], []  # own: ∫ Λ (q_a − r_a²) du
    flow = m.new_zeros(values.shape[1], G)  # ρ
    rows = []
    for c in [slice(0, n)] if single else _slices(n, G):
        _, r, q = parts if parts is not None else logs_and_ratios(m[c], v[c], u)
        means.append(r @ weight)
        squares.append(q @ weight)
        own.append(squares[-1] - (r * r) @ weight)
        flow = flow + values[c].mT @ r
        if full:
            rows.append(r)
    mean, square, excess = torch.cat(means), torch.cat(squares), torch.cat(own)
    product = None
    if full:
        r = torch.cat(rows)
        product = (r * weight) @ r.mT
        product = product - torch.diag(product.diagonal()) + torch.diag(square)
    noisy = int((v.detach() > 0).sum())
    length = rule.length
    rounding = 1e-15 + rule.error
    return HeadMoments(
        mean=mean,
        square=square,
        output=values.mT @ mean,
        output_square=(flow * weight) @ flow.mT + (values * excess[:, None]).mT @ values,
        product=product,
        error=rounding + FUNCTION_ERROR * (noisy + (length if noisy else 0.0)) + 1e-16 * math.sqrt(n),
        total_error=rounding + FUNCTION_ERROR * noisy * (1 + length) + 1e-16 * math.sqrt(n),
    )


def _for_distinct_scores(m: Tensor, v: Tensor, u: Tensor, parts: int = 3) -> Tensor:
    """logs_and_ratios, evaluated once for all keys that share a mean and a variance of score."""
    mean, variance, where = distinct_scores(m.detach(), v.detach())
    if 2 * len(mean) > len(m):
        return logs_and_ratios(m, v, u, parts)
    return logs_and_ratios(mean, variance, u, parts).index_select(1, where)


def outer_rule(m: Tensor, v: Tensor, step: float, reach: float = REACH) -> OuterRule:
    """The rule for score means m and variances v: of the given step, or one of fewer nodes and a like error."""
    wide = widest_step(step, v)
    low, high = _ends(m, v, reach)
    many = len(m) * (high - low) / wide > MIN_COMPRESSED_ENTRIES
    if many and wide <= MAX_COMPRESSED_STEP and compression(m, v, low, high) < MAX_COMPRESSION:
        found = compressed_rule(m, v, step, reach)
        return OuterRule(found.u, found.weight, found.length, found.error + outer_error(step, 2))
    u = outer_nodes(m, v, wide, reach)
    noisy = int((v > 0).sum())
    if len(u) > LONG_RULE and noisy * len(u) > MAX_LONG_ENTRIES:
        raise QkvError(
            "the moments of a reading",
            f"{noisy} scores vary with standard deviations up to {float(v.max()) ** 0.5:.4g}, and "
            f"{'some' if float(v.min()) > 0 else 'others'} hardly: that would need {len(u):,} nodes for each",
            "Use a smaller query, less noise or qkv.noise.sample; beyond 1e3 a weight is 0 or 1 almost surely",
        )
    error = outer_error(wide, 2, shift_variance(v) if wide > step else 0.0)
    error += 0.0 if reach >= REACH else 2 * math.exp(-reach)
    return OuterRule(u, torch.full_like(u, wide), float(u[-1] - u[0]), error)


def outer_nodes(m: Tensor, v: Tensor, step: float, reach: float = REACH) -> Tensor:
    """Equidistant nodes u over an interval outside of which the integrals are below e^−reach."""
    low, high = outer_interval(m, v, reach)
    return low + step * torch.arange(int((high - low) / step) + 2, dtype=torch.float64)


def outer_interval(m: Tensor, v: Tensor, reach: float = REACH) -> tuple[float, float]:
    """The ends of that interval. Keys of equal mean and variance may be given once, with log(count) added to m."""
    low, high = _ends(m, v, reach)
    if high - low > LONG_INTERVAL and len(m) > 1:
        high = _upper_end(m, v, low, high)
    return low, high


def _ends(m: Tensor, v: Tensor, reach: float) -> tuple[float, float]:
    """The ends without an evaluation of Λ."""
    low = -float(torch.logsumexp(m + left_tail(v), 0)) - reach
    return low, float((GUMBEL_END - m + NORMAL_TAIL * v.sqrt()).min())


def _upper_end(m: Tensor, v: Tensor, low: float, high: float) -> float:
    """A closer upper end: with many noisy keys Λ = Π L_j vanishes long before any one L_j does."""
    candidates = torch.linspace(low, high, 33, dtype=torch.float64)
    with torch.no_grad():
        sums = log_product(m, v, candidates)
    vanished = (sums < -(REACH + 5)).nonzero().flatten()
    return float(candidates[vanished[0]]) if len(vanished) else high


def _slices(n: int, G: int) -> Iterator[slice]:
    """Keys in parts of at most MAX_ENTRIES (keys × nodes)."""
    size = max(1, MAX_ENTRIES // G)
    for start in range(0, n, size):
        yield slice(start, min(n, start + size))
