"""Distribution of a normal variable minus the logarithm of a sum of narrow lognormals."""

# Z = Σ e^(s_j) with s_j ~ N(m_j, v_j) and small v_j has a characteristic function that is a product over keys and
# decays fast, so that its density and distribution function on an interval of length W are Fourier series of few terms.
# Each factor E e^(it e^s) is an integral over a normal variable, along a line above the real axis where the integrand
# decays instead of oscillating. The result is P(s − log Z ≤ x) for a normal s: the density of Z times Φ, integrated, if
# s varies about as much as log Z, else the distribution function of Z times the density of s.

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr

Array = NDArray[np.float64]

MAX_NARROW_VARIANCE = 0.25
"""The variance of a score up to which its exponential counts as narrow."""
NORMAL_TAIL = 7.2
"""P(|N(0,1)| > 7.2) = 6e-13."""
MIN_WIDTH = 1e-14
"""The width of Z, relative to its mean, below which it is a number."""
MIN_CHARACTERISTIC = 1e-11
"""The size below which a characteristic function counts as 0."""
MAX_FREQUENCIES = 2**14
"""Frequencies after which the series is cut in any case."""
MAX_ANGLE, MAX_HEIGHT = math.pi / 3, 2.5
"""How far a factor's line of integration lies above the real axis: as an angle of e^s, and in units of z."""
FACTOR_STEP = 0.25
FACTOR_NODES = FACTOR_STEP * np.arange(-34, 35)
"""Nodes z of a factor's integral, to 8.5 standard deviations."""
SCORE_NODES = 0.4 * np.arange(-19, 20)
"""Nodes z of the integral over the own score, where it varies less than log Z."""
MAX_ENTRIES = 2**20
"""Entries held at once."""


def lognormal_sum_law(
    m: Array, v: Array, count: Array, own: float, own_variance: float
) -> tuple[Callable[[Array], Array], float, float]:
    """The distribution function of s − log Z, for s ~ N(own, own_variance) and `count` keys of each kind (m, v).

    Returns:
        P(s − log Z ≤ x) as a function of x, and two numbers between which log Z lies with probability 1 − 1e-11.
    """
    shift = float(logsumexp(m + v / 2, b=count))
    m = m - shift  # Z has the mean 1
    sd = np.sqrt(v)
    # Z = start + Y, where start is Z without noise: Y may be so small beside it that Z would lose its digits.
    mean = float(count @ (np.exp(m) * np.expm1(v / 2)))  # of Y
    start, level = 1 - mean, math.log1p(-mean) + shift
    sum_sd = math.sqrt(float(count @ (np.exp(2 * m + v) * np.expm1(v))))
    skew = float((np.exp(m) * (np.expm1(NORMAL_TAIL * sd) - NORMAL_TAIL * sd)).max())
    low = max(mean - NORMAL_TAIL * sum_sd, float(count @ (np.exp(m) * np.expm1(-NORMAL_TAIL * sd))))
    width = mean + NORMAL_TAIL * sum_sd + skew - low
    if width < MIN_WIDTH:
        return _of_constant(own - shift, math.sqrt(own_variance)), shift, shift
    t, phi = _series(m, sd, count, width)
    own_sd = math.sqrt(own_variance)
    ends = math.log1p(low / start) + level, math.log1p((low + width) / start) + level
    if 2 * own_sd >= sum_sd:
        # The product with Φ has the frequencies of both factors.
        many = int(1.2 * (1 + sum_sd / own_sd) * len(t)) + 2
        y = low + width * np.arange(many) / many
        density = (1 + 2 * np.fft.fft(np.concatenate([[0], phi * np.exp(-1j * t * low)]), many).real) / many
        place = np.log1p(y / start)

        def by_density(x: Array) -> Array:
            return _in_parts(x, len(y), lambda part: ndtr(((part + (level - own))[:, None] + place) / own_sd) @ density)

        return by_density, *ends
    below = _distribution(t, phi, low, width)
    nodes = own_sd * SCORE_NODES if own_sd else np.zeros(1)
    mass = np.exp(-0.5 * SCORE_NODES**2) if own_sd else np.ones(1)
    mass = mass / mass.sum()

    def by_scores(x: Array) -> Array:
        def work(part: Array) -> Array:
            return 1 - below(start * np.expm1(nodes - (part + (level - own))[:, None])) @ mass

        return _in_parts(x, len(nodes) * len(t), work)

    return by_scores, *ends


def _of_constant(centre: float, deviation: float) -> Callable[[Array], Array]:
    """The distribution function where log Z is a number, up to rounding."""
    if deviation == 0:
        return lambda x: (x >= centre).astype(float)
    return lambda x: ndtr((x - centre) / deviation)


def _series(m: Array, sd: Array, count: Array, width: float) -> tuple[Array, NDArray[np.complex128]]:
    """Frequencies 2πk/width from k = 1 on, and the characteristic function of Y there, until it vanishes."""
    size, begin = 32, 1
    found: list[NDArray[np.complex128]] = []
    while True:
        t = 2 * math.pi / width * np.arange(begin, begin + size, dtype=np.float64)
        phi = np.ones(len(t), dtype=np.complex128)
        for mean, deviation, many in zip(m, sd, count, strict=True):
            phi *= _factor(t, mean, deviation) ** many
        found.append(phi)
        begin += size
        if abs(phi[-1]) < MIN_CHARACTERISTIC or begin > MAX_FREQUENCIES:
            break
        size = begin - 1
    every = np.concatenate(found)
    significant = np.flatnonzero(np.abs(every) >= MIN_CHARACTERISTIC)
    every = every[: int(significant[-1]) + 1 if len(significant) else 1]
    return 2 * math.pi / width * np.arange(1, len(every) + 1, dtype=np.float64), every


def _factor(t: Array, mean: float, deviation: float) -> NDArray[np.complex128]:
    """E e^(it(e^s − e^mean)) for s ~ N(mean, deviation²)."""
    if deviation == 0:
        return np.ones(len(t), dtype=np.complex128)
    z = FACTOR_NODES + 1j * min(MAX_HEIGHT, MAX_ANGLE / deviation)
    normal = FACTOR_STEP / math.sqrt(2 * math.pi) * np.exp(-0.5 * z**2)
    out: NDArray[np.complex128] = np.exp(1j * math.exp(mean) * np.outer(t, np.expm1(deviation * z))) @ normal
    return out


def _distribution(t: Array, phi: NDArray[np.complex128], low: float, width: float) -> Callable[[Array], Array]:
    """P(Y ≤ y), by integrating the density's series term by term from its lower end."""
    terms = phi / (math.pi * np.arange(1, len(t) + 1))
    start = float((terms * np.exp(-1j * t * low)).sum().imag)

    def below(y: Array) -> Array:
        at = np.clip(y, low, low + width)
        found = (at - low) / width - (np.exp(-1j * at[..., None] * t) @ terms).imag + start
        out: Array = np.where(at >= low + width, 1.0, np.where(at <= low, 0.0, np.clip(found, 0.0, 1.0)))
        return out

    return below


def _in_parts(x: Array, each: int, work: Callable[[Array], Array]) -> Array:
    """Evaluate a function for a part of the points at a time, so that at most MAX_ENTRIES are held."""
    flat = np.ravel(x)
    size = max(1, MAX_ENTRIES // each)
    parts = [work(flat[k : k + size]) for k in range(0, len(flat), size)] or [flat]
    return np.clip(np.concatenate(parts), 0.0, 1.0).reshape(np.shape(x))
