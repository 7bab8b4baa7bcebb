"""Cross-moments of two heads that read the same random keys, by a two-dimensional outer integral."""

# With heads 1 and 2 at x = e^u and y = e^w, and for each key
#     K = E ℓ(u+s₁) ℓ(w+s₂),   A = E p(u+s₁) ℓ(w+s₂),   B = E ℓ(u+s₁) p(w+s₂),   R = E p(u+s₁) p(w+s₂):
#     E α¹_a α²_b = ∫∫ Π_j K_j (A_a/K_a)(B_b/K_b) du dw  (a ≠ b),   E α¹_a α²_a = ∫∫ Π_j K_j (R_a/K_a) du dw.
# Where s₁ and s₂ of a key are uncorrelated, all four factor into the L and P of smoothed_gumbel.py; if that holds for
# every key the heads are independent. Price's theorem gives the effect of a covariance c: dE f(s₁)g(s₂)/dc = E f'g'.
# A weight's slope in the score of key j is at most ¼, and at most the weight α_j itself, so leaving c out changes a
# cross-moment by at most |c| min(1/16, √(E (α¹_j)² E (α²_j)²)), which does not depend on c: keys that are hardly read
# count as uncorrelated, and what that changes is added to the error.
#
# For a correlated key, s₁ = m₁ + az + a rest of variance v₁ − a², and s₂ = m₂ + bz + a rest of variance v₂ − b², with
# ab = c; z and both rests are independent. An integral over z turns all four into one product of (nodes u × z) and
# (z × nodes w) matrices. The trapezoid rule is used, with a line of integration moved by iy: its error is e^(−2πy/h)
# times the size of the integrand there. φ grows to e^(y²/2), and the rest stays bounded as long as y max(|a|, |b|) is
# below π/2. So a step h with 2πy/h = y²/2 + DIGITS leaves e^−DIGITS, and a = ±b = √|c| (or the nearest that v₁ and v₂
# allow) needs fewest nodes: the less two scores have in common, the cheaper they are.
#
# The outer rule is the product of a rule for each head (outer_rule.py).

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from qkv.errors import QkvError
from qkv.noise.moments.outer_rule import OuterRule, compressed_rule, outer_error
from qkv.noise.moments.single_head import STEP
from qkv.noise.moments.smoothed_gumbel import FUNCTION_ERROR, GUMBEL_END, MIN_SURVIVAL, REACH, logs_and_ratios, smoothed

NORMAL_TAIL = 8.0
"""Where z ends: P(|N(0,1)| > 8) = 1e-15. The weights are divided by their sum, so that a constant loses nothing of it:
otherwise the product over thousands of keys would."""
INNER_ERROR = 2e-13
"""Bound on the errors of K, A, B and R on a fine grid: the tails of z, and rounding."""
MAX_IGNORED = 1e-11
"""Effect of the correlations that are left out, at most; it is added to the error, and is below the rest."""
MAX_ENTRIES = 2**20
"""Entries (nodes × keys, or × dimensions) held at once: 8 MB for each of a dozen arrays."""
KEYS_A_LOGARITHM = 16
"""Factors that are multiplied before a logarithm is taken: each is at least MIN_SURVIVAL, so none underflows."""
MAX_MATRIX_ENTRIES, MAX_PRODUCTS = 2**27, 3e11
"""Entries of the z × w matrices, 1 GB, and multiplications, some minutes, beyond which a cross-moment is refused."""
MAX_RECORDED_ENTRIES = 2**24
"""Keys × nodes × nodes up to which gradients are recorded: some twenty such arrays, 3 GB."""
MAX_PHASES = 2**21
"""Keys × nodes z × frequencies held at once: 16 MB for each of a few arrays."""
MAX_FREQUENCIES = 400
"""Terms of the series of L and P for narrow scores; wider ones have fewer."""
MIN_COMMON = 0.05
"""Slope in z at least, where the narrower score varies so much: gradients in a covariance of 0 need one."""
MIN_VARIANCE = 1e-16
"""A smaller variance of the first score is replaced by this, so that the common part of two scores has a slope."""


@dataclass(frozen=True)
class Grid:
    """The step of the outer nodes, their reach (to e^−reach), and the digits (error e^−digits) of inner integrals; and
    step and reach for the moments of one head."""

    step: float
    reach: float
    digits: float
    one_head_step: float = STEP
    one_head_reach: float = REACH


FINE = Grid(0.28, 32.0, 35.0)
"""Coarser than in one dimension, as the cost grows with nodes squared: errors of 3e-14 outside and 2e-13 inside."""
ROUGH = Grid(0.55, 16.0, 18.0, 0.4, 20.0)
"""Errors of 1e-6 at a fifteenth of the cost: enough for the gradients of a search."""


