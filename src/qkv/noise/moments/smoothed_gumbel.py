"""Gaussian-smoothed Gumbel functions of many keys at many nodes, as Fourier series in one matrix product."""

# All moments are made of three functions of a key, with its score s ~ N(m, v):
#     L(u) = E ℓ(u + s),  ℓ(y) = e^(−e^y);     P(u) = E p(u + s),  p(y) = e^y ℓ(y) = −ℓ'(y);
#     Q(u) = E q(u + s),  q(y) = e^(2y) ℓ(y).
# −log of an exponential variable has a Gumbel distribution, so L is the probability that s + Gumbel is below −u, and
# P its density.
#
# Smoothing is a convolution, so in frequency it is a product:  P(u) = 1/2π ∫ Γ(1 − iω) e^(−vω²/2) e^(iω(u+m))
# dω, since ∫ p(y) e^(−iωy) dy = Γ(1 − iω), and Γ(2 − iω) for q. Up to rounding, P is 0 outside −A < u + m < B.
# Repeat it with alternating signs and half-period T ≥ A + B: the integral becomes the sum over the odd
# harmonics ω = π(2k+1)/T times 2/T, on that window without error; and, having no constant term, it can be
# integrated term by term to L − ½, which alternates in the same way. Γ falls like e^(−πω/2) and the Gaussian
# like e^(−vω²/2): few frequencies are left. e^(iω(u+m)) = e^(iωu) e^(iωm) separates keys from nodes, so n keys at
# G nodes are one product (n × 2W)(2W × 3G).

from __future__ import annotations

import functools
import math

import numpy as np
import torch
from scipy.special import loggamma
from torch import Tensor

from qkv.noise.moments.smoothed_gumbel_direct import direct_is_cheaper, smoothed_direct

REACH = 37.0
"""e^−37 = 9e-17: where a simple exponential is rounding."""
NORMAL_TAIL = 8.4
"""P(|N(0,1)| > 8.4) = 4e-17."""
GUMBEL_END = 3.9
"""(1 + e^3.9) exp(−e^3.9) = 2e-20: where ℓ, p and q vanish."""
MIN_SURVIVAL = 1e-15
"""Where L is below this, the rest of the key's own integral is less than this and is left out."""
FUNCTION_ERROR = 4e-15
"""Bound on the errors of L, P and Q: rounding of phases and sums; errors measured in the tests are a third of this."""
TABLE_LENGTH = {0.125: 128.0, 0.25: 256.0, 0.5: 256.0}
"""Length of the interval of u for which the nodes' factors are cached, for each step of outer integrals."""
MAX_SMALL_ENTRIES = 2**17
"""Keys × nodes up to which narrow scores may be integrated directly."""
MAX_FACTORS = 2**20
"""Frequencies × nodes whose factors are held at once: 50 MB."""
SMALLEST_BIN_SD = 0.25
"""Keys are grouped by powers of two of their standard deviation; all below this are one group, SMALLEST_BIN."""
SMALLEST_BIN, NO_NOISE_BIN = -99, -100


def left_tail(v: Tensor) -> Tensor:
    """How far noise moves the left end: E min(1, e^(u+s)) ≤ e^(u+m+tail), up to rounding."""
    return torch.minimum(v / 2, NORMAL_TAIL * v.sqrt())


def smoothed(m: Tensor, v: Tensor, u: Tensor, parts: int = 3) -> Tensor:
    """The first `parts` of L, P, Q at ascending nodes u, (parts, keys, nodes), for v > 0; differentiable in m and v."""
    step = _cached_step(u)
    groups = _groups_by_width(v)
    return _in_order([_fourier_series(_take(m, g), _take(v, g), u, parts, b, step) for b, g in groups], groups)


