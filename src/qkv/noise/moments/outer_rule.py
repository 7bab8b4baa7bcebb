"""Nodes and weights of the outer integral, adapted to the range of the sum of exponentials and to the noise."""

# A moment of a head is an integral over u = log x, because 1/Z = ∫ e^(−xZ) dx with Z = Σ e^(s_j). A rule with nodes x_i
# and weights ω_i replaces 1/Z by S(Z) = Σ ω_i x_i e^(−x_i Z), and 1/Z² by Σ ω_i x_i² e^(−x_i Z), so its error is known
# for every value of Z, whatever the keys.
#
# The trapezoid rule with step h has ω_i = h. By Poisson's formula it is off, relatively, by at most
# 2 Σ_{k≥1} |Γ(order + iτk)|, τ = 2π/h, times |E α Z^(−iτk)| / E α. A shift t of all scores multiplies Z by e^t and
# changes no weight. Where every score is noisy, the mean of the scores with weights 1/v_j is normal with variance
# v_c = 1/Σ_j (1/v_j) and independent of all differences of scores, so that factor is at most e^(−τ²k² v_c/2):
# wide noise allows a step in proportion to it.
#
# To the left, where xZ is small, the trapezoid rule spends one node for every h of log x. Its nodes x_i ≤ x₀ with the
# weights h x_i are a measure on [0, x₀], whose Gauss rule with k nodes is within Z^(2k)/(2k)! ‖p_k‖² of it for e^(−xZ),
# where p_k is the monic orthogonal polynomial. With x₀ = LEFT_REACH / Z_max a dozen nodes are enough for all Z ≤ Z_max.
# For larger Z: derivatives of e^(−xZ) of even order are positive, so the Gauss rule errs towards 0, and 0 ≤ Z S(Z) ≤ 1
# + the trapezoid rule's error for every Z; with x e^(−xZ) ≤ (2/eZ) e^(−xZ/2) the same sum for 1/Z² is below 1.48 / Z².
# So a moment is off by at most 1.48 P(Z > Z_max). For the same reason Σ ω_i is at most that of the trapezoid rule.
#
# P(Z > Z_max) is bounded by Bennett's inequality for scores below m_j + t σ_j, and the probability of any other score.

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import gamma, ndtri
from torch import Tensor

from qkv.core.types import FloatArray
from qkv.noise.moments.smoothed_gumbel import GUMBEL_END, REACH, left_tail, logs_and_ratios

LEFT_REACH = 8.0
"""x Z up to which the nodes to the left are replaced by a Gauss rule."""
MAX_LEFT_NODES = 16
"""Gauss nodes at most; for LEFT_REACH = 8 errors of 1e-16 need 13."""
MAX_COMPRESSED_STEP = 0.6
"""Steps beyond this leave so few nodes to the left that a Gauss rule saves none."""
CHERNOFF_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Exponents that are tried in Bennett's inequality, relative to the largest score."""
N_CANDIDATES = 17
"""Nodes at which Λ is evaluated to find the upper end."""
MIN_END_KEYS = 256
"""Keys, the strongest, that are evaluated for it at least; an eighth of more than eight times as many."""
UPPER_END_MARGIN = 5.0
"""At the upper end log Λ is below −(reach + this), which also covers E xZ e^(−xZ)."""
MAX_TAIL_REACH = 32.0
"""Z_max may be exceeded with probability e^−32 = 1e-14: the errors of the inner functions are larger."""
WIDE_NOISE_SD = 2.0
"""Standard deviation of the common shift of all scores from which the step is chosen in proportion to it."""
ROUNDING = 4e-15
"""Bound on the rounding of the Gauss rule's sums, which are of positive terms; 2e-15 was measured."""
MAX_ENTRIES = 2**20
"""Entries (keys × nodes) held at once."""


@dataclass(frozen=True, eq=False)
class OuterRule:
    """Nodes u, ascending, and weights; `length` bounds the sum of the weights, `error` what the rule itself is off by.

    The error is relative to a moment of order one or two, or absolute for moments of at most 1.
    """

    u: Tensor
    weight: Tensor
    length: float
    error: float


def outer_error(step: float, order: int, shift_variance: float = 0.0) -> float:
    """Bound on the trapezoid rule's relative error for a moment of this order; see the derivation above."""
    tau = 2 * math.pi / step
    return 2.02 * float(abs(gamma(order + 1j * tau))) * math.exp(-0.5 * min(1400.0, tau**2 * shift_variance))


def shift_variance(v: Tensor) -> float:
    """Variance of the common shift of all scores, 1/Σ_j (1/v_j); 0 where a score does not vary."""
    least = float(v.min())
    return 0.0 if least <= 0 else 1 / float((1 / v).sum())


def widest_step(step: float, v: Tensor) -> float:
    """The step for which wide noise on every score leaves the error that the given step has without it."""
    variance = shift_variance(v)
    if variance < WIDE_NOISE_SD**2:
        return step
    # e^(−τ² v_c/2) alone, since |Γ(2 + iτ)| ≤ 1.
    digits = -math.log(outer_error(step, 2))
    return max(step, 2 * math.pi * math.sqrt(variance / (2 * (digits + 1))))


def compression(m: Tensor, v: Tensor, low: float, high: float) -> float:
    """The part of the interval from low to high that equal steps of a compressed rule would cover, at most."""
    return (high - math.log(LEFT_REACH) + upper_bound_of_log_sum(m, v)[0]) / (high - low)


