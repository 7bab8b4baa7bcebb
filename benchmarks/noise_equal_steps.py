"""The former method of the moments of two heads, for comparison: equal steps in both outer variables."""

# The integrals are those of src/qkv/noise/moments/head_pairs.py. Here the outer nodes are equal steps from where the
# integrals are rounding to where they are again, and the whole first score is taken as the common part of two scores.

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from qkv.design.solvers.conic import smallest_query
from qkv.design.specs import BlendSpec
from qkv.errors import QkvError
from qkv.noise.moments import mixture, single_head
from qkv.noise.moments.head_pairs import FINE, CrossMoments, Grid
from qkv.noise.moments.outer_rule import OuterRule, outer_error
from qkv.noise.moments.single_head import outer_nodes
from qkv.noise.moments.smoothed_gumbel import FUNCTION_ERROR, GUMBEL_END, MIN_SURVIVAL, logs_and_ratios, smoothed
from qkv.noise.robust import search

NORMAL_TAIL = 7.6
"""Where z ends: P(|N(0,1)| > 7.6) = 3e-14."""
INNER_ERROR = 2e-13
"""Bound on the errors of K, A, B and R on a fine grid: the tails of z, and rounding."""
MAX_IGNORED = 1e-11
"""A sum of |covariances|/16 up to which correlations are left out; it is added to the error, and is below the rest."""
MAX_ENTRIES = 2**22
"""Entries (nodes × keys, or × dimensions) held at once."""
MAX_MATRIX_ENTRIES, MAX_PRODUCTS = 2**27, 3e11
"""Entries of the z × w matrices, 1 GB, and multiplications, some minutes, beyond which a cross-moment is refused."""
MAX_RECORDED_ENTRIES = 2**24
"""Keys × nodes × nodes up to which gradients are recorded: some twenty such arrays, 3 GB."""
MIN_VARIANCE = 1e-16
"""A smaller variance of the first score is replaced by this, so that the common part of two scores has a slope."""


def cross_moments(
    m: Tensor, C: Tensor, values: Tensor, full: bool = False, grid: Grid = FINE, squares: Tensor | None = None
) -> CrossMoments | float:
    """Cross-moments for score means (2, n) and covariances (n, 2, 2); for independent heads only the error."""
    recorded = torch.is_grad_enabled() and (m.requires_grad or C.requires_grad)
    if recorded:
        # A cross-moment has a slope in a covariance of 0, by Price's theorem: no key is left out.
        correlated = (C.detach().diagonal(dim1=1, dim2=2) > 0).any(1).nonzero().flatten()
        ignored = 0.0
    else:
        size = C[:, 0, 1].detach().abs()
        order = size.argsort()
        small = size[order].cumsum(0) / 16 <= MAX_IGNORED
        ignored = float(size[order[small]].sum()) / 16
        correlated = order[~small].sort().values
    if len(correlated) == 0:
        return ignored
    m = m - m.detach().max(dim=1, keepdim=True).values
    v = C.diagonal(dim1=1, dim2=2).mT
    u, w = (outer_nodes(m[h].detach(), v[h].detach(), grid.step, grid.reach) for h in (0, 1))
    groups = _group_by_width(correlated, C.detach(), grid.digits)
    _check_cost(len(u), len(w), groups, recorded)
    sums = _integrate(m, C, values, u, w, groups, full, grid.step)

    # The error is composed as in single_head.py, with the intervals of both heads.
    n = m.shape[1]
    lengths = float(u[-1] - u[0]) + float(w[-1] - w[0])
    error = 2 * outer_error(grid.step, 1) + 4 * math.exp(-grid.reach) + ignored
    each = INNER_ERROR + FUNCTION_ERROR + 20 * math.exp(-grid.digits)
    return CrossMoments(
        sums.diagonal,
        sums.output,
        sums.product,
        error + each * (2 * n + lengths),
        error + 3 * ignored + each * 2 * n * (1 + lengths),
    )