@dataclass(frozen=True, eq=False)
class CrossMoments:
    """Raw cross-moments of two heads: E α¹_a α²_a, E o¹ o²ᵀ, and E α¹ α²ᵀ if asked for; errors as in HeadMoments."""

    square: Tensor
    output_square: Tensor
    product: Tensor | None
    error: float
    total_error: float


def cross_moments(
    m: Tensor, C: Tensor, values: Tensor, full: bool = False, grid: Grid = FINE, squares: Tensor | None = None
) -> CrossMoments | float:
    """Cross-moments for score means (2, n) and covariances (n, 2, 2); for independent heads only the error.

    `squares`, (2, n), bounds E α² of each head from above, and so the effect of leaving a correlation out.
    """
    recorded = torch.is_grad_enabled() and (m.requires_grad or C.requires_grad)
    if recorded:
        # A cross-moment has a slope in a covariance of 0, by Price's theorem: no key is left out.
        correlated = (C.detach().diagonal(dim1=1, dim2=2) > 0).any(1).nonzero().flatten()
        ignored = 0.0
    else:
        correlated, ignored = _split_by_effect(C.detach()[:, 0, 1].abs(), squares)
    if len(correlated) == 0:
        return ignored
    m = m - m.detach().max(dim=1, keepdim=True).values
    v = C.diagonal(dim1=1, dim2=2).mT
    rules = [compressed_rule(m[h].detach(), v[h].detach(), grid.step, grid.reach) for h in (0, 1)]
    groups = _group_by_width(correlated, C.detach(), grid.digits)
    nodes = len(rules[0].u), len(rules[1].u)
    _check_cost(*nodes, groups, recorded)
    sums = _integrate(m, C, values, rules[0], rules[1], groups, full)

    # The error is composed as in single_head.py, with the rules of both heads.
    n = m.shape[1]
    lengths = rules[0].length + rules[1].length
    error = 2 * outer_error(grid.step, 1) + rules[0].error + rules[1].error + ignored
    each = INNER_ERROR + FUNCTION_ERROR + 20 * math.exp(-grid.digits)
    return CrossMoments(
        sums.diagonal,
        sums.output,
        sums.product,
        error + each * (2 * n + lengths),
        error + 3 * ignored + each * 2 * n * (1 + lengths),
    )


def _split_by_effect(size: Tensor, squares: Tensor | None) -> tuple[Tensor, float]:
    """The keys whose covariance (of this size) matters, and a bound on the effect of leaving the others' out."""
    bound = size / 16
    if squares is not None:
        bound = torch.minimum(bound, size * squares.clamp(min=0).prod(0).sqrt())
    order = bound.argsort()
    small = bound[order].cumsum(0) <= MAX_IGNORED
    return order[~small].sort().values, float(bound[order[small]].sum())