def compressed_rule(m: Tensor, v: Tensor, step: float, reach: float = REACH) -> OuterRule:
    """A rule with few nodes for score means m and variances v, (n,): the Gauss rule to the left, and equal steps.

    The step must be at most MAX_COMPRESSED_STEP; `reach` gives the error e^−reach of everything but the step.
    """
    top, tail = upper_bound_of_log_sum(m, v, reach)
    start = math.log(LEFT_REACH) - top
    x, w, left_error = _left_rule(step, reach)
    end = _upper_end(m, v, start, reach)
    u = start + step * torch.arange(1, max(2, math.ceil((end - start) / step) + 1), dtype=torch.float64)
    nodes = torch.cat([start + torch.from_numpy(np.log(x)), u])
    weight = torch.cat([torch.from_numpy(w / x), torch.full_like(u, step)])
    return OuterRule(
        nodes,
        weight,
        length=float(u[-1]) - start + reach + math.log(LEFT_REACH) + step,
        error=left_error + 1.48 * tail + 2 * math.exp(-reach),
    )


def upper_bound_of_log_sum(m: Tensor, v: Tensor, reach: float = REACH) -> tuple[float, float]:
    """A bound on log Σ e^(s_j) for independent s_j ~ N(m_j, v_j), and the probability, at most, that it is exceeded."""
    reach = min(reach, MAX_TAIL_REACH)
    ends = m - _normal_quantile(reach + math.log(len(m))) * v.sqrt()
    outside = math.exp(-reach) if bool((v > 0).any()) else 0.0
    top = float(ends.max())
    highest = float(torch.logsumexp(ends, 0))
    # X_j = e^(s_j − top) for scores below their ends: E X_j ≤ mean_j, E X_j² ≤ square_j, X_j ≤ bound_j ≤ 1.
    bound = torch.exp(ends - top)
    mean = torch.exp(m - top + left_tail(v)).minimum(bound)
    square = torch.exp((2 * (m - top + v)).clamp(max=1.0)).minimum(bound * mean)
    square = torch.where(v > 0, square, torch.zeros_like(square))  # a score without noise needs no second moment
    total = float(mean.sum())
    best = math.inf
    for factor in CHERNOFF_FACTORS:
        y = factor * bound
        # (e^y − 1 − y)/y², by its series where that cancels
        growth = torch.where(y < 1e-2, 0.5 + y / 6 + y * y / 20, (torch.expm1(y) - y) / y.square().clamp(min=1e-300))
        best = min(best, total + (reach + factor**2 * float((square * growth).sum())) / factor)
    found = min(highest, top + math.log(best))
    return found, outside + (math.exp(-reach) if found < highest else 0.0)


def log_product(m: Tensor, v: Tensor, u: Tensor) -> Tensor:
    """log Λ at the nodes, for a part of the keys at a time."""
    out = torch.zeros_like(u)
    size = max(1, MAX_ENTRIES // len(u))
    for start in range(0, len(m), size):
        part = slice(start, start + size)
        out = out + logs_and_ratios(m[part], v[part], u, 1)[0].sum(0)
    return out


def _normal_quantile(reach: float) -> float:
    """The e^−reach quantile of a standard normal variable."""
    return float(ndtri(math.exp(-reach)))


def _upper_end(m: Tensor, v: Tensor, low: float, reach: float) -> float:
    """Where Λ = Π L_j has fallen below e^−(reach + margin)."""
    high = max(low + 1.0, float((GUMBEL_END - m - _normal_quantile(reach) * v.sqrt()).min()))
    candidates = torch.linspace(low, high, N_CANDIDATES, dtype=torch.float64)
    with torch.no_grad():
        if len(m) > MIN_END_KEYS:  # L_j ≤ 1: some of the keys bound Λ from above
            strongest = (m + left_tail(v)).topk(max(MIN_END_KEYS, len(m) // 8)).indices
            m, v = m[strongest], v[strongest]
        vanished = (log_product(m, v, candidates) < -(reach + UPPER_END_MARGIN)).nonzero().flatten()
    return float(candidates[vanished[0]]) if len(vanished) else high


@functools.lru_cache(maxsize=16)
def _left_rule(step: float, reach: float) -> tuple[FloatArray, FloatArray, float]:
    """The Gauss rule of the measure Σ_i h e^(−ih) δ(e^(−ih)), i = 0, 1, …: nodes in (0, 1), weights, relative error."""
    x = np.exp(-step * np.arange(math.ceil((reach + 8) / step) + 1))
    w = step * x
    goal = 0.1 * math.exp(-reach)
    # Stieltjes' recurrence p_{k+1} = (x − a_k) p_k − b_k p_{k−1} for the monic orthogonal polynomials of the measure
    a: list[float] = []
    b: list[float] = []
    before, p = np.zeros_like(x), np.ones_like(x)
    norm = float(w.sum())
    error = math.inf
    y = LEFT_REACH
    while error > goal and len(a) < MAX_LEFT_NODES:
        a.append(float((w * p * p) @ x) / norm)
        before, p = p, (x - a[-1]) * p - (b[-1] if b else 0.0) * before
        following = float((w * p) @ p)
        b.append(following / norm)
        norm = following
        order = 2 * len(a)
        error = norm * math.exp((order + 1) * math.log(y) + math.log(max(order, y)) - math.lgamma(order + 1))
    nodes, vectors = np.linalg.eigh(np.diag(a) + np.diag(np.sqrt(b[:-1]), 1) + np.diag(np.sqrt(b[:-1]), -1))
    return nodes, float(w.sum()) * vectors[0] ** 2, error + ROUNDING