def _integrate(
    m: Tensor, C: Tensor, values: Tensor, u: Tensor, w: Tensor, groups: list[_Group], full: bool, step: float
) -> _Sums:
    """The outer integral over u and w, for some nodes u at a time."""
    n, d = values.shape
    alone = _Uncorrelated.of(m, C, u, w, groups)
    conditionals = [_second_given_z(m, C, group, w) for group in groups]
    correlated = sum(len(group.rows) for group in groups)
    sums = _Sums(m.new_zeros(n), m.new_zeros(n), m.new_zeros(d, d), m.new_zeros(n, n) if full else None)
    size = max(1, MAX_ENTRIES // (len(w) * max(correlated, d, n if full else 1)))
    for start in range(0, len(u), size):
        here = slice(start, start + size)
        fours = [_four(m, C, g, u[here], given) for g, given in zip(groups, conditionals, strict=True)]
        log_product = alone.log1[:, here].sum(0)[:, None] + alone.log2.sum(0)
        for K, *_ in fours:
            log_product = log_product + K.clamp(min=MIN_SURVIVAL).log().sum(0)
        weight = step**2 * torch.exp(log_product)
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
            own = (both * weight).sum((1, 2))
            self.diagonal = self.diagonal.index_add(0, group.rows, own)
            self.extra = self.extra.index_add(0, group.rows, own - (a * b * weight).sum((1, 2)))
            flow1 = flow1 + torch.einsum("kuw,kd->uwd", a, values[group.rows])
            flow2 = flow2 + torch.einsum("kuw,kd->uwd", b, values[group.rows])
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
    """Correlated keys of similar standard deviation, and the nodes z and weights of their inner integrals."""

    rows: Tensor
    z: Tensor
    density: Tensor


def _group_by_width(correlated: Tensor, C: Tensor, digits: float) -> list[_Group]:
    """Correlated keys, grouped by powers of two of the width c max(σ₁, |ρ|σ₂) that sets the step in z."""
    sd = _deviation(C[correlated, 0, 0])
    width = torch.maximum(sd, C[correlated, 0, 1].abs() / sd)
    bins = (width / 0.4).clamp(min=1).log2().ceil()
    out = []
    for b in bins.unique():
        rows = correlated[bins == b]
        strip = 0.5 * math.pi / float(width[bins == b].max())
        # In a wide strip φ alone sets the step: c = 2π/h is best, and h = 2π/√(2 DIGITS).
        best = min(strip, math.sqrt(2 * digits))
        step = 2 * math.pi * best / (digits + best**2 / 2)
        count = int(NORMAL_TAIL / step) + 1
        z = step * torch.arange(-count, count + 1, dtype=torch.float64)
        out.append(_Group(rows, z, step * torch.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)))
    return out


def _second_given_z(m: Tensor, C: Tensor, group: _Group, w: Tensor) -> Tensor:
    """L and P of the second score given z, side by side, (keys, z, 2 nodes w)."""
    rows = group.rows
    v2, slope = C[rows, 1, 1], C[rows, 0, 1] / _deviation(C[rows, 0, 0])
    rest = v2 - slope**2
    # Where the two scores are perfectly correlated, the rest is rounding: below 1e-13 v₂ it is taken to be 0,
    # which changes E f(s) by at most |f''| rest/2, less than the other parts of the error.
    rest = torch.where(rest.detach() <= 1e-13 * v2.detach(), torch.zeros_like(rest), rest)
    centre = m[1][rows, None] + slope[:, None] * group.z
    parts = _survival_and_density(centre.reshape(-1), rest[:, None].expand_as(centre).reshape(-1), w)
    return torch.cat([part.reshape(len(rows), len(group.z), len(w)) for part in parts], dim=2)


def _four(m: Tensor, C: Tensor, group: _Group, u: Tensor, given_z: Tensor) -> list[Tensor]:
    """K, A, B and R of a group's keys, each of shape (keys, nodes u, nodes w)."""
    sd = _deviation(C[group.rows, 0, 0])
    y = (m[0][group.rows, None] + sd[:, None] * group.z)[:, None, :] + u[:, None]
    x = torch.exp(y.clamp(max=GUMBEL_END + 2))
    survival = torch.exp(-x)
    four = (torch.cat([survival, x * survival], dim=1) * group.density) @ given_z
    nu, nw = len(u), given_z.shape[2] // 2
    return [four[:, :nu, :nw], four[:, nu:, :nw], four[:, :nu, nw:], four[:, nu:, nw:]]


def _ratios(K: Tensor, A: Tensor, B: Tensor, R: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A/K, B/K and R/K; 0 where K is below MIN_SURVIVAL."""
    alive = K.detach() > MIN_SURVIVAL
    safe = torch.where(alive, K, torch.ones_like(K))
    a, b, both = (torch.where(alive, x / safe, torch.zeros_like(x)) for x in (A, B, R))
    return a, b, both


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


def equal_steps(m: Tensor, v: Tensor, step: float, reach: float) -> OuterRule:
    """The former rule for one head: steps of a quarter, whatever the noise and the number of keys."""
    u = outer_nodes(m, v, 0.25)
    return OuterRule(u, torch.full_like(u, 0.25), float(u[-1] - u[0]), outer_error(0.25, 2))


def conic_query(keys: Any, wanted: BlendSpec, tol: float, metric: Any, start: Any) -> Any:
    """The former start of harden: each by the conic solver."""
    solved = smallest_query(keys, list(wanted.items), wanted.wanted, tol, metric)
    return solved.x if solved.status == "solved" else None


@contextlib.contextmanager
def former_method() -> Iterator[None]:
    """Within the block, moments and harden are computed as they were."""
    places = ((mixture, "cross_moments"), (single_head, "outer_rule"), (search, "_least_noisy_query"))
    now = [getattr(module, name) for module, name in places]
    for (module, name), former in zip(places, (cross_moments, equal_steps, conic_query), strict=True):
        setattr(module, name, former)
    try:
        yield
    finally:
        for (module, name), found in zip(places, now, strict=True):
            setattr(module, name, found)
