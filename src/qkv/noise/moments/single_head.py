"""Exact moments of one head's reading, by one outer integral of products of blurred Gumbel laws."""

# With Z = Σ e^(s_j): 1/Z = ∫ e^(−xZ) dx and 1/Z² = ∫ x e^(−xZ) dx. Scores are independent between keys, so
# with x = e^u and the functions L, P, Q of gumbel.py, Λ = Π_j L_j, r = P/L and q = Q/L:
#     E α_a = ∫ Λ r_a du,      E α_a α_b = ∫ Λ r_a r_b du (a ≠ b),      E α_a² = ∫ Λ q_a du.
# The output o = Σ α_a v_a needs no n × n matrix:  E o oᵀ = ∫ Λ ρ ρᵀ du + Σ_a (∫ Λ (q_a − r_a²) du) v_a v_aᵀ
# with ρ(u) = Σ_a r_a(u) v_a.
#
# The trapezoid rule with step h turns ∫ into a sum whose error is known: by Poisson's formula the sum for E
# α_a α_b is Σ_k E[α_a α_b Γ(2 + iτk) Z^(−iτk)], τ = 2π/h, so relatively to the (positive) moment it is off by
# at most 2 Σ_{k≥1} |Γ(2 + iτk)|, whatever the keys. For h = ¼ that is 4e-15. Cutting the ends off costs at
# most 1 − Λ at the lower end and E[(1 + xZ) e^(−xZ)] at the upper one; both are rounding by the choice of the
# ends. What is left are the errors of L, P and Q, each below DELTA: changing one factor of Λ r_a by δ changes
# an integral by at most δ ∫ P_a = δ, and changing P_a (or Q_a) itself by at most δ times the length of the
# interval.

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from scipy.special import gamma
from torch import Tensor

from qkv.noise.moments.smoothed_gumbel import DELTA, FALL, NORMAL, REACH, alike, left_tail, logs_and_ratios

STEP = 0.25
CHUNK = 2**19
"""Entries (keys × nodes) held at once."""
NODES = 2**21
"""Outer nodes at most; standard deviations of a score up to 1e4 need fewer."""
WIDE = 160
"""Nodes' interval, in u, beyond which it is worth looking first where Λ ends."""


@dataclass(frozen=True, eq=False)
class HeadMoments:
    """Raw moments of one head: E α, E α², E o, E o oᵀ, perhaps E α αᵀ.

    `error` bounds each entry of the first two, `total_error` the sum of all entries' errors.
    """

    mean: Tensor
    square: Tensor
    output: Tensor
    output_square: Tensor
    product: Tensor | None
    error: float
    total_error: float


def moments(m: Tensor, v: Tensor, values: Tensor, full: bool = False, step: float = STEP) -> HeadMoments:
    """The moments of a head with score means m and variances v, (n,); differentiable in both."""
    m = m - m.detach().max()  # no weight changes, and phases stay small
    u = nodes(m.detach(), v.detach(), step)
    n, G = len(m), len(u)
    recorded = torch.is_grad_enabled() and (m.requires_grad or v.requires_grad)
    single = recorded or n * G <= CHUNK
    kept = (logs_and_ratios if recorded else _by_kind)(m, v, u) if single else None
    log_product = _log_product(m, v, u) if kept is None else kept[0].sum(0)
    weight = step * torch.exp(log_product)

    means, squares, own = [], [], []
    flow = m.new_zeros(values.shape[1], G)  # ρ
    rows = []
    for c in [slice(0, n)] if single else _pieces(n, G):
        _, r, q = kept if kept is not None else logs_and_ratios(m[c], v[c], u)
        means.append(r @ weight)
        squares.append(q @ weight)
        own.append(squares[-1] - (r * r) @ weight)
        flow = flow + values[c].mT @ r
        if full:
            rows.append(r)
    mean, square, alone = torch.cat(means), torch.cat(squares), torch.cat(own)
    product = None
    if full:
        r = torch.cat(rows)
        product = (r * weight) @ r.mT
        product = product - torch.diag(product.diagonal()) + torch.diag(square)
    noisy = int((v.detach() > 0).sum())
    length = float(u[-1] - u[0])
    rounding = 1e-15 + outer_error(step, 2)
    return HeadMoments(
        mean=mean,
        square=square,
        output=values.mT @ mean,
        output_square=(flow * weight) @ flow.mT + (values * alone[:, None]).mT @ values,
        product=product,
        error=rounding + DELTA * (noisy + (length if noisy else 0.0)) + 1e-16 * math.sqrt(n),
        total_error=rounding + DELTA * noisy * (1 + length) + 1e-16 * math.sqrt(n),
    )


def _by_kind(m: Tensor, v: Tensor, u: Tensor, parts: int = 3) -> list[Tensor]:
    """Keys of one mean and variance of score are integrated once, however many there are."""
    mean, variance, where = alike(m.detach(), v.detach())
    if 2 * len(mean) > len(m):
        return logs_and_ratios(m, v, u, parts)
    return [part.index_select(0, where) for part in logs_and_ratios(mean, variance, u, parts)]


def outer_error(step: float, order: int) -> float:
    """The trapezoid rule's relative error for a moment of that order; see above."""
    return 2.02 * float(abs(gamma(order + 2j * math.pi / step)))


def nodes(m: Tensor, v: Tensor, step: float, reach: float = REACH) -> Tensor:
    """The u between which all of every integral lies, beyond e^−reach."""
    low, high = ends(m, v, reach)
    return low + step * torch.arange(int((high - low) / step) + 2, dtype=torch.float64)


def ends(m: Tensor, v: Tensor, reach: float = REACH) -> tuple[float, float]:
    """The least and the largest of these u. Keys that are alike may count as one, the log of how many added to m."""
    low = -float(torch.logsumexp(m + left_tail(v), 0)) - reach
    high = float((FALL - m + NORMAL * v.sqrt()).min())
    if high - low > WIDE and len(m) > 1:
        high = _end(m, v, low, high)
    return low, high


def _end(m: Tensor, v: Tensor, low: float, high: float) -> float:
    """With many noisy keys Λ = Π L_j ends long before any one L_j; a node saved is n functions saved."""
    tries = torch.linspace(low, high, 33, dtype=torch.float64)
    with torch.no_grad():
        sums = _log_product(m, v, tries)
    ended = (sums < -(REACH + 5)).nonzero().flatten()
    return float(tries[ended[0]]) if len(ended) else high


def _log_product(m: Tensor, v: Tensor, u: Tensor) -> Tensor:
    """log Λ at the nodes, some keys at a time."""
    out = torch.zeros_like(u)
    for c in _pieces(len(m), len(u)):
        out = out + logs_and_ratios(m[c], v[c], u, 1)[0].sum(0)
    return out


def _pieces(n: int, G: int) -> Iterator[slice]:
    size = max(1, CHUNK // G)
    for start in range(0, n, size):
        yield slice(start, min(n, start + size))