def _integrate(
    m: Tensor, C: Tensor, values: Tensor, first: OuterRule, second: OuterRule, groups: list[_Group], full: bool
) -> _Sums:
    """The outer integral over u and w, for some nodes u at a time."""
    n, d = values.shape
    u, w = first.u, second.u
    alone = _Uncorrelated.of(m, C, u, w, groups)
    given = [_both_given_z(m, C, group, u, w) for group in groups]
    correlated = sum(len(group.rows) for group in groups)
    sums = _Sums(m.new_zeros(n), m.new_zeros(n), m.new_zeros(d, d), m.new_zeros(n, n) if full else None)
    size = max(1, MAX_ENTRIES // (len(w) * max(correlated, d, n if full else 1)))
    for start in range(0, len(u), size):
        here = slice(start, start + size)
        fours = [_four(group, one[..., here], two) for group, (one, two) in zip(groups, given, strict=True)]
        log_product = alone.log1[:, here].sum(0)[:, None] + alone.log2.sum(0)
        for K, *_ in fours:
            log_product = log_product + _log_of_product(K.clamp(min=MIN_SURVIVAL))
        weight = first.weight[here, None] * second.weight * torch.exp(log_product)
        sums.add(values, weight, alone, here, groups, [_ratios(*four) for four in fours])
    sums.finish(values, torch.cat([alone.rows, *(group.rows for group in groups)]))
    return sums


@dataclass(frozen=True, eq=False)
class _Uncorrelated:
    """Keys whose two scores are uncorrelated: log L and P/L under each head, (keys, nodes)."""

    rows: Tensor
    log1: Tensor
    r1: Tensor
    log2: Tensor
    r2: Tensor

    @classmethod
    def of(cls, m: Tensor, C: Tensor, u: Tensor, w: Tensor, groups: list[_Group]) -> _Uncorrelated:
        """All keys that are in no group."""
        left_over = torch.ones(m.shape[1], dtype=torch.bool)
        left_over[torch.cat([group.rows for group in groups])] = False
        rows = left_over.nonzero().flatten()
        if len(rows) == 0:
            none1, none2 = u.new_zeros(0, len(u)), w.new_zeros(0, len(w))
            return cls(rows, none1, none1, none2, none2)
        log1, r1 = logs_and_ratios(m[0][rows], C[rows, 0, 0], u, 2)
        log2, r2 = logs_and_ratios(m[1][rows], C[rows, 1, 1], w, 2)
        return cls(rows, log1, r1, log2, r2)


@dataclass(eq=False)
class _Sums:
    """Running sums of the outer integral.

    `extra` is what the items a = b add to the product of the flows Σ_a (A_a/K_a) v_a and Σ_b (B_b/K_b) v_b.
    """

    diagonal: Tensor
    extra: Tensor
    output: Tensor
    product: Tensor | None

    def add(
        self,
        values: Tensor,
        weight: Tensor,
        alone: _Uncorrelated,
        here: slice,
        groups: list[_Group],
        ratios: list[tuple[Tensor, Tensor, Tensor]],
    ) -> None:
        """Add the nodes u[here] × w, whose integration weights are (some u, w)."""
        d = values.shape[1]
        r1, r2 = alone.r1[:, here], alone.r2
        flow1 = (r1.mT @ values[alone.rows])[:, None, :].expand(*weight.shape, d)
        flow2 = (r2.mT @ values[alone.rows])[None, :, :].expand(*weight.shape, d)
        self.diagonal = self.diagonal.index_add(0, alone.rows, ((r1 @ weight) * r2).sum(1))
        for group, (a, b, both) in zip(groups, ratios, strict=True):
            k, flat = len(a), weight.flatten()
            own = both.reshape(k, -1) @ flat
            self.diagonal = self.diagonal.index_add(0, group.rows, own)
            self.extra = self.extra.index_add(0, group.rows, own - (a * b).reshape(k, -1) @ flat)
            flow1 = flow1 + (a.reshape(k, -1).mT @ values[group.rows]).reshape(*weight.shape, d)
            flow2 = flow2 + (b.reshape(k, -1).mT @ values[group.rows]).reshape(*weight.shape, d)
        self.output = self.output + (flow1 * weight[..., None]).reshape(-1, d).mT @ flow2.reshape(-1, d)
        if self.product is not None:
            first = torch.cat([r1[:, :, None].expand(-1, *weight.shape), *(a for a, _, _ in ratios)]) * weight
            second = torch.cat([r2[:, None, :].expand(-1, *weight.shape), *(b for _, b, _ in ratios)])
            self.product = self.product + first.reshape(len(first), -1) @ second.reshape(len(second), -1).mT

    def finish(self, values: Tensor, rows: Tensor) -> None:
        """Add the diagonal terms; `rows` are the keys in the order in which `product` was summed."""
        self.output = self.output + (values * self.extra[:, None]).mT @ values
        if self.product is not None:
            place = rows.argsort()
            product = self.product[place][:, place]
            self.product = product - torch.diag(product.diagonal()) + torch.diag(self.diagonal)


@dataclass(frozen=True, eq=False)
class _Group:
    """Correlated keys whose scores have common parts of similar size, and the nodes z and weights of their integrals.

    `share` is the part of the deviation of the narrower score (`narrow`: 0 or 1) that is common to both. It is a
    constant for gradients: the integral does not depend on it.
    """

    rows: Tensor
    narrow: Tensor
    share: Tensor
    z: Tensor
    density: Tensor

    def slopes_and_rests(self, C: Tensor) -> tuple[Tensor, Tensor]:
        """The slopes a and b of both scores in z, and the variances of their rests, each (2, keys)."""
        own = C[self.rows]
        each = torch.arange(len(self.rows))
        v, wider = own[each, self.narrow, self.narrow], own[each, 1 - self.narrow, 1 - self.narrow]
        slope = self.share * _deviation(v)
        other = own[:, 0, 1] / slope
        rest = wider - other**2
        # Where the two scores are perfectly correlated, the rest is rounding: below 1e-13 of the variance it is taken
        # to be 0, which changes E f(s) by at most |f''| rest/2, less than the other parts of the error.
        rest = torch.where(rest.detach() <= 1e-13 * wider.detach(), torch.zeros_like(rest), rest)
        slopes = torch.stack([slope, other])
        rests = torch.stack([v * (1 - self.share**2), rest])
        order = torch.stack([self.narrow, 1 - self.narrow])  # the row of the first head, and of the second
        return slopes.gather(0, order), rests.gather(0, order)


def _group_by_width(correlated: Tensor, C: Tensor, digits: float) -> list[_Group]:
    """Correlated keys, grouped by powers of two of the width max(|a|, |b|) that sets the step in z."""
    c = C[correlated, 0, 1].abs()
    sd, narrow = _deviation(C[correlated].diagonal(dim1=1, dim2=2)).min(1)
    common = torch.minimum(c.sqrt().clamp(min=MIN_COMMON), sd)
    share, width = common / sd, torch.maximum(common, c / common)
    bins = (width / 0.4).clamp(min=1).log2().ceil()
    out = []
    for b in bins.unique():
        own = bins == b
        strip = 0.5 * math.pi / float(width[own].max())
        # In a wide strip φ alone sets the step: y = 2π/h is best, and h = 2π/√(2 DIGITS).
        best = min(strip, math.sqrt(2 * digits))
        step = 2 * math.pi * best / (digits + best**2 / 2)
        count = int(NORMAL_TAIL / step) + 1
        z = step * torch.arange(-count, count + 1, dtype=torch.float64)
        density = torch.softmax(-0.5 * z**2, 0)
        out.append(_Group(correlated[own], narrow[own], share[own], z, density))
    return out


def _both_given_z(m: Tensor, C: Tensor, group: _Group, u: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    slopes, rests = group.slopes_and_rests(C)
    return _given_z(m[0], slopes[0], rests[0], group, u), _given_z(m[1], slopes[1], rests[1], group, w)


def _given_z(m: Tensor, slope: Tensor, rest: Tensor, group: _Group, nodes: Tensor) -> Tensor:
    """L and P of a score given z, (2, keys, z, nodes)."""
    centre = m[group.rows, None] + slope[:, None] * group.z
    size = max(1, MAX_PHASES // (len(group.z) * MAX_FREQUENCIES))
    parts = []
    for some in range(0, len(centre), size):
        mean = centre[some : some + size]
        variance = rest[some : some + size, None].expand_as(mean)
        found = _survival_and_density(mean.reshape(-1), variance.reshape(-1), nodes)
        parts.append(torch.stack(found).reshape(2, *mean.shape, len(nodes)))
    return torch.cat(parts, dim=1)


def _four(group: _Group, one: Tensor, two: Tensor) -> list[Tensor]:
    """K, A, B and R of a group's keys, each of shape (keys, nodes u, nodes w), from both scores given z."""
    left = torch.cat([one[0], one[1]], dim=-1).mT * group.density  # (keys, 2 nodes u, z)
    four = left @ torch.cat([two[0], two[1]], dim=-1)
    nu, nw = one.shape[-1], two.shape[-1]
    return [four[:, :nu, :nw], four[:, nu:, :nw], four[:, :nu, nw:], four[:, nu:, nw:]]


def _log_of_product(K: Tensor) -> Tensor:
    """Σ log K over the keys; without gradients, of the products of a few keys at a time."""
    whole = 0 if K.requires_grad else len(K) - len(K) % KEYS_A_LOGARITHM
    out = K[whole:].log().sum(0)
    if whole:
        products = K[:whole].reshape(KEYS_A_LOGARITHM, -1, *K.shape[1:])
        out = out + functools.reduce(torch.mul, products).log_().sum(0)
    return out


def _ratios(K: Tensor, A: Tensor, B: Tensor, R: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A/K, B/K and R/K; 0 where K is below MIN_SURVIVAL."""
    inverse = torch.where(K.detach() > MIN_SURVIVAL, 1 / K.clamp(min=MIN_SURVIVAL), 0.0)
    return A * inverse, B * inverse, R * inverse


def _deviation(variance: Tensor) -> Tensor:
    return variance.clamp(min=MIN_VARIANCE).sqrt()


def _survival_and_density(m: Tensor, v: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """L and P, each (keys, nodes), for v ≥ 0."""
    noisy = v.detach() > 0
    x = torch.exp((m[:, None] + w).clamp(max=GUMBEL_END + 2))
    L, P = torch.exp(-x), x * torch.exp(-x)
    if bool(noisy.any()):
        rows = noisy.nonzero().flatten()
        found = smoothed(m[rows], v[rows], w, 2)
        L, P = L.index_copy(0, rows, found[0]), P.index_copy(0, rows, found[1])
    return L, P


def _check_cost(nu: int, nw: int, groups: list[_Group], recorded: bool) -> None:
    """Refuse integrals that would take too much memory or time."""
    rows = sum(len(group.rows) * len(group.z) for group in groups)
    keys = sum(len(group.rows) for group in groups)
    too_large = rows * 2 * nw > MAX_MATRIX_ENTRIES or rows * nu * nw > MAX_PRODUCTS
    if too_large or (recorded and keys * nu * nw > MAX_RECORDED_ENTRIES):
        raise QkvError(
            f"the cross-covariance of two heads with {keys} correlated keys, over {nu} × {nw} nodes",
            "the two-dimensional integral is too large: the scores vary too widely, or the keys are too many",
            "Use smaller queries or noise, or qkv.noise.sample",
        )
