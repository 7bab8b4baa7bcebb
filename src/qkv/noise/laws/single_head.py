"""Distribution of one item's weight under one head: its moments, and its distribution function by inversion."""

# The weight is 1/(1 + e^(R − s)), with s the item's own score and R the logsumexp of the others, independent of s. So
# its law is that of D = s − R, and P(weight ≤ p) = P(D ≤ logit p). There are three methods, by how the scores vary:
#
# - No other key is noisy: R is a number and D is normal.
# - The item's own score varies widely. With g = −Λ', Λ(u) = E exp(−e^u Z) the product of the others' L (see
#   moments/smoothed_gumbel.py) and Z = e^R, the Mellin transform is  ∫ e^(iωu) g(u) du = Γ(1 + iω) E Z^(−iω):  the
#   characteristic function of −R comes from the same nodes as the moments. Dividing by Γ makes errors grow like
#   e^(πω/2), but D has the factor e^(−vω²/2) of its own score, which vanishes first if v is not small. Its inversion at
#   midpoints ω = (k + ½)δ errs by no more than the probability that D lies further than 2π/δ from the point of
#   evaluation.
# - All scores vary little: then Z is a sum of narrow lognormals, see lognormal_sum.py.

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.special import loggamma, ndtr
from torch import Tensor

from qkv.noise.laws.lognormal_sum import MAX_NARROW_VARIANCE, lognormal_sum_law
from qkv.noise.moments.single_head import outer_error, outer_interval
from qkv.noise.moments.smoothed_gumbel import FUNCTION_ERROR, distinct_scores, logs_and_ratios

Array = NDArray[np.float64]

MIN_WIDE_VARIANCE = 0.1
"""Variance of the own score from which the errors that the division by Γ amplifies stay below 1e-9."""
DECAY = 21.0
"""e^−21 = 8e-10: where the characteristic function counts as 0."""
NORMAL_TAIL = 7.0
"""P(|N(0,1)| > 7) = 3e-12."""
STEP, FINE_STEP = 0.25, 0.125
"""Steps of the outer integral."""
MAX_FREQUENCY_OF_STEP = 4.0
"""Highest frequency for which STEP is fine enough: aliases, 2π/step away, must be small."""
MAX_ENTRIES = 2**24
"""Entries (keys × nodes, or frequencies × nodes) beyond which a law is not integrated."""
KNOTS = 512
"""Points of a distribution function that is interpolated by cubics: σ/20 apart or closer, with errors of 1e-8."""
INTEGRATED_ERROR, CLOSED_FORM_ERROR = 2e-8, 1e-15
"""Bounds on the error of a distribution function, integrated or in closed form; the tests see less."""


@dataclass(frozen=True, eq=False)
class WeightLaw:
    """A weight's mean and second moment, each to within `error`, and its distribution function, to within `law_error`.

    `logit` is P(D ≤ x) of D = logit(weight), which lies between `low` and `high` with probability 1 − 1e-11.
    """

    mean: float
    square: float
    error: float
    low: float
    high: float
    law_error: float
    logit: Callable[[Array], Array]

    @property
    def variance(self) -> float:
        """E α² − (E α)²."""
        return max(0.0, self.square - self.mean**2)

    def below(self, weights: Array) -> Array:
        """P(weight ≤ w)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            x = np.log(weights) - np.log1p(-weights)
        inside = (weights > 0) & (weights < 1)
        return np.where(inside, self.logit(np.where(inside, x, 0.0)), (weights >= 1).astype(float))


def weight_law(m: Tensor, v: Tensor, item: int) -> WeightLaw | None:
    """The law of an item's weight, for score means m and variances v, (n,); None where it cannot be integrated."""
    others = torch.arange(len(m)) != item
    if len(m) < 2:
        return None
    top = float(m.max())
    own, own_variance = float(m[item]) - top, float(v[item])
    mean, variance, where = distinct_scores(m[others] - top, v[others])
    count = torch.bincount(where, minlength=len(mean)).to(torch.float64)
    no_other_noise = float(variance.max()) == 0
    wide = own_variance >= MIN_WIDE_VARIANCE and not no_other_noise
    top_frequency = math.sqrt(2 * DECAY / own_variance) if wide else 0.0
    step = FINE_STEP if top_frequency > MAX_FREQUENCY_OF_STEP else STEP
    kinds = torch.cat([mean, mean.new_tensor([own])]), torch.cat([variance, mean.new_tensor([own_variance])])
    u = _nodes(kinds, count, step)
    if len(u) * len(kinds[0]) > MAX_ENTRIES:
        return None
    logs, r, q = logs_and_ratios(*kinds, u)
    log_rest = count @ logs[:-1]
    weight = step * torch.exp(log_rest + logs[-1])
    first, second = float(weight @ r[-1]), float(weight @ q[-1])
    error = 1e-15 + outer_error(step, 2) + FUNCTION_ERROR * (len(m) + float(u[-1] - u[0]))

    sd, rest = variance.sqrt(), mean + count.log()
    low_rest, high_rest = (float(torch.logsumexp(rest + side * NORMAL_TAIL * sd, 0)) for side in (-1, 1))
    reach = NORMAL_TAIL * math.sqrt(own_variance)
    logit: Callable[[Array], Array] | None
    if no_other_noise:
        logit = _normal_law(own - high_rest, math.sqrt(own_variance))
    elif wide:
        flow = step * torch.exp(log_rest) * (count @ r[:-1])
        ends = own - reach - high_rest, own + reach - low_rest
        logit = _inverted(u.numpy(), flow.numpy(), own, own_variance, top_frequency, *ends)
    elif float(variance.max()) > MAX_NARROW_VARIANCE:
        return None
    else:
        kinds_of_others = mean.numpy(), variance.numpy(), count.numpy()
        function, low_rest, high_rest = lognormal_sum_law(*kinds_of_others, own, own_variance)
        logit = _interpolated(function, own - reach - high_rest, own + reach - low_rest)
    if logit is None:
        return None
    low, high = own - reach - high_rest, own + reach - low_rest
    law_error = CLOSED_FORM_ERROR if no_other_noise else INTEGRATED_ERROR
    return WeightLaw(first, second, error, low, high, law_error, logit)


