"""The blurred Gumbel functions of gumbel.py for few keys of narrow spread, by direct integration over the noise."""

# For s ~ N(m, σ²) and x = e^(u+m), L(u) = E exp(−x e^(σz)) is an integral over one normal number; P and Q have e^(σz)
# and its square in front. With the line of integration moved by ic the trapezoid rule errs by e^(−2πc/h) times the
# integrand's size there: φ grows to e^(c²/2), the rest stays bounded while σc is below π/2. So for σ < 1 a few dozen
# nodes leave e^−DIGITS, and few keys cost less than the matrix product for many, whose table has to be read in full.

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

DIGITS, NORMAL = 37.0, 8.6
FALL = 4.0
"""exp(−e^4) = 2e-24: where the functions have ended, but for the noise."""
MOST = 2**20
"""Keys × nodes × nodes of the noise, up to which this is worth it."""


@functools.lru_cache(maxsize=16)
def _rule(widest: float) -> tuple[Array, Array]:
    """Nodes and weights for standard deviations up to the widest."""
    c = min(0.75 * 0.5 * math.pi / widest, math.sqrt(2 * DIGITS))
    step = 2 * math.pi * c / (DIGITS + c**2 / 2)
    z = step * np.arange(-int(NORMAL / step) - 1, int(NORMAL / step) + 2, dtype=np.float64)
    return z, step * np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)


def affordable(keys: int, nodes: int, widest: float) -> bool:
    """Whether so many keys and nodes are few."""
    return keys * nodes * len(_rule(widest)[0]) <= MOST


def integrated(m: Array, sd: Array, u: Array, parts: int, widest: float) -> list[Array]:
    """The first `parts` of L, P, Q, each (keys, nodes)."""
    z, weight = _rule(widest)
    x = np.exp(np.minimum(m[:, None] + u, FALL + NORMAL * widest))
    factor = np.exp(sd[:, None] * z)  # (keys, z)
    gone = np.exp(-x[:, :, None] * factor[:, None, :])
    found = gone @ np.stack([weight * factor**k for k in range(parts)], axis=-1)  # (keys, nodes, parts)
    return [found[:, :, k] * x**k if k else found[:, :, 0] for k in range(parts)]