def logs_and_ratios(m: Tensor, v: Tensor, u: Tensor, parts: int = 3) -> Tensor:
    """The first `parts` of log L, P/L, Q/L at ascending nodes u, (parts, keys, nodes), for v ≥ 0; differentiable.

    Keys without noise have the closed form −x, x, x² with x = e^(u+m).
    """
    recorded = torch.is_grad_enabled() and (m.requires_grad or v.requires_grad)
    few = not recorded and len(m) * len(u) <= MAX_SMALL_ENTRIES
    step = _cached_step(u)
    groups = _groups_by_width(v)
    found = []
    for b, rows in groups:
        mean, variance = _take(m, rows), _take(v, rows)
        if b == NO_NOISE_BIN:
            x = torch.exp(mean[:, None] + u)
            found.append(torch.stack([-x, x, x * x][:parts]))
        elif few and b < 0 and direct_is_cheaper(len(mean), len(u), _sd_range(b)[1]):
            found.append(_logs(smoothed_direct(mean, variance.sqrt(), u, parts, _sd_range(b)[1])))
        else:
            found.append(_logs(_fourier_series(mean, variance, u, parts, b, step)))
    return _in_order(found, groups)


def distinct_scores(m: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The distinct pairs (mean, variance) among scores, and the index of each score's pair among them."""
    pairs = np.ascontiguousarray(np.stack([m.numpy(), v.numpy()], -1)).view(np.complex128)[..., 0]
    kinds, where = np.unique(pairs, return_inverse=True)
    found = torch.from_numpy(np.stack([kinds.real, kinds.imag]))
    return found[0], found[1], torch.from_numpy(where.reshape(m.shape))


def _logs(functions: Tensor) -> Tensor:
    """log L, P/L, Q/L, written over L, P, Q; where L is below MIN_SURVIVAL the ratios are 0."""
    dead = functions[0].detach() <= MIN_SURVIVAL
    L = functions[0].masked_fill(dead, MIN_SURVIVAL)
    functions.div_(L).masked_fill_(dead, 0.0)
    functions[0] = L.log()
    return functions


_Group = tuple[int, Tensor | None]
"""A bin of standard deviations and the rows of its keys, None for all keys."""


def _groups_by_width(v: Tensor) -> list[_Group]:
    """Keys grouped by the power of two of their standard deviation."""
    rows: dict[int, list[int]] = {}
    for i, sd in enumerate(v.detach().sqrt().tolist()):
        b = math.frexp(sd)[1] - 1 if sd >= SMALLEST_BIN_SD else SMALLEST_BIN if sd else NO_NOISE_BIN
        rows.setdefault(b, []).append(i)
    if len(rows) == 1:
        return [(next(iter(rows)), None)]
    return [(b, torch.tensor(found)) for b, found in rows.items()]


def _take(x: Tensor, rows: Tensor | None) -> Tensor:
    return x if rows is None else x.index_select(0, rows)


def _in_order(found: list[Tensor], groups: list[_Group]) -> Tensor:
    """The results of all groups, (parts, keys, nodes), in the order of the keys."""
    if len(found) == 1:
        return found[0]
    place = torch.cat([rows for _, rows in groups if rows is not None]).argsort()
    return torch.cat(found, dim=1).index_select(1, place)


def _sd_range(b: int) -> tuple[float, float]:
    """The standard deviations of a bin."""
    return (0.0, SMALLEST_BIN_SD) if b == SMALLEST_BIN else (2.0**b, 2.0 ** (b + 1))


@functools.lru_cache(maxsize=64)
def _series(b: int) -> tuple[float, float, Tensor, Tensor, Tensor]:
    """Window ends A and B, frequencies ω, −ω²/2, and coefficients of L, P, Q, for the standard deviations of a bin."""
    low, high = _sd_range(b)
    A = REACH + min(high**2 / 2, NORMAL_TAIL * high)
    B = GUMBEL_END + NORMAL_TAIL * high
    T = A + B
    top = 1e-6
    while 0.5 * np.pi * top + 0.5 * (low * top) ** 2 - 0.5 * np.log1p(2 * np.pi * top) - np.log1p(top) < 39:
        top *= 1.02
    omega = np.pi * (2 * np.arange(int(top * T / (2 * np.pi)) + 2) + 1) / T
    P = 2 / T * np.exp(loggamma(1 - 1j * omega))
    L = -P / (1j * omega)
    Q = P * (1 - 1j * omega)
    frequencies = torch.from_numpy(omega)
    return A, B, frequencies, -0.5 * frequencies**2, torch.from_numpy(np.stack([L, P, Q]))


def _fourier_series(m: Tensor, v: Tensor, u: Tensor, parts: int, b: int, step: float | None) -> Tensor:
    """The first `parts` of L, P, Q for keys of one bin; with a step, the nodes are u₀ + step·k, and cached."""
    A, B, omega, exponents, coefficients = _series(b)
    start, stop = _window(m, u, A, B)
    if 2 * (stop - start) < len(u):  # a wider key sets the nodes: most of them are outside of these keys' windows
        before, after = u.new_zeros(parts, len(m), start), u.new_zeros(parts, len(m), len(u) - stop)
        before[0] = 1.0
        inner = [_fourier_series(m, v, u[start:stop], parts, b, None)] if stop > start else []
        return torch.cat([before, *inner, after], dim=2)
    if step is None and len(omega) * len(u) > MAX_FACTORS and len(u) > 1:
        some = u.split(max(1, MAX_FACTORS // len(omega)))
        return torch.cat([_fourier_series(m, v, part, parts, b, None) for part in some], dim=2)
    period = 2 * (A + B)
    first, last = float(u[0]), float(u[-1])
    # Keys far outside every window would have large and inaccurate phases; their values are replaced below.
    near = m.clamp(-A - last, B - first)
    if step is None:
        origin, nodes = 0.0, _node_factors(coefficients[:parts], omega, u, period)
    else:  # e^(iω(m+u)) with u = u₀ + step·k: u₀ is added to the keys, and the rest is the same at every call
        origin, nodes = math.fmod(first, period), _cached_node_factors(b, step)[:parts, :, : len(u)]
    phase = (torch.fmod(near, period) + origin)[:, None] * omega
    damping = torch.exp(v[:, None] * exponents)
    keys = torch.cat([damping * phase.cos(), damping * phase.sin()], dim=1)
    series = keys @ nodes
    with torch.no_grad():
        y = m[:, None] + u
        left = y <= -A
        outside = (y >= B).logical_or_(left)
    # The series of L is that of L − ½. L is 1 to the left of the window; elsewhere outside all three functions are 0.
    # All three are below 1. Writing in place saves allocations, which cost more than the arithmetic.
    series[0] += 0.5
    series.clamp_(0.0, 1.0).masked_fill_(outside, 0.0)
    series[0].masked_fill_(left, 1.0)
    return series


def _window(m: Tensor, u: Tensor, A: float, B: float) -> tuple[int, int]:
    """The nodes u[start:stop] at which a key's functions are not constant: −A < u + m < B."""
    ends = u.new_tensor([-A - float(m.detach().max()), B - float(m.detach().min())])
    start, stop = torch.searchsorted(u, ends).tolist()
    return start, max(start, stop)


def _cached_step(u: Tensor) -> float | None:
    """The step of equidistant nodes whose factors are cached; None for other nodes."""
    step = float(u[1]) - float(u[0]) if len(u) > 1 else 0.0
    if step not in TABLE_LENGTH or len(u) > TABLE_LENGTH[step] / step:
        return None
    return step if torch.equal(u, u[0] + _table_nodes(step)[: len(u)]) else None


@functools.lru_cache(maxsize=len(TABLE_LENGTH))
def _table_nodes(step: float) -> Tensor:
    """0, step, 2 step, …, over the length that is cached."""
    return step * torch.arange(int(TABLE_LENGTH[step] / step), dtype=torch.float64)


def _node_factors(coefficients: Tensor, omega: Tensor, u: Tensor, period: float) -> Tensor:
    """The nodes' side of the matrix product, (parts, 2W, G)."""
    # Modulo the period, to between ± half of it: that is exact, so that large phases lose no digits.
    x = torch.fmod(u, period)
    x = torch.where(x > period / 2, x - period, torch.where(x < -period / 2, x + period, x))
    rotated = coefficients[:, :, None] * torch.exp(1j * omega[:, None] * x)
    return torch.cat([rotated.real, -rotated.imag], dim=1)


@functools.lru_cache(maxsize=24)
def _cached_node_factors(b: int, step: float) -> Tensor:
    """The same for nodes 0, step, 2 step, …, which depend on no key; 10 MB at most."""
    A, B, omega, _, coefficients = _series(b)
    return _node_factors(coefficients, omega, _table_nodes(step), 2 * (A + B))