def _nodes(kinds: tuple[Tensor, Tensor], count: Tensor, step: float) -> Tensor:
    """Nodes from the lower end of the moments' integrals to the upper end of those without the last key."""
    mean, variance = kinds[0] + torch.cat([count, count.new_ones(1)]).log(), kinds[1]
    low, _ = outer_interval(mean, variance)
    _, high = outer_interval(mean[:-1], variance[:-1])
    return low + step * torch.arange(int((high - low) / step) + 2, dtype=torch.float64)


def _normal_law(centre: float, deviation: float) -> Callable[[Array], Array]:
    """P(N(centre, deviation²) ≤ x); a step where the deviation is 0."""
    if deviation == 0:
        return lambda x: (x >= centre).astype(float)
    return lambda x: ndtr((x - centre) / deviation)


def _inverted(
    u: Array, flow: Array, own: float, own_variance: float, top: float, low: float, high: float
) -> Callable[[Array], Array] | None:
    """P(D ≤ x) as a cubic interpolant, from the characteristic function of D at midpoints."""
    delta = 2 * math.pi / (high - low)
    omega = delta * (np.arange(int(top / delta) + 1) + 0.5)
    if len(omega) * max(len(u), KNOTS) > MAX_ENTRIES:
        return None
    transform = _waves(delta, len(omega), u) @ flow
    phi = transform * np.exp(1j * omega * own - 0.5 * own_variance * omega**2 - loggamma(1 + 1j * omega))
    x = np.linspace(low, high, KNOTS)
    waves = _waves(-delta, len(omega), x)
    value = 0.5 - ((phi / omega) @ waves).imag * delta / math.pi
    slope = (phi @ waves).real * delta / math.pi
    return Cubics(x, np.clip(value, 0.0, 1.0), slope)


def _waves(delta: float, count: int, x: Array) -> NDArray[np.complex128]:
    """e^(i(k + ½)δx) for k below the count, (count, points), by products, which are cheaper than exponentials."""
    out = np.empty((count, len(x)), dtype=np.complex128)
    out[0], out[1:] = np.exp(0.5j * delta * x), np.exp(1j * delta * x)
    return np.cumprod(out, axis=0, out=out)


def _interpolated(function: Callable[[Array], Array], low: float, high: float) -> Callable[[Array], Array]:
    """Cubic interpolant of an expensive function."""
    x = np.linspace(low, high, KNOTS)
    value = function(x)
    return Cubics(x, value, CubicSpline(x, value)(x, 1))


class Cubics:
    """Cubic Hermite interpolant with equidistant knots, clipped to [0, 1] and constant beyond the knots."""

    def __init__(self, x: Array, value: Array, slope: Array) -> None:
        self.low, self.step = float(x[0]), float(x[1] - x[0])
        self.value, self.slope = value, slope * self.step

    def __call__(self, x: Array) -> Array:
        at = np.clip((x - self.low) / self.step, 0.0, len(self.value) - 1.0)
        k = np.minimum(at.astype(int), len(self.value) - 2)
        t = at - k
        a, b, p, q = self.value[k], self.value[k + 1], self.slope[k], self.slope[k + 1]
        found = a + t * (p + t * (3 * (b - a) - 2 * p - q + t * (2 * (a - b) + p + q)))
        out: Array = np.clip(found, 0.0, 1.0)
        return out
