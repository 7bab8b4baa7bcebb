"""A Gumbel law blurred by a Gaussian, for many keys and many nodes at once, by one matrix product."""

# The three functions of one key, with its score s ~ N(m, v), that every moment is made of:
#     L(u) = E ℓ(u + s),  ℓ(y) = e^(−e^y);     P(u) = E p(u + s),  p(y) = e^y ℓ(y) = −ℓ'(y);
#     Q(u) = E q(u + s),  q(y) = e^(2y) ℓ(y).
# −log of an exponential variable is Gumbel's, so L is the chance that s + Gumbel stays below −u, and P its
# density.
#
# Blurring is a convolution, so in frequency it is a product:  P(u) = 1/2π ∫ Γ(1 − iω) e^(−vω²/2) e^(iω(u+m))
# dω, since ∫ p(y) e^(−iωy) dy = Γ(1 − iω), and Γ(2 − iω) for q. P lives on −A < u + m < B, beyond rounding.
# Repeat it with alternating signs and half-period T ≥ A + B: the integral becomes the sum over the odd
# harmonics ω = π(2k+1)/T times 2/T, on that window without error; and, having no constant term, it can be
# integrated term by term to L − ½, which alternates in the same way. Γ falls like e^(−πω/2) and the Gaussian
# like e^(−vω²/2): few frequencies are left. e^(iω(u+m)) = e^(iωu) e^(iωm) parts keys from nodes, so n keys at
# G nodes are one product (n × 2W)(2W × 3G).

from __future__ import annotations

import functools
import math

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import loggamma
from torch import Tensor

from qkv.noise.moments.smoothed_gumbel_direct import affordable, integrated

Array = NDArray[np.float64]

REACH = 37.0
"""e^−37 = 9e-17: where a simple exponential is rounding."""
NORMAL = 8.4
"""P(|N(0,1)| > 8.4) = 4e-17."""
FALL = 3.9
"""(1 + e^3.9) exp(−e^3.9) = 6e-20: where ℓ, p and q have ended."""
FLOOR = 1e-15
"""Below this L, what is left of the key's own integral is less than this, and is left out."""
DELTA = 4e-15
"""How far L, P and Q lie from the truth: rounding of phases and sums; the tests see a third of it."""
ROOM = {0.125: 128.0, 0.25: 256.0, 0.5: 256.0}
"""Steps of outer integrals whose nodes are kept from call to call, and the length that they cover."""
FEW = 2**17
"""Keys × nodes that are few."""
FIRST_BIN, TINY, NONE = 0.25, -99, -100
"""Keys are taken together by powers of two of their standard deviation, those below ¼ all in the bin TINY."""


def left_tail(v: Tensor) -> Tensor:
    """How far noise moves the left end: E min(1, e^(u+s)) ≤ e^(u+m+tail), but for rounding."""
    return torch.minimum(v / 2, NORMAL * v.sqrt())


@functools.lru_cache(maxsize=64)
def _frequencies(low: float, high: float) -> tuple[float, float, Tensor, Tensor]:
    """Window, frequencies and coefficients of L, P, Q for standard deviations from low to high."""
    A = REACH + min(high**2 / 2, NORMAL * high)
    B = FALL + NORMAL * high
    T = A + B
    top = 1e-6
    while 0.5 * np.pi * top + 0.5 * (low * top) ** 2 - 0.5 * np.log1p(2 * np.pi * top) - np.log1p(top) < 39:
        top *= 1.02
    omega = np.pi * (2 * np.arange(int(top * T / (2 * np.pi)) + 2) + 1) / T
    P = 2 / T * np.exp(loggamma(1 - 1j * omega))
    L = -P / (1j * omega)
    Q = P * (1 - 1j * omega)
    return A, B, torch.from_numpy(omega), torch.from_numpy(np.stack([L, P, Q]))


