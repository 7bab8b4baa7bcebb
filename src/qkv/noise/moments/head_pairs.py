"""Cross-moments of two heads that read the same random keys, by a two-dimensional outer integral."""

# With heads 1 and 2 at x = e^u and y = e^w, and for each key
#     K = E ℓ(u+s₁) ℓ(w+s₂),   A = E p(u+s₁) ℓ(w+s₂),   B = E ℓ(u+s₁) p(w+s₂),   R = E p(u+s₁) p(w+s₂):
#     E α¹_a α²_b = ∫∫ Π_j K_j (A_a/K_a)(B_b/K_b) du dw  (a ≠ b),   E α¹_a α²_a = ∫∫ Π_j K_j (R_a/K_a) du dw.
# Where s₁ and s₂ of a key are uncorrelated, all four factor into the L and P of gumbel.py; if that holds for
# every key the heads are independent. Price's theorem says what a small covariance c does: dE f(s₁)g(s₂)/dc =
# E f'g', and a weight's slope in a score is at most ¼, so leaving c out changes a cross-moment by at most
# |c|/16.
#
# For a correlated key, s₁ = m₁ + σ₁z and s₂ = m₂ + ρσ₂z + a rest of variance v₂(1 − ρ²) that is independent
# of z: an integral over z, done by the trapezoid rule, turns all four into one product of (nodes u × z) and
# (z × nodes w) matrices. With a line of integration moved by ic, the rule's error is e^(−2πc/h) times the
# size of the integrand there: φ grows to e^(c²/2), and ℓ and p stay bounded as long as c max(σ₁, |ρ|σ₂) is
# below π/2. So a step h with 2πc/h = c²/2 + DIGITS leaves e^−DIGITS.

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from qkv.errors import QkvError
from qkv.noise.moments.single_head import nodes, outer_error
from qkv.noise.moments.smoothed_gumbel import DELTA, FALL, FLOOR, blurred, logs_and_ratios

NORMAL = 7.6
"""Where z ends: P(|N(0,1)| > 7.6) = 3e-14."""
INNER = 2e-13
"""How far K, A, B and R lie from the truth on a fine grid: the tails of z, and rounding."""
IGNORED = 1e-11
"""A sum of |covariances|/16 that is left out, below the integral's own error; it is added to the error."""
ENTRIES = 2**22
"""Entries (nodes × keys, or × dimensions) held at once."""
MOST_HELD, MOST_WORK = 2**27, 3e11
"""Entries of the z × w matrices, 1 GB, and products, some minutes, beyond which a cross-moment is refused."""
MOST_RECORDED = 2**24
"""Keys × nodes × nodes for which gradients are kept at most: some twenty such arrays, 3 GB."""
LEAST = 1e-16
"""A variance of the first score below this counts as this, so that what they share has a slope."""


@dataclass(frozen=True)
class Grid:
    """The step of the outer nodes, their reach (to e^−reach), and the DIGITS of the inner integrals."""

    step: float
    reach: float
    digits: float


FINE = Grid(0.32, 32.0, 35.0)
"""Coarser than in one dimension, since nodes count squared: it errs by 4e-12 outside and 2e-13 inside."""
ROUGH = Grid(0.55, 16.0, 18.0)
"""Errs by 1e-6, at a fifteenth of the cost: enough to tell which way is down."""


@dataclass(frozen=True, eq=False)
class CrossMoments:
    """Raw cross-moments of two heads: E α¹_a α²_a, E o¹ o²ᵀ, perhaps E α¹ α²ᵀ; errors as in HeadMoments."""

    square: Tensor
    output_square: Tensor
    product: Tensor | None
    error: float
    total_error: float


def cross(m: Tensor, C: Tensor, values: Tensor, full: bool = False, grid: Grid = FINE) -> CrossMoments | float:
    """Cross-moments for score means (2, n) and covariances (n, 2, 2); of independent heads only the error."""
    recorded = torch.is_grad_enabled() and (m.requires_grad or C.requires_grad)
    if recorded:
        # A covariance of 0 still has a slope, and by Price's theorem the cross-moment has: none is left out.
        together = (C.detach().diagonal(dim1=1, dim2=2) > 0).any(1).nonzero().flatten()
        ignored = 0.0
    else:
        size = C[:, 0, 1].detach().abs()
        order = size.argsort()
        small = size[order].cumsum(0) / 16 <= IGNORED
        ignored = float(size[order[small]].sum()) / 16
        together = order[~small].sort().values
    if len(together) == 0:
        return ignored
    groups = _alike(together, C.detach(), grid.digits)
    return _cross(m, C, values, groups, ignored, full, grid, recorded)


