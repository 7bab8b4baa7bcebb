"""Distribution of one item's weight in a mix of heads with independent scores, by convolution."""

# The weight is Σ mix_h α_h, a sum of independent variables of known law (single_head.py). The head with the largest
# variance keeps its distribution function F; the others' laws are put on a lattice, the mass of a cell on its two ends
# so that the mean is kept, and convolved. So a sum lies within a cell for each of these heads of its lattice point, and
# P(weight ≤ w) = Σ_k mass_k F((w − s_k)/mix) holds between the two sums with all points moved by so much to either
# side: these are bounds. For one value the points of little mass are first merged at their mean, which errs by second
# order in their distance.

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.signal import fftconvolve
from scipy.special import expit
from torch import Tensor

from qkv.noise.key_noise import heads_independent
from qkv.noise.laws.single_head import SHOWN_LOGITS, WeightLaw, weight_law
from qkv.noise.method import Method

Array = NDArray[np.float64]

CELLS = 4096
"""Lattice cells of the convolved heads, all together."""
POINTS = 256
"""Points to which they are merged: at most twice as many are left."""
MAX_ENTRIES = 2**20
"""Weights × lattice points evaluated at once."""
MIN_WIDTH = 1e-16
"""The width of a sum below which it is a number."""
MAX_KNOT_ROUNDS = 14
"""How often knots are added where the distribution function jumps."""