def blurred(m: Tensor, v: Tensor, u: Tensor, parts: int = 3) -> list[Tensor]:
    """The first `parts` of L, P, Q, each (keys, nodes), for positive v; differentiable in m and v."""
    with torch.no_grad():
        sd = v.sqrt()
        bins = torch.where(sd < FIRST_BIN, float(TINY), sd.clamp(min=FIRST_BIN).log2().floor())
    present = bins.unique().tolist()
    if len(present) == 1:
        return _one_bin(m, v, u, parts, int(present[0]))
    out = [m.new_zeros(len(m), len(u)) for _ in range(parts)]
    for b in present:
        rows = (bins == b).nonzero().flatten()
        for i, found in enumerate(_one_bin(m[rows], v[rows], u, parts, int(b))):
            out[i] = out[i].index_copy(0, rows, found)
    return out


def _one_bin(m: Tensor, v: Tensor, u: Tensor, parts: int, b: int) -> list[Tensor]:
    A, B, omega, coefficients = _frequencies(*_widths(b))
    damp = torch.exp(-0.5 * v[:, None] * omega**2)
    # Keys far outside every window have phases too large to be told apart; they are replaced below.
    near = m.clamp(-A - float(u.max()), B - float(u.min()))
    phase = _wrapped(near, A + B)[:, None] * omega
    cos, sin = damp * phase.cos(), damp * phase.sin()
    step = float(u[1] - u[0]) if len(u) > 1 else 0.0
    if (
        step in ROOM
        and len(u) <= ROOM[step] / step
        and torch.equal(u, u[0] + step * torch.arange(len(u), dtype=torch.float64))
    ):
        # e^(iω(m+u)) with u = u₀ + step·k: the turn by u₀ goes to the keys, what is left is the same at every call.
        turn = _wrapped(u[:1], A + B) * omega
        cos, sin = cos * turn.cos() - sin * turn.sin(), sin * turn.cos() + cos * turn.sin()
        nodes = _kept(b, step)
    else:
        nodes = _turned(coefficients[:parts], omega, u, A + B)
    keys = torch.cat([cos, sin], dim=1)
    found = [keys @ nodes[i, :, : len(u)] for i in range(parts)]
    with torch.no_grad():
        y = m[:, None] + u
        left, right = y <= -A, y >= B
        inside = ~(left | right)
    found[0] = torch.where(inside, (found[0] + 0.5).clamp(0.0, 1.0), left.to(m.dtype))
    for i in range(1, parts):
        found[i] = torch.where(inside, found[i].clamp(min=0.0), torch.zeros_like(found[i]))
    return found


def _widths(b: int) -> tuple[float, float]:
    """The standard deviations of a bin."""
    return (0.0, FIRST_BIN) if b == TINY else (2.0**b, 2.0 ** (b + 1))


def _turned(coefficients: Tensor, omega: Tensor, u: Tensor, half: float) -> Tensor:
    """The nodes' side of the product, (parts, 2W, G)."""
    turned = coefficients[:, :, None] * torch.exp(1j * omega[:, None] * _wrapped(u, half))
    return torch.cat([turned.real, -turned.imag], dim=1)


@functools.lru_cache(maxsize=24)
def _kept(b: int, step: float) -> Tensor:
    """The same for nodes 0, step, 2 step, …, which no key changes; 10 MB at most."""
    A, B, omega, coefficients = _frequencies(*_widths(b))
    return _turned(coefficients, omega, step * torch.arange(int(ROOM[step] / step), dtype=torch.float64), A + B)


def _wrapped(x: Tensor, half: float) -> Tensor:
    """x modulo the period, between −half and half: exact, so that large phases lose no digits."""
    x = torch.fmod(x, 2 * half)
    return torch.where(x > half, x - 2 * half, torch.where(x < -half, x + 2 * half, x))