def _cross(
    m: Tensor,
    C: Tensor,
    values: Tensor,
    groups: list[_Group],
    ignored: float,
    full: bool,
    grid: Grid,
    recorded: bool,
) -> CrossMoments:
    m = m - m.detach().max(dim=1, keepdim=True).values
    v = C.diagonal(dim1=1, dim2=2).mT
    u, w = (nodes(m[h].detach(), v[h].detach(), grid.step, grid.reach) for h in (0, 1))
    n, d = m.shape[1], values.shape[1]
    together = torch.cat([group.rows for group in groups])
    apart = torch.ones(n, dtype=torch.bool)
    apart[together] = False
    alone = apart.nonzero().flatten()
    _affordable(len(u), len(w), groups, recorded)

    # Keys that factor: their logs add up head by head.
    if len(alone):
        log1, r1 = logs_and_ratios(m[0][alone], v[0][alone], u, 2)
        log2, r2 = logs_and_ratios(m[1][alone], v[1][alone], w, 2)
    else:
        log1, r1 = u.new_zeros(1, len(u)), u.new_zeros(0, len(u))
        log2, r2 = w.new_zeros(1, len(w)), w.new_zeros(0, len(w))
    rights = [_right(m, C, group, w) for group in groups]

    diagonal, extra = m.new_zeros(n), m.new_zeros(n)  # extra: what a = b adds to the product of the flows
    output = m.new_zeros(d, d)
    product = m.new_zeros(n, n) if full else None
    size = max(1, ENTRIES // (len(w) * max(len(together), d, n if full else 1)))
    for start in range(0, len(u), size):
        here = slice(start, start + size)
        shape = (min(size, len(u) - start), len(w))
        fours = [_four(m, C, g, u[here], right) for g, right in zip(groups, rights, strict=True)]
        log_product = log1[:, here].sum(0)[:, None] + log2.sum(0)
        for K, *_ in fours:
            log_product = log_product + K.clamp(min=FLOOR).log().sum(0)
        weight = grid.step**2 * torch.exp(log_product)
        flow1 = (r1[:, here].mT @ values[alone])[:, None, :].expand(*shape, d)
        flow2 = (r2.mT @ values[alone])[None, :, :].expand(*shape, d)
        diagonal = diagonal.index_add(0, alone, ((r1[:, here] @ weight) * r2).sum(1))
        lefts, belows = [r1[:, here, None].expand(-1, *shape)], [r2[:, None, :].expand(-1, *shape)]
        for group, (K, A, B, R) in zip(groups, fours, strict=True):
            alive = K.detach() > FLOOR
            safe = torch.where(alive, K, torch.ones_like(K))
            a, b, both = (torch.where(alive, x / safe, torch.zeros_like(x)) for x in (A, B, R))
            own = (both * weight).sum((1, 2))
            diagonal = diagonal.index_add(0, group.rows, own)
            extra = extra.index_add(0, group.rows, own - (a * b * weight).sum((1, 2)))
            flow1 = flow1 + torch.einsum("kuw,kd->uwd", a, values[group.rows])
            flow2 = flow2 + torch.einsum("kuw,kd->uwd", b, values[group.rows])
            lefts.append(a)
            belows.append(b)
        output = output + (flow1 * weight[..., None]).reshape(-1, d).mT @ flow2.reshape(-1, d)
        if product is not None:
            left, below = torch.cat(lefts) * weight, torch.cat(belows)
            product = product + left.reshape(n, -1) @ below.reshape(n, -1).mT
    output = output + (values * extra[:, None]).mT @ values
    if product is not None:
        place = torch.cat([alone, *(group.rows for group in groups)]).argsort()
        product = product[place][:, place]
        product = product - torch.diag(product.diagonal()) + torch.diag(diagonal)

    # As in moments.py, with both heads' intervals.
    lengths = float(u[-1] - u[0]) + float(w[-1] - w[0])
    error = 2 * outer_error(grid.step, 1) + 4 * math.exp(-grid.reach) + ignored
    each = INNER + DELTA + 20 * math.exp(-grid.digits)
    return CrossMoments(
        diagonal,
        output,
        product,
        error + each * (2 * n + lengths),
        error + 3 * ignored + each * 2 * n * (1 + lengths),
    )


@dataclass(frozen=True, eq=False)
class _Group:
    """Correlated keys of like width, and the nodes z and weights that serve all of them."""

    rows: Tensor
    z: Tensor
    density: Tensor


def _alike(together: Tensor, C: Tensor, digits: float) -> list[_Group]:
    sd = _deviation(C[together, 0, 0])
    width = torch.maximum(sd, C[together, 0, 1].abs() / sd)
    bins = (width / 0.4).clamp(min=1).log2().ceil()
    out = []
    for b in bins.unique():
        rows = together[bins == b]
        strip = 0.5 * math.pi / float(width[bins == b].max())
        # Far from the strip's edge φ alone decides: c = 2π/h is best, and h = 2π/√(2 DIGITS).
        best = min(strip, math.sqrt(2 * digits))
        step = 2 * math.pi * best / (digits + best**2 / 2)
        count = int(NORMAL / step) + 1
        z = step * torch.arange(-count, count + 1, dtype=torch.float64)
        out.append(_Group(rows, z, step * torch.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)))
    return out


