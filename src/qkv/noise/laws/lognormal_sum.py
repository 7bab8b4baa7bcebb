"""The law of a normal number against the logarithm of a sum of narrow lognormals."""

# Z = Σ e^(s_j) with s_j ~ N(m_j, v_j) and small v_j has a characteristic function that is a product over keys and
# ends soon, so that its density and distribution function on an interval of length W are Fourier series of few terms.
# Each factor E e^(it e^s) is an integral over a normal number, along a line above the real axis where the integrand
# is damped instead of turning. What is asked for is P(s − log Z ≤ x) for a normal s: the density of Z against Φ if s
# varies about as much as log Z, else the distribution function of Z against the density of s.

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Array = NDArray[np.float64]

MOST_NARROW = 0.25
"""The variance of a score up to which its exponential counts as narrow."""
TAIL = 7.2
"""P(|N(0,1)| > 7.2) = 6e-13."""
ENDED = 1e-11
"""Where a characteristic function has ended."""
ANGLE, HIGHEST = math.pi / 3, 2.5
"""How far a factor's line lies above the real axis: as an angle of e^s, and in units of the normal number."""
LINE = 0.25 * np.arange(-34, 35)
"""Nodes of a factor's integral, to 8.5 standard deviations."""
OWN = 0.4 * np.arange(-19, 20)
"""Nodes of the own score's integral, where it varies less than log Z."""
HELD = 2**20
"""Entries held at once."""


def narrow_law(
    m: Array, v: Array, count: Array, own: float, spread: float
) -> tuple[Callable[[Array], Array], float, float]:
    """P(s − log Z ≤ x) as a function of x, for s ~ N(own, spread) and `count` keys of each kind (m, v).

    Also the ends between which log Z lies, but for 1e-11."""
    shift = math.log(float(count @ np.exp(m + v / 2)))
    m = m - shift  # Z has the mean 1
    sd = np.sqrt(v)
    scatter = math.sqrt(float(count @ (np.exp(2 * m + v) * np.expm1(v))))
    skewed = float((np.exp(m) * (np.expm1(TAIL * sd) - TAIL * sd)).max())
    low = max(1 - TAIL * scatter, float(count @ np.exp(m - TAIL * sd)))
    width = 1 + TAIL * scatter + skewed - low
    t, phi = _series(m, sd, count, width)
    deviation = math.sqrt(spread)
    ends = math.log(low) + shift, math.log(low + width) + shift
    if 2 * deviation >= scatter:
        # The product with Φ has the frequencies of both.
        many = int(1.2 * (1 + scatter / deviation) * len(t)) + 2
        z = low + width * np.arange(many) / many
        density = (1 + 2 * np.fft.fft(np.concatenate([[0], phi * np.exp(-1j * t * low)]), many).real) / many
        place = np.log(z) + shift - own

        def by_density(x: Array) -> Array:
            return _in_pieces(x, len(z), lambda some: ndtr((some[:, None] + place) / deviation) @ density)

        return by_density, *ends
    below = _distribution(t, phi, low, width)
    nodes = own + deviation * OWN if deviation else np.array([own])
    mass = np.exp(-0.5 * OWN**2) if deviation else np.ones(1)
    mass = mass / mass.sum()

    def by_scores(x: Array) -> Array:
        return _in_pieces(x, len(nodes) * len(t), lambda some: 1 - below(np.exp(nodes - some[:, None] - shift)) @ mass)

    return by_scores, *ends


def _series(m: Array, sd: Array, count: Array, width: float) -> tuple[Array, NDArray[np.complex128]]:
    """Frequencies 2πk/width from k = 1 on, and the characteristic function of Z there, as far as it is not 0."""
    size, begin = 32, 1
    found: list[NDArray[np.complex128]] = []
    while True:
        t = 2 * math.pi / width * np.arange(begin, begin + size, dtype=np.float64)
        phi = np.ones(len(t), dtype=np.complex128)
        for mean, deviation, many in zip(m, sd, count, strict=True):
            phi *= _factor(t, mean, deviation) ** many
        found.append(phi)
        begin += size
        if abs(phi[-1]) < ENDED or begin > 2**14:
            break
        size = begin - 1
    every = np.concatenate(found)
    every = every[: int(np.flatnonzero(np.abs(every) >= ENDED)[-1]) + 1] if np.abs(every).max() >= ENDED else every[:1]
    return 2 * math.pi / width * np.arange(1, len(every) + 1, dtype=np.float64), every


def _factor(t: Array, mean: float, deviation: float) -> NDArray[np.complex128]:
    """E e^(it e^s) for s ~ N(mean, deviation²)."""
    if deviation == 0:
        still: NDArray[np.complex128] = np.exp(1j * t * math.exp(mean))
        return still
    z = LINE + 1j * min(HIGHEST, ANGLE / deviation)
    normal = 0.25 / math.sqrt(2 * math.pi) * np.exp(-0.5 * z**2)
    out: NDArray[np.complex128] = np.exp(1j * np.outer(t, np.exp(mean + deviation * z))) @ normal
    return out


def _distribution(t: Array, phi: NDArray[np.complex128], low: float, width: float) -> Callable[[Array], Array]:
    """P(Z ≤ y), by integrating the density's series term by term from its lower end."""
    part = phi / (math.pi * np.arange(1, len(t) + 1))
    start = float((part * np.exp(-1j * t * low)).sum().imag)

    def below(y: Array) -> Array:
        at = np.clip(y, low, low + width)
        found = (at - low) / width - (np.exp(-1j * at[..., None] * t) @ part).imag + start
        out: Array = np.where(at >= low + width, 1.0, np.where(at <= low, 0.0, np.clip(found, 0.0, 1.0)))
        return out

    return below


def _in_pieces(x: Array, each: int, work: Callable[[Array], Array]) -> Array:
    """Some points at a time, so that little is held at once; the shape stays."""
    flat = np.ravel(x)
    size = max(1, HELD // each)
    parts = [work(flat[k : k + size]) for k in range(0, len(flat), size)] or [flat]
    return np.clip(np.concatenate(parts), 0.0, 1.0).reshape(np.shape(x))