def alike(m: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The different pairs (mean, variance) among scores, and which of them each score has."""
    pairs = np.ascontiguousarray(np.stack([m.numpy(), v.numpy()], -1)).view(np.complex128)[..., 0]
    kinds, where = np.unique(pairs, return_inverse=True)
    found = torch.from_numpy(np.stack([kinds.real, kinds.imag]))
    return found[0], found[1], torch.from_numpy(where.reshape(m.shape))


def logs_and_ratios(m: Tensor, v: Tensor, u: Tensor, parts: int = 3) -> list[Tensor]:
    """The first `parts` of log L, P/L, Q/L, each (keys, nodes); in closed form for keys without noise."""
    recorded = torch.is_grad_enabled() and (m.requires_grad or v.requires_grad)
    if not recorded and len(m) * len(u) <= FEW:
        return [torch.from_numpy(part) for part in _of_few(m.numpy(), v.numpy(), u.numpy(), parts)]
    noisy = v.detach() > 0
    if not bool(noisy.any()):
        return _still(m, u, parts)
    if bool(noisy.all()):
        return _noisy(m, v, u, parts)
    here, there = noisy.nonzero().flatten(), (~noisy).nonzero().flatten()
    pairs = zip(_noisy(m[here], v[here], u, parts), _still(m[there], u, parts), strict=True)
    empty = m.new_zeros(len(m), len(u))
    return [empty.index_copy(0, here, a).index_copy(0, there, b) for a, b in pairs]


def _of_few(m: Array, v: Array, u: Array, parts: int) -> Array:
    """The same for few keys, where calls cost more than numbers: without gradients, and narrow keys directly."""
    out = np.empty((parts, len(m), len(u)))
    sd = np.sqrt(v)
    bins = np.where(sd < FIRST_BIN, TINY, np.floor(np.log2(np.maximum(sd, FIRST_BIN)))).astype(int)
    bins[v == 0] = NONE
    step = float(u[1] - u[0]) if len(u) > 1 else 0.0
    even = step in ROOM and len(u) <= ROOM[step] / step and np.array_equal(u, u[0] + step * np.arange(len(u)))
    for b in set(bins.tolist()):
        rows = np.flatnonzero(bins == b)
        if b == NONE:
            with np.errstate(over="ignore"):
                x = np.exp(m[rows, None] + u)
                out[:, rows] = np.stack([-x, x, x * x][:parts])
            continue
        if b < 0 and affordable(len(rows), len(u), _widths(b)[1]):
            found = integrated(m[rows], sd[rows], u, parts, _widths(b)[1])
        else:
            found = _by_frequencies(m[rows], v[rows], u, parts, b, step if even else None)
        alive = found[0] > FLOOR
        L = np.where(alive, found[0], FLOOR)
        out[0, rows] = np.log(L)
        for i in range(1, parts):
            out[i, rows] = np.where(alive, found[i] / L, 0.0)
    return out


def _by_frequencies(m: Array, v: Array, u: Array, parts: int, b: int, step: float | None) -> list[Array]:
    """As _one_bin, for nodes u₀ + step·k where there is a step."""
    A, B, omega, coefficients = _frequencies(*_widths(b))
    period = 2 * (A + B)
    waves = omega.numpy()
    near = np.clip(m, -A - u[-1], B - u[0])
    start = u[0] if step is not None else 0.0
    phase = (np.fmod(near, period) + math.fmod(start, period))[:, None] * waves
    damp = np.exp(-0.5 * v[:, None] * waves**2)
    keys = np.concatenate([damp * np.cos(phase), damp * np.sin(phase)], axis=1)
    if step is not None:
        nodes = _kept(b, step).numpy()
    else:
        nodes = _turned(coefficients[:parts], omega, torch.from_numpy(u), A + B).numpy()
    found = [keys @ nodes[i, :, : len(u)] for i in range(parts)]
    y = m[:, None] + u
    left = y <= -A
    inside = ~(left | (y >= B))
    found[0] = np.where(inside, np.clip(found[0] + 0.5, 0.0, 1.0), left)
    return [found[0], *(np.where(inside, np.maximum(part, 0.0), 0.0) for part in found[1:])]


def _still(m: Tensor, u: Tensor, parts: int) -> list[Tensor]:
    x = torch.exp(m[:, None] + u)
    return [-x, x, x * x][:parts]


def _noisy(m: Tensor, v: Tensor, u: Tensor, parts: int) -> list[Tensor]:
    L, *rest = blurred(m, v, u, parts)
    alive = L.detach() > FLOOR
    L = torch.where(alive, L, torch.full_like(L, FLOOR))
    return [L.log(), *(torch.where(alive, x / L, torch.zeros_like(x)) for x in rest)]