def _right(m: Tensor, C: Tensor, group: _Group, w: Tensor) -> Tensor:
    """L and P of the second score given z, (keys, z, 2 nodes w)."""
    rows = group.rows
    v2, slope = C[rows, 1, 1], C[rows, 0, 1] / _deviation(C[rows, 0, 0])
    rest = v2 - slope**2
    # Where the two scores hang together entirely, the rest is rounding: below 1e-13 v₂ it is taken to be 0,
    # which changes E f(s) by at most |f''| rest/2, that is by less than the error's other parts.
    rest = torch.where(rest.detach() <= 1e-13 * v2.detach(), torch.zeros_like(rest), rest)
    centre = m[1][rows, None] + slope[:, None] * group.z
    parts = _survival_and_density(centre.reshape(-1), rest[:, None].expand_as(centre).reshape(-1), w)
    return torch.cat([part.reshape(len(rows), len(group.z), len(w)) for part in parts], dim=2)


def _four(m: Tensor, C: Tensor, group: _Group, u: Tensor, right: Tensor) -> list[Tensor]:
    """K, A, B and R of a group's keys, each of shape (keys, nodes u, nodes w)."""
    sd = _deviation(C[group.rows, 0, 0])
    y = (m[0][group.rows, None] + sd[:, None] * group.z)[:, None, :] + u[:, None]
    x = torch.exp(y.clamp(max=FALL + 2))
    gone = torch.exp(-x)
    four = (torch.cat([gone, x * gone], dim=1) * group.density) @ right
    nu, nw = len(u), right.shape[2] // 2
    return [four[:, :nu, :nw], four[:, nu:, :nw], four[:, :nu, nw:], four[:, nu:, nw:]]


def _deviation(variance: Tensor) -> Tensor:
    return variance.clamp(min=LEAST).sqrt()


def _survival_and_density(m: Tensor, v: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    noisy = v.detach() > 0
    x = torch.exp((m[:, None] + w).clamp(max=FALL + 2))
    L, P = torch.exp(-x), x * torch.exp(-x)
    if bool(noisy.any()):
        rows = noisy.nonzero().flatten()
        soft = blurred(m[rows], v[rows], w, 2)
        L, P = L.index_copy(0, rows, soft[0]), P.index_copy(0, rows, soft[1])
    return L, P


def _affordable(nu: int, nw: int, groups: list[_Group], recorded: bool) -> None:
    work = sum(len(group.rows) * len(group.z) for group in groups)
    held = work * 2 * nw
    keys = sum(len(group.rows) for group in groups)
    if held > MOST_HELD or work * nu * nw > MOST_WORK or (recorded and keys * nu * nw > MOST_RECORDED):
        raise QkvError(
            f"the exact cross-covariance of two heads with {keys} keys in common, over {nu} × {nw} nodes",
            "their scores vary too widely, or are too many, for it to be worth it",
            "Use smaller queries or noise, or qkv.noise.sample",
        )