@dataclass(frozen=True, eq=False)
class Lattice:
    """Masses at start, start + cell, …; each stands for sums that lie at most `cells` cells from its point."""

    start: float
    cell: float
    masses: Array
    cells: int

    def places(self, margin: int = 0) -> Array:
        """The points, and so many before and after them."""
        return self.start + self.cell * np.arange(-margin, len(self.masses) + margin, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class MixedLaw:
    """A mixed weight's mean and variance, each to within `error`, and its distribution function, to within `law_error`
    and the error of merging the other heads into points. The weight is between `low` and `high`, with probability
    1 − 1e-11 for each head."""

    mean: float
    variance: float
    error: float
    law_error: float
    low: float
    high: float
    widest: WeightLaw
    share: float
    places: Array
    masses: Array
    lattice: Lattice | None

    @property
    def method(self) -> Method:
        """ "exact" for one head in closed form."""
        return self.widest.method if self.lattice is None else "quadrature"

    def below(self, weights: Array) -> Array:
        """P(weight ≤ w) for weights (k,), ascending in w."""
        if len(self.places) == 1:
            out = self.widest.below((weights - self.places[0]) / self.share)
        else:
            out = self.widest.below((weights[:, None] - self.places) / self.share) @ self.masses
        return np.clip(out, 0.0, 1.0)

    def bounds(self, weights: Array) -> tuple[Array, Array]:
        """Numbers between which P(weight ≤ w) lies, for weights (k,)."""
        if self.lattice is None:
            found = self.below(weights)
            low, high = found, found
        else:
            places, reach = self.lattice.places(self.lattice.cells), self.lattice.cells
            size = max(1, MAX_ENTRIES // len(places))
            lows, highs = [np.zeros(0)], [np.zeros(0)]
            for start in range(0, len(weights), size):
                each = self.widest.below((weights[start : start + size, None] - places) / self.share)
                highs.append(each[:, : len(places) - 2 * reach] @ self.lattice.masses)
                lows.append(each[:, 2 * reach :] @ self.lattice.masses)
            low, high = np.concatenate(lows), np.concatenate(highs)
        return np.clip(low - self.law_error, 0.0, 1.0), np.clip(high + self.law_error, 0.0, 1.0)

    def knots(self, count: int, closest: float) -> Array:
        """Weights at which to tabulate the law: dense enough that between two of them there is a probability of at most
        1/count, or a distance of at most `closest`."""
        least, most = (min(max(x, -SHOWN_LOGITS), SHOWN_LOGITS) for x in (self.widest.low, self.widest.high))
        inner = expit(np.linspace(least, most, count // 4))
        first, last = self.places.min(), self.places.max()
        parts = [first + self.share * inner, np.linspace(self.low, self.high, count // 4), last + self.share * inner]
        knots = np.unique(np.concatenate([[0.0, max(1.0, self.high)], *parts]))
        for _ in range(MAX_KNOT_ROUNDS):
            jumps = np.diff(self.below(knots))
            wide = (jumps > 1 / count) & (np.diff(knots) > closest) & (len(knots) < 4 * count)
            if not wide.any():
                break
            between = [
                np.linspace(a, b, min(16, int(count * jump) + 2))[1:-1]
                for a, b, jump in zip(knots[:-1][wide], knots[1:][wide], jumps[wide], strict=True)
            ]
            knots = np.unique(np.concatenate([knots, *between]))
        return knots


def mixed_law(m: Tensor, C: Tensor, mix: Tensor, item: int, points: int = POINTS) -> MixedLaw | None:
    """The law for score means (h, n), covariances (n, h, h) and a mix (h,); None where heads are correlated, a mix is
    not positive, or a head's law cannot be integrated."""
    if float(mix.min()) <= 0 or not heads_independent(C):
        return None
    laws: list[WeightLaw] = []
    known: dict[bytes, WeightLaw | None] = {}
    for h in range(len(m)):
        kind = _score_key(m[h], C[:, h, h], item)
        if kind not in known:
            known[kind] = weight_law(m[h], C[:, h, h], item)
        found = known[kind]
        if found is None:
            return None
        laws.append(found)
    shares = [float(x) for x in mix]
    widest = max(range(len(laws)), key=lambda h: shares[h] ** 2 * laws[h].variance)
    others = [(laws[h], shares[h]) for h in range(len(laws)) if h != widest]
    lattice, ends = _convolved(others, CELLS * points // POINTS)
    if lattice is None:
        places, masses = np.array([ends[0]]), np.ones(1)
    else:
        places, masses = _merged(lattice.places(), lattice.masses, points)
    law, share = laws[widest], shares[widest]
    size = max(1.0, sum(shares))
    return MixedLaw(
        mean=sum(s * one.mean for one, s in zip(laws, shares, strict=True)),
        variance=sum(s**2 * one.variance for one, s in zip(laws, shares, strict=True)),
        error=3 * size**2 * max(one.error for one in laws),
        law_error=sum(one.law_error for one in laws),
        low=ends[0] + share * float(expit(law.low)),
        high=ends[1] + share * float(expit(law.high)),
        widest=law,
        share=share,
        places=places,
        masses=masses,
        lattice=lattice,
    )


def _score_key(m: Tensor, v: Tensor, item: int) -> bytes:
    """A key that is equal for heads with the same scores of the item and, in any order, of the others."""
    pairs = m.numpy() + 1j * v.numpy()
    return bytes(np.concatenate([pairs[item : item + 1], np.sort_complex(np.delete(pairs, item))]).tobytes())


def _convolved(laws: list[tuple[WeightLaw, float]], cells: int) -> tuple[Lattice | None, tuple[float, float]]:
    """The sum of some heads' parts of the weight, and the ends between which it lies; None where it is a number."""
    ends = [(share * float(expit(law.low)), share * float(expit(law.high))) for law, share in laws]
    start, width = sum(low for low, _ in ends), sum(high - low for low, high in ends)
    cell = width / cells
    if not laws or width <= MIN_WIDTH:
        return None, (start, start + width)
    masses = np.ones(1)
    known: dict[tuple[int, float], Array] = {}
    for (law, share), (low, high) in zip(laws, ends, strict=True):
        if (id(law), share) not in known:
            known[id(law), share] = _on_lattice(law, share, low, high, cell)
        masses = fftconvolve(masses, known[id(law), share]).clip(min=0.0) if len(masses) > 1 else known[id(law), share]
    return Lattice(start, cell, masses / masses.sum(), len(laws)), (start, start + width)


def _on_lattice(law: WeightLaw, share: float, low: float, high: float, cell: float) -> Array:
    """Masses of a head's part of the weight on a lattice from its lower end on, with the mean kept."""
    count = max(1, int(np.ceil((high - low) / cell - 1e-9)))
    below = law.below((low + cell * np.arange(2 * count + 1) / 2) / share)
    below[0], below[-1] = 0.0, 1.0
    left, middle, right = below[:-2:2], below[1::2], below[2::2]
    mass = (right - left).clip(min=0.0)
    # The mean within a cell is its upper end less ∫ (F − F(left)) over its mass; the integral is by Simpson's rule.
    up = np.clip(mass - (4 * (middle - left) + (right - left)) / 6, 0.0, mass)
    return np.concatenate([mass - up, [0.0]]) + np.concatenate([[0.0], up])


def _merged(places: Array, masses: Array, points: int) -> tuple[Array, Array]:
    """Neighbouring points merged at their mean, wherever together they have little mass."""
    masses = masses / masses.sum()
    heavy = np.floor(points * (np.cumsum(masses) - masses / 2)).astype(int)
    far = np.arange(len(masses)) * points // len(masses)
    begin = np.flatnonzero((np.diff(heavy, prepend=-1) != 0) | (np.diff(far, prepend=-1) != 0))
    total = np.add.reduceat(masses, begin)
    kept = total > 0
    return (np.add.reduceat(masses * places, begin)[kept] / total[kept]), total[kept]
